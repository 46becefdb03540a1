"""How sure it is that a conversation answers, told by the share of the request that it holds. Pure.

A threshold on single messages says nothing: the best of many always holds something. `benchmarks/RESULTS.md` has how
often each level is right.
"""

from __future__ import annotations

from enum import StrEnum

HIGH, MEDIUM, FLOOR = 0.8, 0.55, 0.12
"""The shares of a request, by rarity, from which on an answer is high, medium, or given at all."""
HIGH_LEAD, MEDIUM_LEAD = 0.25, 0.1
"""How far the first conversation must lead the second, as a share of its score."""


class Confidence(StrEnum):
    """How sure it is that the answer is one. `LOW` is a guess, and is called one."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


def confidence_of(covered: float, lead: float = 1.0, *, is_narrowed: bool = False) -> Confidence:
    """Return the level.

    `covered`: the share of the request that the conversation holds (`SearchResult.covered`). `lead`: the share of its
    score by which it leads the next one, 1 for one that was named. `is_narrowed`: the request names its time, client
    or project, and they are right.
    """
    if covered >= HIGH and lead >= HIGH_LEAD:
        return Confidence.HIGH
    is_medium = covered >= MEDIUM and lead >= MEDIUM_LEAD
    return Confidence.MEDIUM if is_narrowed or is_medium else Confidence.LOW
