"""Order conversations that score close to the best by what else speaks for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from orchestrator.answer.finding.relevance import CLOSE
from registry.domain import Role, is_within
from registry.search.retrieval import SearchResult
from registry.storage.conversations.channels import ChannelRow, channels_by_number
from registry.storage.conversations.messages import by_numbers
from registry.storage.database import ReadTransaction
from registry.text.request.understanding import Understood, asks_to_go_on
from registry.text.times.spans import Span

LOOKED_AT = 5  # messages of a conversation
COMPARABLE = 0.5  # of the best score: what scores less is not meant, however much of the request it holds

Scores = Sequence[tuple[int, float]]
"""Channels with their scores, best first."""


def most_likely_first(
    tx: ReadTransaction, scores: Scores, found: SearchResult, read: Understood, folder: str | None = None
) -> Scores:
    """Put conversations of the asking folder, or of a date in the request, before those that they are close to.

    Who asks what holds in the end gets the latest of close ones. For who goes on, one that was found only because
    another was asked for in it stands behind the first that speaks of it itself.
    """
    needs_rows = read.dates or folder or read.in_the_end
    known = channels_by_number(tx, [number for number, _ in scores]) if needs_rows else {}
    if read.in_the_end:
        scores = _latest_first(scores, found, known)
    if folder is not None:
        inside = {number for number, row in known.items() if _is_in(row.project_path, folder)}
        scores = _preferred(scores, found, inside)
    if read.dates:
        scores = _preferred(scores, found, {number for number, row in known.items() if _is_of(row, read.dates)})
    return _asking_ones_behind(tx, scores, found) if read.goes_on else scores


def _preferred(scores: Scores, found: SearchResult, meant: Collection[int]) -> Scores:
    close = _close(scores, found)
    raised = [
        (number, max(score, close[number]) if number in meant & close.keys() else score) for number, score in scores
    ]
    return sorted(raised, key=lambda one: (-one[1], one[0] not in meant))


def _close(scores: Scores, found: SearchResult) -> dict[int, float]:
    """Return what conversations score if they are preferred: those that score nearly as much as the best one, or that
    hold as many of its words."""
    best = scores[0][1] if scores else 0.0
    held = found.words_in(scores[0][0]) if scores else 0
    holding = (number for number, score in scores if score >= COMPARABLE * best and found.words_in(number) >= held)
    return {number: score / CLOSE for number, score in scores if score >= CLOSE * best} | dict.fromkeys(holding, best)


def _latest_first(scores: Scores, found: SearchResult, rows: Mapping[int, ChannelRow]) -> Scores:
    close = _close(scores, found).keys() & rows.keys()
    if not close:
        return scores
    latest = max(close, key=lambda number: rows[number].updated_at)
    return [(latest, scores[0][1]), *(one for one in scores if one[0] != latest)]


def _is_in(path: str | None, folder: str) -> bool:
    return path is not None and is_within(path, folder)


def _is_of(row: ChannelRow, spans: Sequence[Span]) -> bool:
    return any(at.start and at.end and row.created_at <= at.end and row.updated_at >= at.start for at in spans)


def _asking_ones_behind(tx: ReadTransaction, scores: Scores, found: SearchResult) -> Scores:
    only_ask = _only_asking(tx, [number for number, _ in scores], found)
    speaking = [one for one in scores if one[0] not in only_ask]
    return [*speaking, *(one for one in scores if one[0] in only_ask)]


def _only_asking(tx: ReadTransaction, channels: Sequence[int], found: SearchResult) -> set[int]:
    """Return the channels in which the words stand in nothing but requests to go on with another conversation."""
    inside: dict[int, list[int]] = {number: [] for number in channels}
    said = set[int]()
    for one in found.ranked:
        number = one.candidate.channel_id
        if one.candidate.number not in found.matched or len(inside.get(number, range(LOOKED_AT))) >= LOOKED_AT:
            continue
        inside[number].append(one.candidate.number)
        if one.candidate.role != Role.USER:
            said.add(number)
    asked = {number for number, some in inside.items() if some and number not in said}
    rows = by_numbers(tx, [one for number in asked for one in inside[number]])
    return asked - {row.channel_number for row in rows if not asks_to_go_on(row.text)}


def holds_as_many(number: int, found: SearchResult, words: int) -> bool:
    """Return True if a conversation holds so many of the words that were asked for, and one at least."""
    return found.words_in(number) >= max(words, 1)
