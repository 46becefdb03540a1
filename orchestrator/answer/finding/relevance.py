"""Which of the messages found have to do with the request, which of these are hits, and what a record says of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from operator import attrgetter
from typing import Any, NamedTuple

from orchestrator.answer.delivery import Turn
from orchestrator.recording.recorder import KEPT_ITEMS
from orchestrator.requests.queries import SearchQuery, SessionsQuery
from orchestrator.state import Run
from registry.search.retrieval import CALLED, SearchResult
from registry.search.scope import Scope
from registry.text.ranking.confidence import FLOOR, Confidence, confidence_of
from registry.text.ranking.scores import SEQ_BITS, Ranked
from registry.text.ranking.similar import SimilarMessages
from registry.text.request.understanding import Understood

NEARLY_KEPT = 10
"""So many places in a record are for the best of those that were dropped: they show where the line was drawn."""

REASONS = {
    "parts": "contains parts of words only, or what sounds like them, and stands beside nothing better",
    "beside": "holds nothing of the request, and stands two places from what does",
    "little": "holds less of the request than this run wanted",
}
"""Why a message that was found is not shown."""


class Judged(NamedTuple):
    """A message found, with the verdict on it; `reason` says why it was dropped, None for one that was kept.

    `coverage` is the share it holds of the wording it holds most of; `wording` the place of that one, 0 the question.
    """

    ranked: Ranked
    coverage: float
    wording: int
    reason: str | None
    similarity: float | None = None

    @property
    def score(self) -> float:
        """What it is ranked by."""
        return self.ranked.score

    def as_dict(self) -> dict[str, Any]:
        """As an execution's step shows it."""
        found = self.ranked.candidate
        by_meaning = {} if self.similarity is None else {"similarity": self.similarity}
        return by_meaning | {
            "message": found.number,
            "role": found.role,
            "channel_number": found.channel_id,
            "score": round(self.ranked.score, 3),
            "own": round(self.ranked.own, 3),
            "neighbours": round(self.ranked.neighbours, 3),
            "coverage": round(self.coverage, 3),
            "wording": self.wording,
            "kept": self.reason is None,
            "reason": self.reason,
        }


def judge(found: SearchResult) -> list[Judged]:
    """A verdict on every message found, best first: it holds a word of the request, or stands beside one that does, or
    was said on a date that the request names, in a conversation that holds one."""
    similarities = found.similar.similarities if found.similar else {}
    matched = found.matched | found.by_meaning
    some = [one.candidate for one in found.ranked]
    holding = {one[1] << SEQ_BITS | one[2] for one in some if one[0] in matched}
    spoken_of = {place >> SEQ_BITS for place in holding} if found.dated else set()
    shares = cache(partial(_most_covered, found))
    verdicts = []
    for one, message in zip(found.ranked, some, strict=True):
        number = message[0]
        covered, best = shares(message.held)
        reason = None
        if number not in matched:
            place = message[1] << SEQ_BITS | message[2]
            is_beside = place - 1 in holding or place + 1 in holding
            if not is_beside and not (number in found.dated and message[1] in spoken_of):
                reason = REASONS["parts" if covered > 0 else "beside"]
        verdicts.append(Judged(one, covered, best, reason, similarities.get(number)))
    return verdicts


def _most_covered(found: SearchResult, held: int) -> tuple[float, int]:
    """Return the largest share of a wording that these terms are, and the place of that wording."""
    shares = [found.share(held, wording) for wording in found.wordings]
    best = max(shares, default=0.0)
    return best, shares.index(best) if shares else 0


def held_to(found: SearchResult, verdicts: Sequence[Judged], least: float | None) -> Sequence[Judged]:
    """The verdicts where a message must hold so much of the request itself, or be what is nearest in meaning."""
    if least is None:
        return verdicts
    return [
        one._replace(reason=REASONS["little"])
        if one.reason is None and one.coverage < least and one.ranked.candidate.number not in found.by_meaning
        else one
        for one in verdicts
    ]


GUESSED_SHARE = 0.4
"""So much of a wording a message holds in parts of words, or by sound, that may be given as a guess."""


def guessed(found: SearchResult, verdicts: Iterable[Judged]) -> list[Judged]:
    """The verdicts where none says that anything has to do with the request: the nearest may be given as a guess."""
    near = found.similar.named if found.similar else frozenset()

    def is_near(one: Judged) -> bool:
        return one.coverage >= GUESSED_SHARE or one.ranked.candidate.number in near

    return [one._replace(reason=None) if is_near(one) else one for one in verdicts]


def explanation(found: SearchResult) -> dict[str, Any]:
    """What was looked up, and what was not and why, as an execution's step shows it."""
    held = [one.held for one in found.candidates.values()]
    others = [
        {"text": one.text, "candidates": sum(bool(some & one.bits) for some in held)} for one in found.wordings[1:]
    ]
    return {
        "by": f"the {found.index} message index",
        "words": [word.text for word in found.query.words],
        "terms": [
            {"token": term.token, "weight": round(term.weight, 3), "in_messages": term.frequency}
            for term in found.terms
        ],
        "terms_beyond_budget": [{"token": term.token, "in_messages": term.frequency} for term in found.cut_terms],
        "taken_for_typos": dict(found.typos),
        "candidates": len(found.candidates),
        "ranked": len(found.ranked),
        "filtered_out": found.filtered_out,
        **({"also": others} if others else {}),
        **({"meaning": _meaning_explained(found.similar)} if found.similar else {}),
    }


def outcome(verdicts: Sequence[Judged]) -> dict[str, Any]:
    """What became of the messages found, as an execution's step shows it: those kept, and the best of the others."""
    kept = [judged for judged in verdicts if judged.reason is None]
    dropped = [judged for judged in verdicts if judged.reason is not None]
    nearly = dropped[: max(NEARLY_KEPT, KEPT_ITEMS - len(kept))]
    shown = [judged.as_dict() for judged in (*kept[: KEPT_ITEMS - len(nearly)], *nearly)]
    return {"kept": len(kept), "dropped": len(dropped), "verdicts": shown}


def turns_in(kept: Iterable[Judged]) -> list[Turn]:
    """The turns of some messages, each once, in that order."""
    return list(dict.fromkeys(map(attrgetter("channel_id", "turn"), map(attrgetter("ranked.candidate"), kept))))


LEAST_COVERAGE = 0.2
"""A message that holds less than this share of every wording is no hit in a list of hits."""
SPOKEN = ["user", "assistant"]
"""Who speaks in a conversation: what tools said, and what a client put in, is not why one is found."""


@dataclass(frozen=True)
class Found:
    """What a request was read as, what it found, and the verdict on each message."""

    read: Understood
    result: SearchResult
    verdicts: Sequence[Judged]
    least: float = LEAST_COVERAGE
    listed: Scope | None = None
    """Where all that was said is meant, because a time or place is named and no words are."""

    @cached_property
    def kept(self) -> list[Judged]:
        """The messages that have to do with it themselves; those that only stand beside one are no hits."""
        matched = self.result.matched
        similar = self.result.similar.standing_out if self.result.similar else frozenset()
        return [
            one
            for one in self.verdicts
            if (one.ranked.candidate.number in matched and one.coverage >= self.least)
            or one.ranked.candidate.number in similar
        ]


def least_of(run: Run, query: SearchQuery | SessionsQuery) -> float:
    """The share of the request that makes a hit; noted where another than the usual one is tried."""
    if query.least_coverage is None:
        return LEAST_COVERAGE
    run.recorder.explain(least_coverage=query.least_coverage)
    return query.least_coverage


def is_about_something(read: Understood, result: SearchResult) -> bool:
    """Whether more is asked for than a time or a place."""
    return bool(result.terms or read.has_words or read.search.excluded)


CLOSE = 0.85
"""A channel that scores so much of the best one may as well be meant."""


def best_channels(found: SearchResult, verdicts: Iterable[Judged]) -> list[tuple[int, float]]:
    """Channels with their scores, best first: those with a message that has to do with the request, or such a title."""
    kept = {one.ranked.candidate.channel_id for one in verdicts if one.reason is None}
    shown = kept | found.titles.keys()
    best = [(one.number, one.score) for one in found.channels if one.number in shown]
    similar = found.similar.standing_out if found.similar else frozenset()
    if best and found.covered(best[0][0]) >= CALLED:  # others are not meant, however near in meaning
        near = {one.candidate.channel_id for one in found.ranked if one.candidate.number in similar}
        return [(number, score) for number, score in best if found.covered(number) or number in near]
    return best if similar or any(found.covered(number) >= FLOOR for number, _ in best[:FIRST]) else []


FIRST = 5  # conversations of which one must hold enough of the request


def confidence_in(
    found: SearchResult,
    channel_number: int,
    scores: Sequence[float] = (),
    *,
    is_narrowed: bool = False,
    goes_on: bool = False,
) -> Confidence:
    """Return how sure it is that a channel answers. `scores`: those of the best channels, where it was chosen as the
    first.

    Who `goes_on` names a conversation in few words: one that holds them all as they are spelled is no guess.
    """
    lead = 1 - scores[1] / scores[0] if len(scores) > 1 and scores[0] > 0 else 1.0
    covered = found.covered(channel_number)
    is_meant = found.is_called(channel_number) or (goes_on and covered >= CALLED and not found.typos)
    return confidence_of(covered, lead, is_narrowed=is_narrowed or is_meant)


SOME = 0.45
"""What holds less of a request holds words that are said of anything."""


def holds_some(found: SearchResult, channel_number: int) -> bool:
    """Whether a channel holds enough of some wording for its time or place to speak for it, too."""
    return found.covered(channel_number) >= SOME


def guess(said: str, found: SearchResult | None) -> str:
    """What is said of a guess; and what kept meaning out, for with it there may be more."""
    kept_out = found.similar.note if found and found.similar else ""
    return f"{said} Found by words alone: {kept_out}." if kept_out else said


def _meaning_explained(similar: SimilarMessages) -> dict[str, Any]:
    """What was compared, or why nothing was, as an execution's step shows it."""
    if similar.note:
        return {"not_asked": similar.note}
    return {
        "model": similar.model,
        "vectors": similar.vectors,
        "least_similarity": round(similar.least, 3),
        "similar": len(similar.standing_out),
    }
