"""Decide the confidence in an answer from the share of the request that the conversation contains. Pure.

A threshold on single messages would not work: the best of many messages always contains some words.
`benchmarks/RESULTS.md` says how often each level is right.
"""

from enum import StrEnum

from registry.text.ranking import weights


class Confidence(StrEnum):
    """Confidence that the conversation is the right one: in 95 % of cases, in 80 %, or less (the user chooses)."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


def confidence_of(coverage: float, lead: float = 1.0, *, is_explicit: bool = False) -> Confidence:
    """Return the confidence in a conversation.

    `coverage`: its share of the request (`SearchResult.coverage`). `lead`: its distance to the next one, as a share of
    its score; 1 if the user named it. `is_explicit`: the request names its time, client, project or title.
    """
    if coverage >= weights.HIGH and lead >= weights.HIGH_LEAD:
        return Confidence.HIGH
    is_medium = coverage >= weights.MEDIUM and lead >= weights.MEDIUM_LEAD
    return Confidence.MEDIUM if is_explicit or is_medium else Confidence.LOW
