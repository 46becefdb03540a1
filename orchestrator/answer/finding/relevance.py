"""Judge which of the messages found have to do with the request, and how sure an answer is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from operator import attrgetter
from typing import Any, NamedTuple

from orchestrator.answer.delivery import Turn
from orchestrator.recording.recorder import KEPT_ITEMS
from registry.search.retrieval import FULL_COVERAGE, SearchResult
from registry.search.scope import Scope
from registry.text.ranking import weights
from registry.text.ranking.confidence import Confidence, confidence_of
from registry.text.ranking.scores import SEQ_BITS, Ranked
from registry.text.request.understanding import ParsedRequest

CLOSE = 0.85  # of the best channel's score: a channel that may as well be meant
LEAST_COVERAGE = 0.2  # of a wording: a message that holds less of every one is no hit in a list of hits
NEAR = 2.0  # standard deviations above the mean from which on a similar message speaks for its conversation

REASONS = {
    "parts": "contains only parts of words, and stands beside nothing better",
    "dated": "was said on the date, in a conversation that holds nothing of the request",
}


class Judged(NamedTuple):
    """The verdict on a message found; `reason` says why it was dropped, None for one that was kept.

    `coverage` is the share it holds of the wording it holds most of; `wording` the index of that one, 0 the question.
    """

    ranked: Ranked
    coverage: float
    wording: int
    reason: str | None
    similarity: float | None = None

    @property
    def score(self) -> float:
        """Return the score it is ranked by."""
        return self.ranked.score

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as an execution's step records it."""
        found = self.ranked.candidate
        by_meaning = {} if self.similarity is None else {"similarity": self.similarity}
        return by_meaning | {
            "message": found.number,
            "role": found.role,
            "channel_number": found.channel_id,
            "score": round(self.ranked.score, 3),
            "own": round(self.ranked.base_score, 3),
            "neighbours": round(self.ranked.neighbour_score, 3),
            "coverage": round(self.coverage, 3),
            "wording": self.wording,
            "kept": self.reason is None,
            "reason": self.reason,
        }


def judge(found: SearchResult) -> list[Judged]:
    """Judge every message found, best first.

    Kept are those that hold a word of the request, are similar to it, stand beside one of these, or were said on a date
    that the request names in a conversation that holds a word.
    """
    similar = found.similar
    near = similar.hits if similar else frozenset[int]()
    matched = found.matched | near
    some = [one.candidate for one in found.ranked]
    holding = {one[1] << SEQ_BITS | one[2] for one in some if one[0] in matched}
    spoken_of = {place >> SEQ_BITS for place in holding} if found.dated else set()
    shares = cache(partial(_most_covered, found))
    verdicts = []
    for one, message in zip(found.ranked, some, strict=True):
        number = message[0]
        covered, best = shares(message.term_bits)
        reason = None
        if number not in matched:
            place = message[1] << SEQ_BITS | message[2]
            is_beside = place - 1 in holding or place + 1 in holding
            if not is_beside and not (number in found.dated and message[1] in spoken_of):
                reason = REASONS["parts" if covered > 0 else "dated"]
        verdicts.append(Judged(one, covered, best, reason, similar.similarities.get(number) if similar else None))
    return verdicts


def _most_covered(found: SearchResult, held: int) -> tuple[float, int]:
    """Return the largest share of a wording that these terms are, and the index of that wording."""
    shares = [found.wording_share(held, wording) for wording in found.wordings]
    best = max(shares, default=0.0)
    return best, shares.index(best) if shares else 0


def explanation(found: SearchResult) -> dict[str, Any]:
    """Return what was looked up, and what was not and why, as an execution's step records it."""
    held = [one.term_bits for one in found.candidates.values()]
    others = [
        {"text": one.text, "candidates": sum(bool(some & one.term_bits) for some in held)} for one in found.wordings[1:]
    ]
    similar = found.similar
    meaning = similar and (
        {"not_asked": similar.note}
        if similar.note
        else {"model": similar.model, "vectors": similar.vectors, "least_similarity": round(similar.threshold, 3)}
        | {"similar": len(similar.hits)}
    )
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
        "echoes": len(found.non_answers),
        **({"also": others} if others else {}),
        **({"meaning": meaning} if meaning else {}),
    }


def outcome(verdicts: Sequence[Judged]) -> dict[str, Any]:
    """Return the messages kept and the best of those dropped, as an execution's step records them."""
    kept = [judged for judged in verdicts if judged.reason is None]
    dropped = [judged for judged in verdicts if judged.reason is not None]
    nearly = dropped[: max(10, KEPT_ITEMS - len(kept))]
    shown = [judged.as_dict() for judged in (*kept[: KEPT_ITEMS - len(nearly)], *nearly)]
    return {"kept": len(kept), "dropped": len(dropped), "verdicts": shown}


def turns_in(kept: Iterable[Judged]) -> list[Turn]:
    """Return the turns of some messages, each once, in that order."""
    return list(dict.fromkeys(map(attrgetter("channel_id", "turn"), map(attrgetter("ranked.candidate"), kept))))


@dataclass(frozen=True)
class Found:
    """A request as it was read, the result, and the verdict on each message.

    `listed`: the scope of which everything is meant, because a time or place is named and no words are.
    """

    read: ParsedRequest
    result: SearchResult
    verdicts: Sequence[Judged]
    listed: Scope | None = None

    @cached_property
    def kept(self) -> list[Judged]:
        """Return the messages that have to do with the request themselves, without their neighbours."""
        matched = self.result.matched
        similar = self.result.similar.hits if self.result.similar else frozenset[int]()
        return [
            one
            for one in self.verdicts
            if (one.ranked.candidate.number in matched and one.coverage >= LEAST_COVERAGE)
            or one.ranked.candidate.number in similar
        ]


def is_about_something(read: ParsedRequest, result: SearchResult) -> bool:
    """Return True if more is asked for than a time or a place."""
    return bool(result.terms or read.has_words or read.search.excluded)


def best_channels(found: SearchResult, *, is_narrowed: bool = False) -> list[tuple[int, float]]:
    """Return the channels with their scores, best first; none if the first does not hold enough of the request.

    Listed are those with a message or title that holds a word, or a similar message.
    """
    shown = {found.candidates[number].channel_id for number in found.matched} | found.titles.keys()
    if similar := found.similar:
        near = (number for number in similar.similarities if similar.deviations(number) >= NEAR)
        shown |= {similar.candidates[number].channel_id for number in near}
    best = [(one.number, one.score) for one in found.channels if one.number in shown]
    return best if best and found.is_supported(best[0][0], is_narrowed=is_narrowed) else []


def confidence_in(
    found: SearchResult,
    channel_number: int,
    scores: Sequence[float] = (),
    *,
    is_narrowed: bool = False,
    is_continuation: bool = False,
) -> Confidence:
    """Return how sure it is that a channel answers. `scores`: those of the best channels, where it was chosen.

    A time, client or project that the request names is evidence, too, if the channel holds some of the words. A request
    to continue names a conversation in few words: one that holds them all as they are spelled is meant. Several
    wordings share some words with any conversation on the subject: the one that answers holds two of them whole, or
    many rare words.
    """
    lead = 1 - scores[1] / scores[0] if len(scores) > 1 and scores[0] > 0 else 1.0
    covered = found.coverage(channel_number)
    is_meant = (
        (is_narrowed and covered >= 0.45)
        or found.has_matching_title(channel_number)
        or (is_continuation and covered >= FULL_COVERAGE and not found.typos)
    )
    is_on_subject_alone = (
        len(found.wordings) > 2
        and covered < FULL_COVERAGE
        and found.rare_word_count(channel_number) < weights.SURE_WORDS
    )
    return confidence_of(0.0 if is_on_subject_alone else covered, lead, is_explicit=is_meant)
