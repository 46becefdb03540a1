"""Decide how sure an answer is, from the share of the request that the conversation holds. Pure.

A threshold on single messages says nothing: the best of many always holds something. `benchmarks/RESULTS.md` has how
often each level is right.
"""

from enum import StrEnum

from registry.text.ranking import weights


class Confidence(StrEnum):
    """Confidence that a conversation answers: right in 95 %, in 80 %, or one of a few to choose from."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


def confidence_of(covered: float, lead: float = 1.0, *, is_meant: bool = False) -> Confidence:
    """Return the level.

    `covered`: the share of the request that the conversation holds (`SearchResult.covered`). `lead`: the share of its
    score by which it leads the next one, 1 for one that was named. `is_meant`: the request names its time, client,
    project or title.
    """
    if covered >= weights.HIGH and lead >= weights.HIGH_LEAD:
        return Confidence.HIGH
    is_medium = covered >= weights.MEDIUM and lead >= weights.MEDIUM_LEAD
    return Confidence.MEDIUM if is_meant or is_medium else Confidence.LOW
