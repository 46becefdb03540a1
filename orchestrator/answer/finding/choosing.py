"""Of all conversations the one that is meant, how sure that is, and which of its messages answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from orchestrator.answer.finding.elsewhere import nothing_found, nothing_then
from orchestrator.answer.finding.likeliest import most_likely_first
from orchestrator.answer.finding.looking_up import Lookup
from orchestrator.answer.finding.newer import as_of_then
from orchestrator.answer.finding.relevance import (
    Judged,
    best_channels,
    confidence_in,
    guessed,
    held_to,
    holds_some,
    judge,
)
from orchestrator.requests.queries import ExtractQuery
from registry.search.candidates import CANDIDATES
from registry.search.retrieval import SearchResult
from registry.search.sessions import latest_sessions
from registry.storage.conversations.channels import ChannelRow, channels_by_number, recent_channels
from registry.text.ranking.confidence import Confidence

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
        candidates = [*candidates, *_further(candidates, latest(asked, relaxed="words"))]
    candidates = as_of_then(candidates, asked.said)
    row = candidates[0][0]
    if len(found.candidates) >= CANDIDATES:
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
    ordered = most_likely_first(tx, scores, found, said, folder)
    known = channels_by_number(tx, [number for number, _ in ordered])
    best = [(known[number], score) for number, score in ordered if number in known]
    asked.run.recorder.explain(channels=[{"channel": row.name, "score": round(score, 3)} for row, score in best])
    return best
