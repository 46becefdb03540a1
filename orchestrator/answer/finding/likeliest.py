"""In what order conversations that scored come: of those that are close to the best the one that is meant first."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from orchestrator.answer.finding.relevance import CLOSE
from registry.domain import Role, is_within
from registry.search.retrieval import LOOKED_AT, SearchResult
from registry.search.sessions import lengths_of_roles
from registry.storage.conversations.channels import ChannelRow, channels_by_number
from registry.storage.conversations.messages import by_numbers
from registry.storage.database import ReadTransaction
from registry.text.ranking.scores import Candidate
from registry.text.request.understanding import Understood, asks_to_go_on
from registry.text.times.spans import Span

NEARLY = 0.8
"""A channel that scores so much of the best one, and holds more of the words that were asked for, comes before it."""
AS_NEAR = 0.5
"""Where a model is asked, one that is so much less near in meaning than the best is not meant, whatever it holds."""
MUCH_LONGER = 2
"""One that is so many times as long holds more of any words."""
COMPARABLE = 0.5
"""One that scores less of the best one is not the one that was meant, wherever it belongs."""


def most_likely_first(
    tx: ReadTransaction,
    scores: Sequence[tuple[int, float]],
    found: SearchResult,
    read: Understood,
    roles: Sequence[str] | None,
    folder: str | None = None,
) -> list[tuple[int, float]]:
    """Channels with their scores; of close ones those that hold most words of the request come first, of a date in it,
    and of the asking folder.

    Who asks what holds in the end gets the latest of close ones. For who goes on, one that was found only because
    another was asked for in it stands behind the first that speaks of it itself. `roles`: whose messages were searched.
    """
    best = _holding_most_first(tx, scores, found, roles)
    needs_rows = read.dates or folder or read.in_the_end
    known = channels_by_number(tx, [number for number, _ in scores]) if needs_rows else {}
    if read.in_the_end:
        best = _latest_first(best, found, known)
    if folder is not None:
        best = _preferred(best, found, {number for number, row in known.items() if _is_in(row.project_path, folder)})
    if read.dates:
        best = _preferred(best, found, {number for number, row in known.items() if _is_of(row, read.dates)})
    return _asking_ones_behind(tx, best, found) if read.goes_on else best


def _holding_most_first(
    tx: ReadTransaction, scores: Sequence[tuple[int, float]], found: SearchResult, roles: Sequence[str] | None
) -> list[tuple[int, float]]:
    """One word that a conversation repeats may count for more than two that another holds, and should not.

    Where other wordings were given it is they that tell conversations apart.
    """
    if len(scores) < 2 or len(found.wordings) > 1:
        return list(scores)
    first, best = scores[0]
    near = found.similar.channels if found.similar else {}
    least = AS_NEAR * near.get(first, 0.0)
    close = [number for number, score in scores if score >= NEARLY * best and near.get(number, 0.0) >= least]
    held = {number: found.words_in(number) for number in close}
    if max(held.values(), default=0) <= found.words_in(first):
        return list(scores)
    sizes = _sizes(tx, [first, *close], found, roles)
    most = max((number for number in close if sizes[number] <= MUCH_LONGER * sizes[first]), key=held.__getitem__)
    return [(most, best), *(one for one in scores if one[0] != most)]


def _sizes(
    tx: ReadTransaction, numbers: Sequence[int], found: SearchResult, roles: Sequence[str] | None
) -> Mapping[int, float]:
    """How long channels are: of one in which a tool said most, what the user said alone is short."""
    if roles is not None and not {Role.USER, Role.ASSISTANT}.issubset(roles):
        return lengths_of_roles(tx, numbers, roles)
    return {number: found.size(number) for number in numbers}


def _preferred(
    scores: Sequence[tuple[int, float]], found: SearchResult, meant: Collection[int]
) -> list[tuple[int, float]]:
    """The same, but one that is meant comes before those that it is close to."""
    raised = _raised(scores, found)
    scored = [(number, raised[number] if number in meant else score) for number, score in scores]
    return sorted(scored, key=lambda one: (-one[1], one[0] not in meant))


def _latest_first(
    scores: Sequence[tuple[int, float]], found: SearchResult, rows: Mapping[int, ChannelRow]
) -> list[tuple[int, float]]:
    """The same, but of those close to the best the one comes first in which was spoken last."""
    if not scores:
        return []
    first, best = scores[0]
    close = [number for number, score in _raised(scores, found).items() if number in rows and score >= best]
    latest = max(close, key=lambda number: rows[number].updated_at, default=first)
    return [(latest, best), *(one for one in scores if one[0] != latest)]


def _raised(scores: Sequence[tuple[int, float]], found: SearchResult) -> dict[int, float]:
    """What each channel scores if it is preferred: as much as the best one at least where it is close to it, in score,
    or because it holds as much of the request and only the lengths of messages tell them apart."""
    if not scores:
        return {}
    first, best = scores[0]
    held = found.words_in(first)

    def raised(number: int, score: float) -> float:
        holds_as_much = score >= COMPARABLE * best and found.words_in(number) >= held
        return max(score / CLOSE, best if holds_as_much else 0.0)

    return {number: raised(number, score) for number, score in scores}


def _is_in(path: str | None, folder: str) -> bool:
    return path is not None and is_within(path, folder)


def _is_of(row: ChannelRow, spans: Sequence[Span]) -> bool:
    return any(at.start and at.end and row.created_at <= at.end and row.updated_at >= at.start for at in spans)


def _asking_ones_behind(
    tx: ReadTransaction, scores: list[tuple[int, float]], found: SearchResult
) -> list[tuple[int, float]]:
    only_ask = _only_asking(tx, [number for number, _ in scores], found)
    asking = next((at for at, (number, _) in enumerate(scores) if number not in only_ask), len(scores))
    held = max((found.words_in(number) for number, _ in scores[:asking]), default=0)
    speaking = next((one for one in scores[asking:] if holds_as_many(one[0], found, held)), None)
    if not asking or speaking is None:
        return scores
    rest = [one for one in scores if one is not speaking]
    return [(speaking[0], rest[0][1]), *rest]


def holds_as_many(number: int, found: SearchResult, words: int) -> bool:
    """Whether a conversation holds so many of the words that were asked for, and one at least."""
    return found.words_in(number) >= max(words, 1)


def _only_asking(tx: ReadTransaction, channels: Sequence[int], found: SearchResult) -> set[int]:
    """The channels in which the words stand in nothing but requests to go on with another conversation; none of them
    where that does not hold for the first."""
    matched = found.matched
    inside: dict[int, list[Candidate]] = {number: [] for number in channels}
    for one in found.ranked:
        of_channel = inside.get(one.candidate.channel_id)
        if of_channel is not None and one.candidate.number in matched and len(of_channel) < LOOKED_AT:
            of_channel.append(one.candidate)
    asked = {channel for channel, some in inside.items() if some and all(one.role == Role.USER for one in some)}
    if not channels or channels[0] not in asked:
        return set()
    rows = by_numbers(tx, [one.number for channel in asked for one in inside[channel]])
    return asked - {row.channel_number for row in rows if not asks_to_go_on(row.text)}
