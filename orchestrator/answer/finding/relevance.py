"""Judge which messages found are relevant to the request, and the confidence in an answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

from orchestrator.recording.recorder import MAX_ITEMS
from registry.search.retrieval import FULL_COVERAGE, SearchResult
from registry.search.scope import Scope
from registry.text.ranking import weights
from registry.text.ranking.confidence import Confidence, confidence_of
from registry.text.ranking.scores import SEQ_BITS, Ranked
from registry.text.request.understanding import ParsedRequest

CLOSE_SCORE = 0.85  # share of the best channel's score from which another channel may be the right one
MIN_COVERAGE = 0.2  # share of a wording; a message with less of every wording is not listed as a hit
MIN_DEVIATIONS = 2.0  # standard deviations above the mean from which a similar message counts for its conversation

REASONS = {
    "parts": "contains only parts of words, and is next to no better message",
    "dated": "is of that date, but its conversation contains nothing of the request",
    "similar": "contains no word of the request, and is not similar enough",
}


class JudgedMessage(NamedTuple):
    """The verdict on a message found. `reason`: why it was dropped; None if it is relevant.

    `coverage`: its share of the wording that it matches best; `wording`: the index of that one, 0 is the question.
    """

    ranked: Ranked
    coverage: float
    wording: int
    reason: str | None
    similarity: float | None = None

    @property
    def score(self) -> float:
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


def judge_messages(found: SearchResult) -> list[JudgedMessage]:
    """Judge every message found, best first.

    A message is relevant if it contains a query word, is similar to the request, is next to such a message, or is of a
    date in the request and in a conversation with such a message.
    """
    similar = found.similar
    similar_hits = similar.hits if similar else frozenset[int]()
    matched = found.matched | similar_hits
    some = [one.candidate for one in found.ranked]
    matched_positions = {one[1] << SEQ_BITS | one[2] for one in some if one[0] in matched}
    matched_channels = {position >> SEQ_BITS for position in matched_positions} if found.dated else set()
    shares = cache(partial(_best_wording, found))
    verdicts = []
    for one, message in zip(found.ranked, some, strict=True):
        number = message[0]
        coverage, best = shares(message.term_bits)
        reason = None
        if number not in matched:
            position = message[1] << SEQ_BITS | message[2]
            is_next_to_match = position - 1 in matched_positions or position + 1 in matched_positions
            if not is_next_to_match and not (number in found.dated and message[1] in matched_channels):
                without_words = "dated" if number in found.dated else "similar"
                reason = REASONS["parts" if coverage > 0 else without_words]
        verdicts.append(
            JudgedMessage(one, coverage, best, reason, similar.similarities.get(number) if similar else None)
        )
    return verdicts


def _best_wording(found: SearchResult, term_bits: int) -> tuple[float, int]:
    """Return the largest share that these terms have of a wording, and the index of that wording."""
    shares = [found.wording_share(term_bits, wording) for wording in found.wordings]
    best = max(shares, default=0.0)
    return best, shares.index(best) if shares else 0


def describe_search(found: SearchResult) -> dict[str, Any]:
    """Describe which terms were looked up or skipped, as recorded with the step of an execution."""
    term_bits = [one.term_bits for one in found.candidates.values()]
    others = [
        {"text": one.text, "candidates": sum(bool(some & one.term_bits) for some in term_bits)}
        for one in found.wordings[1:]
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


def describe_verdicts(verdicts: Sequence[JudgedMessage]) -> dict[str, Any]:
    """Describe the relevant messages and the best dropped ones, as recorded with the step of an execution."""
    relevant = [judged for judged in verdicts if judged.reason is None]
    dropped = [judged for judged in verdicts if judged.reason is not None]
    best_dropped = dropped[: max(10, MAX_ITEMS - len(relevant))]
    shown = [judged.as_dict() for judged in (*relevant[: MAX_ITEMS - len(best_dropped)], *best_dropped)]
    return {"kept": len(relevant), "dropped": len(dropped), "verdicts": shown}


@dataclass(frozen=True)
class JudgedSearch:
    """A parsed request, its search result, and the verdict on each message.

    `listed_scope`: the scope to list completely, if the request has a time or place but no words.
    """

    parsed: ParsedRequest
    result: SearchResult
    verdicts: Sequence[JudgedMessage]
    listed_scope: Scope | None = None

    @cached_property
    def hits(self) -> list[JudgedMessage]:
        """Return the messages that match the request themselves, without their neighbours."""
        matched = self.result.matched
        similar = self.result.similar.hits if self.result.similar else frozenset[int]()
        return [
            one
            for one in self.verdicts
            if (one.ranked.candidate.number in matched and one.coverage >= MIN_COVERAGE)
            or one.ranked.candidate.number in similar
        ]


def has_subject(parsed: ParsedRequest, result: SearchResult) -> bool:
    """Return True if the request has more than a time or a place."""
    return bool(result.terms or parsed.has_words or parsed.search.excluded)


def best_channels(found: SearchResult, *, is_narrowed: bool = False) -> list[tuple[int, float]]:
    """Return the channels with their scores, best first; none if the best one is not supported well enough.

    A channel needs a message or title with a query word, or a similar message.
    """
    shown = {found.candidates[number].channel_id for number in found.matched} | found.titles.keys()
    if similar := found.similar:
        similar_messages = (number for number in similar.similarities if similar.deviations(number) >= MIN_DEVIATIONS)
        shown |= {similar.candidates[number].channel_id for number in similar_messages}
    best = [(one.number, one.score) for one in found.channels if one.number in shown]
    return best if best and found.is_supported(best[0][0], is_narrowed=is_narrowed) else []


def confidence_in(
    found: SearchResult, channel_number: int, scores: Sequence[float], parsed: ParsedRequest | None = None
) -> Confidence:
    """Return the confidence in a channel. `scores`: those of the best channels, if it was chosen among them.

    `parsed`: the request; None: only its words count. A time, client or project in it is evidence too, if the channel
    contains some of the words. A request to continue has few words, so containing all of them as spelled is enough.
    Several wordings share words with any conversation on the subject: the right one contains two of them completely, or
    many rare words.
    """
    lead = 1 - scores[1] / scores[0] if len(scores) > 1 and scores[0] > 0 else 1.0
    coverage = found.coverage(channel_number)
    is_explicit = (
        (parsed is not None and parsed.is_narrowed and coverage >= 0.45)
        or found.has_matching_title(channel_number)
        or (parsed is not None and parsed.is_continuation and coverage >= FULL_COVERAGE and not found.typos)
    )
    is_on_subject_alone = (
        len(found.wordings) > 2
        and coverage < FULL_COVERAGE
        and found.rare_word_count(channel_number) < weights.SURE_WORDS
    )
    return confidence_of(0.0 if is_on_subject_alone else coverage, lead, is_explicit=is_explicit)
