"""The conversations that may be meant instead, each with the line that speaks for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from orchestrator.answer.delivery import cut_text
from orchestrator.answer.finding.likeliest import holds_as_many
from orchestrator.answer.finding.relevance import CLOSE
from registry.domain import format_time, preview_of
from registry.search.retrieval import SearchResult
from registry.search.scope import Scope
from registry.storage.conversations.channels import ChannelRow
from registry.storage.conversations.messages import MessageRow, by_numbers, messages_of
from registry.storage.database import ReadTransaction
from registry.text.ranking.confidence import Confidence
from registry.text.ranking.snippets import snippet

PASSAGES_OF, LINES_OF, OTHER_TOKENS = 2, 2, 150
"""So many other channels give passages, so many each, of so many tokens."""
EVIDENCE = 160
"""Characters of the line that speaks for a candidate."""


NEWER_SCORE, NEWER_HELD = 0.5, 0.7
"""The shares of the best conversation's score, and of what it holds, from which on a later one is told of."""


def newer_of(
    tx: ReadTransaction, candidates: Sequence[tuple[ChannelRow, float]], found: SearchResult
) -> dict[str, Any] | None:
    """Return the line of a later conversation on the same thing: it may change what the chosen one says."""
    if not candidates:
        return None
    (chosen, best), *further = candidates
    least = NEWER_HELD * found.covered(chosen.number)
    later = [
        row
        for row, score in further
        if row.updated_at > chosen.updated_at and score >= NEWER_SCORE * best and found.covered(row.number) >= least
    ]
    lines = _best_lines(tx, {later[0].number: 1}, found)[later[0].number] if later else []
    if not lines:
        return None
    [line] = lines
    named = {"channel": later[0].name, "source": later[0].source}
    return {"when": line["timestamp"], **named, "line": line["text"], "message_id": line["id"]}


def beside(
    tx: ReadTransaction,
    candidates: Sequence[tuple[ChannelRow, float]],
    found: SearchResult,
    sure: Confidence,
    newer: Iterable[MessageRow] = (),
    *,
    is_narrowed: bool = False,
) -> dict[str, Any]:
    """The channels the user may have meant instead, and the best passages of those that may as well be meant: of a
    time or place that was named all, where the best is a guess.

    `newer`: messages of these that take back what is delivered; they are given, too.
    """
    if not candidates:
        return {}
    further = candidates[1:]
    taking_back = list({row.id: row for row in newer}.values())
    least = CLOSE * candidates[0][1]
    is_guess = sure is Confidence.LOW
    held = found.words_in(candidates[0][0].number)
    close = [
        row for row, score in further if score >= least and (not is_guess or holds_as_many(row.number, found, held))
    ]
    close = [row for row, _ in further] if is_guess and is_narrowed else close
    meant = {row.number for row in close[:PASSAGES_OF]} | {row.channel_number for row in taking_back}
    close = [row for row, _ in further if row.number in meant]
    wanted = {row.number: LINES_OF if row.number in meant else 1 for row, _ in further}
    lines = _best_lines(tx, wanted, found)
    for row in reversed(taking_back):  # what takes back the best comes first
        others = (line for line in lines[row.channel_number] if line["id"] != row.id)
        lines[row.channel_number] = [_line(row, snippet(row.text, found.query)), *others]
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


def _best_lines(tx: ReadTransaction, wanted: Mapping[int, int], found: SearchResult) -> dict[int, list[dict[str, Any]]]:
    """Of each channel so many of its best messages as are wanted, by their best passages."""
    best: dict[int, list[int]] = {number: [] for number in wanted}
    for one in found.ranked:
        of_channel = best.get(one.candidate.channel_id)
        if of_channel is not None and len(of_channel) < wanted[one.candidate.channel_id]:
            of_channel.append(one.candidate.number)
    rows = {row.number: row for row in by_numbers(tx, [number for numbers in best.values() for number in numbers])}
    return {
        channel: [_line(rows[number], snippet(rows[number].text, found.query)) for number in numbers if number in rows]
        for channel, numbers in best.items()
    }
