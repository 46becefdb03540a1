"""The channels that the user may have meant instead, each with the line that speaks for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from orchestrator.answer.delivery import cut_text
from registry.domain import format_time, is_within, preview_of
from registry.search.retrieval import SearchResult
from registry.search.scope import Scope
from registry.storage.conversations.channels import ChannelRow
from registry.storage.conversations.messages import MessageRow, by_numbers, messages_of
from registry.storage.database import ReadTransaction
from registry.text.ranking.confidence import Confidence
from registry.text.ranking.snippets import snippet

CLOSE = 0.85
"""A channel that scores so much of the best one may as well be meant: its best passages are given, too."""
COMPARABLE = 0.5
"""One that scores less of the best one is not the one that was meant, wherever it belongs."""
PASSAGES_OF, LINES_OF, OTHER_TOKENS = 2, 2, 150
"""So many other channels give passages, so many each, of so many tokens."""
EVIDENCE = 160
"""Characters of the line that speaks for a candidate."""


def own_first(
    candidates: Sequence[tuple[ChannelRow, float]], folder: str | None, found: SearchResult
) -> list[tuple[ChannelRow, float]]:
    """The same, but one of the folder that is worked in comes before those that it is close to: in score, or where it
    holds as much of the request as the best and only the lengths of messages tell them apart."""
    if folder is None or not candidates:
        return list(candidates)
    first, best = candidates[0]
    held = found.words_in(first.number)

    def gained(row: ChannelRow, score: float) -> float:
        if not _is_in(row.project_path, folder):
            return score
        holds_as_much = score >= COMPARABLE * best and found.words_in(row.number) >= held
        return max(score / CLOSE, best if holds_as_much else 0.0)

    scored = [(row, gained(row, score)) for row, score in candidates]
    return sorted(scored, key=lambda one: (-one[1], not _is_in(one[0].project_path, folder)))


def _is_in(path: str | None, folder: str) -> bool:
    return path is not None and is_within(path, folder)


def beside(
    tx: ReadTransaction,
    candidates: Sequence[tuple[ChannelRow, float]],
    found: SearchResult,
    sure: Confidence,
    newer: Iterable[MessageRow] = (),
) -> dict[str, Any]:
    """The channels the user may have meant instead, and the best passages of those that may as well be meant.

    `newer`: messages of these that take back what is delivered; they are given, too.
    """
    if not candidates:
        return {}
    further = candidates[1:]
    lines = _best_lines(tx, [row.number for row, _ in further], found)
    taking_back = list({row.id: row for row in newer}.values())
    for row in reversed(taking_back):  # what takes back the best comes first
        others = (line for line in lines[row.channel_number] if line["id"] != row.id)
        lines[row.channel_number] = [_line(row, snippet(row.text, found.query)), *others]
    least = CLOSE * candidates[0][1]
    close = [row for row, score in further if score >= least and sure is not Confidence.LOW][:PASSAGES_OF]
    changed = {row.channel_number for row in taking_back}
    close = [row for row, _ in further if row in close or row.number in changed]
    return {
        "candidates": [candidate(row, score, lines[row.number]) for row, score in further],
        "others": [
            {**about(row), "last_activity": format_time(row.updated_at), "messages": lines[row.number]} for row in close
        ],
    }


def beside_in_time(
    tx: ReadTransaction, further: Sequence[ChannelRow], scope: Scope, roles: Sequence[str]
) -> dict[str, Any]:
    """The other channels of a time that was named, and where the first of them stood then: all may be meant."""
    lines = {
        row.number: [
            _line(message, message.text)
            for message in messages_of(
                tx, row.number, limit=LINES_OF, roles=list(roles), from_=scope.from_, to=scope.to
            )
        ]
        for row in further
    }
    return {
        "candidates": [candidate(row, lines=lines[row.number]) for row in further],
        "others": [
            {**about(row), "last_activity": format_time(row.updated_at), "messages": lines[row.number]}
            for row in further[:PASSAGES_OF]
        ],
    }


def _line(message: MessageRow, text: str) -> dict[str, Any]:
    return {
        "id": message.id,
        "role": message.role,
        "text": cut_text(text, OTHER_TOKENS),
        "timestamp": format_time(message.timestamp),
    }


def candidate(row: ChannelRow, score: float | None = None, lines: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """A channel the user may have meant instead, with the line that speaks for it."""
    evidence = {"evidence": preview_of(lines[0]["text"], EVIDENCE)} if lines else {}
    scored = {} if score is None else {"score": round(score, 3)}
    return {**about(row), "last_activity": format_time(row.updated_at), **evidence, **scored}


def about(row: ChannelRow) -> dict[str, Any]:
    return {
        "channel": row.name,
        "title": row.title or row.first_message_preview or row.name,
        "project": row.project_name or "General",
        "source": row.source,
    }


def _best_lines(tx: ReadTransaction, channels: Sequence[int], found: SearchResult) -> dict[int, list[dict[str, Any]]]:
    """Of each channel its best messages, by their best passages."""
    best: dict[int, list[int]] = {number: [] for number in channels}
    for one in found.ranked:
        of_channel = best.get(one.candidate.channel_id)
        if of_channel is not None and len(of_channel) < LINES_OF:
            of_channel.append(one.candidate.number)
    rows = {row.number: row for row in by_numbers(tx, [number for numbers in best.values() for number in numbers])}
    return {
        channel: [_line(rows[number], snippet(rows[number].text, found.query)) for number in numbers if number in rows]
        for channel, numbers in best.items()
    }
