"""Which of the messages found answer the request: judged by their words, and by meaning where that is asked. Pure.

The ranking by words and the one by meaning each hold only what they call relevant; fused, a message that both call so
comes before one that only one does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from orchestrator.delivery import Turn
from orchestrator.recorder import KEPT_ITEMS
from registry.search.retrieval import SearchResult
from registry.text.rank_fusion import SimilarMessages, fuse
from registry.text.ranking import Ranked
from registry.text.term_weights import coverage

LEAST_COVERAGE = 0.2
"""A message that covers less than this share of the request is not an answer to it."""
LEAST_SHARE = 0.5
"""A message that scores less than this share of the best one is not shown beside it.

Both from `python -m benchmarks.retrieval --sweep`: less share brings wrong turns and no right ones, more of
either costs right ones.
"""
NEARLY_KEPT = 10
"""So many places in a record are for the best of those that were dropped: they show where the line was drawn."""

REASONS = {
    "parts": "contains parts of words only, or what sounds like them",
    "coverage": "covers {share} of the request, less than {least}",
    "score": "scores {share} of the best, less than {least}",
    "meaning": "is {share} as near in meaning as the nearest, less than {least}",
}
"""Why a message that was found is dropped: a code in the record, words where it is read."""


class Reason(NamedTuple):
    """One of REASONS, with the shares (0 to 1) that decided."""

    code: str
    share: float = 0.0
    least: float = 0.0

    def __str__(self) -> str:
        return REASONS[self.code].format(share=f"{self.share:.0%}", least=f"{self.least:.0%}")


class Places(NamedTuple):
    """Where a message stands by words and by meaning (1 is first, None not at all), and the score of both together."""

    by_words: int | None
    by_meaning: int | None
    similarity: float | None
    fused: float

    def as_dict(self) -> dict[str, Any]:
        """As an execution's step shows it."""
        return {**self._asdict(), "fused": round(self.fused, 3)}


class Judged(NamedTuple):
    """A message found, with the verdict on it; `reason` says why it was dropped, None for one that was kept.

    `places` is where it stands by words and by meaning, where both were asked.
    """

    ranked: Ranked
    coverage: float
    reason: Reason | None
    places: Places | None = None

    @property
    def score(self) -> float:
        """What it is ranked by."""
        return self.places.fused if self.places else self.ranked.score

    def as_dict(self) -> dict[str, Any]:
        """As an execution's step shows it."""
        found = self.ranked.candidate
        by_meaning = self.places.as_dict() if self.places else {}
        return by_meaning | {
            "message": found.number,
            "role": found.role,
            "channel_number": found.channel_id,
            "score": round(self.ranked.score, 3),
            "own": round(self.ranked.own, 3),
            "neighbours": round(self.ranked.neighbours, 3),
            "session": round(self.ranked.session, 3),
            "coverage": round(self.coverage, 3),
            "kept": self.reason is None,
            "reason": str(self.reason) if self.reason else None,
            "because": self.reason._asdict() if self.reason else None,
        }


def judge(findings: SearchResult, least_share: float = LEAST_SHARE) -> list[Judged]:
    """A verdict on every message found, best first."""
    best = max((_own(ranked) for ranked in findings.ranked), default=0.0)
    verdicts = [_judged(ranked, findings, least_share * best, best) for ranked in findings.ranked]
    return _fused(verdicts, findings.similar, least_share) if _is_compared(findings) else verdicts


def _judged(ranked: Ranked, findings: SearchResult, least: float, best: float) -> Judged:
    reason = None
    covered = coverage(ranked.candidate.weight, findings.full)
    if ranked.candidate.number not in findings.matched:
        reason = Reason("parts")
    elif covered < LEAST_COVERAGE:
        reason = Reason("coverage", round(covered, 3), LEAST_COVERAGE)
    elif _own(ranked) < least:
        reason = Reason("score", round(_own(ranked) / best, 3), round(least / best, 3))
    return Judged(ranked, covered, reason)


def explanation(findings: SearchResult) -> dict[str, Any]:
    """What was looked up, and what was not and why, as an execution's step shows it."""
    return {
        "by": f"the {findings.index} message index",
        "words": [word.text for word in findings.query.words],
        "terms": [
            {"token": term.token, "weight": round(term.weight, 3), "in_messages": term.frequency}
            for term in findings.terms
        ],
        "terms_beyond_budget": [{"token": term.token, "in_messages": term.frequency} for term in findings.cut_terms],
        "taken_for_typos": dict(findings.typos),
        "candidates": findings.candidates,
        "ranked": len(findings.ranked),
        "unconfirmed": findings.filtered_out,
        **({"meaning": _meaning_explained(findings.similar)} if findings.similar else {}),
    }


def outcome(verdicts: Sequence[Judged]) -> dict[str, Any]:
    """What became of the messages found, as an execution's step shows it: those kept, and the best of the others."""
    kept = [judged for judged in verdicts if judged.reason is None]
    dropped = [judged for judged in verdicts if judged.reason is not None]
    nearly = dropped[: max(NEARLY_KEPT, KEPT_ITEMS - len(kept))]
    shown = [judged.as_dict() for judged in (*kept[: KEPT_ITEMS - len(nearly)], *nearly)]
    return {"kept": len(kept), "dropped": len(dropped), "verdicts": shown}


def _own(ranked: Ranked) -> float:
    """The score without what the whole channel adds, which is the same for all its messages."""
    return ranked.score - ranked.session


def turns_in(kept: Iterable[Judged]) -> list[Turn]:
    """The turns of some messages, each once, in that order."""
    return list(dict.fromkeys((one.ranked.candidate.channel_id, one.ranked.candidate.turn) for one in kept))


def best_channels(findings: SearchResult) -> list[tuple[int, float]]:
    """Channels with their scores, best first: by their best relevant message and their title."""
    return session_scores([judged for judged in judge(findings, 0.0) if judged.reason is None], findings)


def session_scores(kept: Iterable[Judged], findings: SearchResult) -> list[tuple[int, float]]:
    """The channels of the messages kept, with their scores, best first; of equal ones the newer first."""
    judged_all = list(kept)
    scores: dict[int, float] = defaultdict(float)
    for judged in judged_all:
        number = judged.ranked.candidate.channel_id
        if judged.places and judged.places.by_words is None:
            continue
        scores[number] = max(scores[number], judged.ranked.score)
    for number, mass in findings.titles.items():
        if coverage(mass, findings.full) >= LEAST_COVERAGE:
            scores[number] += mass
    by_words = sorted(scores.items(), key=lambda item: (-item[1], -item[0]))
    return _fused_channels([number for number, _ in by_words], judged_all) if _is_compared(findings) else by_words


def _is_compared(findings: SearchResult) -> bool:
    """Whether anything was found by meaning."""
    return bool(findings.similar and findings.similar.similarities)


def _fused(verdicts: Sequence[Judged], nearness: SimilarMessages | None, least_share: float) -> list[Judged]:
    """The verdicts in the order of both rankings; what is near enough is kept, whatever its words."""
    nearness = nearness or SimilarMessages()
    words = [_number(judged) for judged in verdicts if judged.reason is None]
    near = [number for number in nearness.similarities if nearness.share(number) >= least_share]
    scores = fuse([words, near])
    by_words, by_meaning = _places(words), _places(near)
    order = {number: place for place, number in enumerate(scores)}

    def placed(judged: Judged) -> Judged:
        number = _number(judged)
        places = Places(
            by_words.get(number),
            by_meaning.get(number),
            nearness.similarities.get(number),
            scores.get(number, 0.0),
        )
        reason = None if number in scores else _too_far(judged, nearness, least_share) or judged.reason
        return judged._replace(places=places, reason=reason)

    return sorted(map(placed, verdicts), key=lambda judged: order.get(_number(judged), len(order)))


def _too_far(judged: Judged, nearness: SimilarMessages, least_share: float) -> Reason | None:
    number = _number(judged)
    if judged.ranked.score or number not in nearness.similarities:
        return None
    return Reason("meaning", nearness.share(number), least_share)


def _fused_channels(by_words: Sequence[int], kept: Sequence[Judged]) -> list[tuple[int, float]]:
    """Channels in the order of both rankings, by meaning as their nearest message stands."""
    near = sorted(
        (judged.places.by_meaning, judged.ranked.candidate.channel_id)
        for judged in kept
        if judged.places and judged.places.by_meaning
    )
    return list(fuse([by_words, list(dict.fromkeys(number for _, number in near))]).items())


def _places(ranking: Sequence[int]) -> Mapping[int, int]:
    return {number: place for place, number in enumerate(ranking, 1)}


def _number(judged: Judged) -> int:
    return judged.ranked.candidate.number


def _meaning_explained(nearness: SimilarMessages) -> dict[str, Any]:
    """What was compared, or why nothing was, as an execution's step shows it."""
    if nearness.note:
        return {"not_asked": nearness.note}
    return {
        "model": nearness.model,
        "vectors": nearness.vectors,
        "least_similarity": round(nearness.least, 3),
        "near": len(nearness.similarities),
    }
