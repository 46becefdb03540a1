"""Of all conversations the one that is meant, how sure that is, and those that may be meant instead, each with the line
that speaks for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from orchestrator.answer.delivery import cut_text
from orchestrator.answer.finding.elsewhere import nothing_found, nothing_then
from orchestrator.answer.finding.looking_up import Lookup
from orchestrator.answer.finding.relevance import (
    CLOSE,
    Judged,
    best_channels,
    confidence_in,
    guessed,
    held_to,
    holds_some,
    judge,
)
from orchestrator.requests.queries import ExtractQuery
from registry.domain import Role, format_time, is_within, preview_of
from registry.search.candidates import CANDIDATES
from registry.search.retrieval import LOOKED_AT, SearchResult
from registry.search.scope import Scope
from registry.search.sessions import latest_sessions, lengths_of_roles
from registry.storage.conversations.channels import ChannelRow, channels_by_number, recent_channels
from registry.storage.conversations.messages import SaidMessage, by_numbers, messages_of
from registry.storage.database import ReadTransaction
from registry.text.ranking.confidence import Confidence
from registry.text.ranking.scores import Candidate
from registry.text.ranking.snippets import snippet
from registry.text.request.understanding import Understood, asks_to_go_on
from registry.text.times.spans import Span

OTHER_CHANNELS = 5
"""How many further channels are offered where one had to be chosen."""
GUESSED = 5
"""Where nothing speaks for itself, so many of the best messages are given as a guess."""

Scored = tuple[ChannelRow, float]


@dataclass(frozen=True)
class Choice:
    """What was found, and the conversation that is meant: the first of the `candidates` where none was named.

    `is_guess`: only parts of words, or meaning, speak for it.
    """

    found: SearchResult
    verdicts: Sequence[Judged]
    channel: ChannelRow
    candidates: Sequence[Scored] = ()
    is_guess: bool = False

    @cached_property
    def inside(self) -> list[Judged]:
        """The verdicts on the messages of this conversation."""
        if not self.candidates:  # it was named, and nowhere else was looked
            return list(self.verdicts)
        number = self.channel.number
        return [one for one in self.verdicts if one.ranked.candidate.channel_id == number]


def chosen(
    asked: Lookup[ExtractQuery], found: SearchResult, verdicts: Sequence[Judged], folder: str | None
) -> Choice | None:
    """The conversation that is meant; None where nothing speaks for any. `folder`: where this is asked."""
    candidates = _best(asked, found, verdicts, folder)
    is_guess = not candidates and (may_guess(asked) or bool(found.similar and not asked.said.search.when_words))
    if is_guess:
        verdicts = guessed(found, verdicts)
        candidates = _best(asked, found, verdicts, folder)
    if not candidates:
        return None
    if is_guess and asked.said.is_narrowed:
        candidates += _further(candidates, latest(asked, relaxed="words"))
    row = candidates[0][0]
    if any(len(wording.candidates) >= CANDIDATES for wording in found.wordings):
        found = replace(asked, scope=replace(asked.scope, channel_number=row.number)).find()
        verdicts = held_to(found, judge(found), asked.query.least_coverage)
    return Choice(found, verdicts, row, candidates, is_guess)


def may_guess(asked: Lookup[ExtractQuery]) -> bool:
    """Whether what does not speak for itself may be given."""
    return not asked.said.is_narrowed and asked.query.least_coverage is None


def kept_of(asked: Lookup[ExtractQuery], choice: Choice) -> list[Judged]:
    """The messages of the conversation that answer, best first; as a guess those that hold parts of words, or are near
    in meaning, where none speaks for itself."""
    kept = [one for one in choice.inside if one.reason is None]
    if kept or not may_guess(asked):
        return kept
    near = choice.found.similar.plausible if choice.found.similar else frozenset()
    return [one for one in choice.inside if one.coverage > 0 or one.ranked.candidate.number in near][:GUESSED]


def sure_of(asked: Lookup[ExtractQuery], choice: Choice) -> Confidence:
    """How sure it is that the conversation that was chosen or named answers. That it is of the time or place that was
    named speaks for one that was chosen where it holds some of the rest, too."""
    number = choice.channel.number
    speaks = not choice.candidates or holds_some(choice.found, number)
    return confidence_in(
        choice.found,
        number,
        [score for _, score in choice.candidates],
        is_narrowed=asked.said.is_narrowed and not choice.is_guess and speaks,
        goes_on=asked.said.goes_on,
    )


def latest(asked: Lookup[ExtractQuery], *, relaxed: str) -> list[ChannelRow]:
    """The channels of the time and place that are meant, the latest first; there is one at least."""
    tx, search, scope = asked.tx, asked.said.search, asked.scope
    is_narrowed = search.when_words or asked.said.sources or search.project or scope.from_ or scope.to
    if not is_narrowed:
        if relaxed:
            raise nothing_found(asked.query.text)
        rows = recent_channels(tx, OTHER_CHANNELS + 1)
    else:
        active, _ = latest_sessions(tx, scope, OTHER_CHANNELS + 1, 0)
        known = channels_by_number(tx, [number for number, _ in active])
        rows = [known[number] for number, _ in active if number in known]
        if not rows:
            raise nothing_then(asked)
    if not rows:
        raise nothing_found(asked.query.text)
    return rows


def _further(candidates: Sequence[Scored], rows: Sequence[ChannelRow]) -> list[Scored]:
    """Any of a place that was named may be meant where only meaning speaks for one."""
    known = {row.number for row, _ in candidates}
    return [(row, 0.0) for row in rows if row.number not in known][: OTHER_CHANNELS + 1 - len(candidates)]


def _best(
    asked: Lookup[ExtractQuery], found: SearchResult, verdicts: Sequence[Judged], folder: str | None
) -> list[Scored]:
    """The channels that fit the request, best first, with their scores."""
    tx, said = asked.tx, asked.said
    scores = best_channels(found, verdicts)[: OTHER_CHANNELS + 1]
    folder = None if said.in_other_project else folder
    scores = most_likely_first(tx, scores, found, said, asked.scope.roles, folder)
    known = channels_by_number(tx, [number for number, _ in scores])
    best = [(known[number], score) for number, score in scores if number in known]
    asked.run.recorder.explain(channels=[{"channel": row.name, "score": round(score, 3)} for row, score in best])
    return best


NEARLY = 0.8
"""A channel that scores so much of the best one, and holds more of the words that were asked for, comes before it."""
AS_NEAR = 0.5
"""Where a model is asked, one that is so much less near in meaning than the best is not meant, whatever it holds."""
MUCH_LONGER = 2
"""One that is so many times as long holds more of any words."""
COMPARABLE = 0.5
"""One that scores less of the best one is not the one that was meant, wherever it belongs."""
PASSAGES_OF, LINES_OF, OTHER_TOKENS = 2, 2, 150
"""So many other channels give passages, so many each, of so many tokens."""
EVIDENCE = 160
"""Characters of the line that speaks for a candidate."""


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
    speaking = next((one for one in scores[asking:] if _holds(one[0], found, held)), None)
    if not asking or speaking is None:
        return scores
    rest = [one for one in scores if one is not speaking]
    return [(speaking[0], rest[0][1]), *rest]


def _holds(number: int, found: SearchResult, words: int) -> bool:
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


def beside(
    tx: ReadTransaction,
    candidates: Sequence[tuple[ChannelRow, float]],
    found: SearchResult,
    sure: Confidence,
    newer: Iterable[SaidMessage] = (),
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
    close = [row for row, score in further if score >= least and (not is_guess or _holds(row.number, found, held))]
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


def _line(message: SaidMessage, text: str) -> dict[str, Any]:
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
