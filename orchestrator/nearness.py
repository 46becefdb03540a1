"""Messages judged by their words and by their meaning, made one ranking. Pure.

Each ranking holds only what it calls relevant; a message that both call so comes before one that only one does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from orchestrator.reasons import Reason
from registry.text.rank_fusion import SimilarMessages, fuse

if TYPE_CHECKING:
    from orchestrator.relevance import Judged
    from registry.search.retrieval import SearchResult


class Places(NamedTuple):
    """Where a message stands by words and by meaning (1 is first, None not at all), and the score of both together."""

    by_words: int | None
    by_meaning: int | None
    similarity: float | None
    fused: float

    def as_dict(self) -> dict[str, Any]:
        """As an execution's step shows it."""
        return {**self._asdict(), "fused": round(self.fused, 3)}


def is_near(findings: SearchResult) -> bool:
    """Whether anything was found by meaning."""
    return bool(findings.similar and findings.similar.similarities)


def fused(verdicts: Sequence[Judged], nearness: SimilarMessages | None, least_share: float) -> list[Judged]:
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


def fused_channels(by_words: Sequence[int], kept: Sequence[Judged]) -> list[tuple[int, float]]:
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


def explained(nearness: SimilarMessages) -> dict[str, Any]:
    """What was compared, or why nothing was, as an execution's step shows it."""
    if nearness.note:
        return {"not_asked": nearness.note}
    return {
        "model": nearness.model,
        "vectors": nearness.vectors,
        "least_similarity": round(nearness.least, 3),
        "near": len(nearness.similarities),
    }
