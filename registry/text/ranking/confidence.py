"""Whether what was found answers at all: by how much of the request one conversation holds, and how rare that is.

No threshold on single messages works (the best of many always holds something), but figures of a conversation do:
the share of the request that all of it holds, and how much one place of it holds in words as rare as the rarest
(with other wordings of the request the two best of all count); how long it is, for a long one holds more of anything;
how far beyond chance its most similar message lies; and its lead over the next conversations. The coefficients are
logistic regressions on questions of four sets, against questions of other people's lives
(`docs/decisions/0010-what-answers.md`). Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import log
from typing import NamedTuple


class Confidence(StrEnum):
    """How sure it is that the answer is one. `LOW` is a guess, and is called one."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Evidence(NamedTuple):
    """Of one wording: the share of it that the conversation holds (0 to 1), and what its best place holds, in words
    that occur nowhere else."""

    covered: float
    told: float


class _Line(NamedTuple):
    """What each figure counts, and from which sum on it is medium or high."""

    covered: float
    told: float
    size: float
    near: float
    lead: float
    medium: float
    high: float


_LINES = {
    (False, False, False): _Line(4.5, 2.34, -1.3, 0.0, 0.0, 0.1, 2.0),
    (False, False, True): _Line(2.54, 1.74, -0.83, 0.66, 0.0, -0.25, 0.9),
    (False, True, False): _Line(5.12, 1.07, -0.51, 0.0, 2.88, 6.15, 7.3),
    (False, True, True): _Line(3.59, 0.79, -0.44, 0.65, 1.53, 4.2, 5.15),
    (True, False, False): _Line(6.41, 1.74, -0.92, 0.0, 0.0, 2.5, 4.2),
    (True, False, True): _Line(5.02, 1.59, -0.9, 0.6, 0.0, 1.8, 3.25),
    (True, True, False): _Line(7.33, 0.79, -0.43, 0.0, 1.73, 7.3, 8.5),
    (True, True, True): _Line(5.8, 0.65, -0.5, 0.57, 2.39, 6.75, 8.1),
}
"""By whether there are several wordings, whether the conversation is the best of many, and whether a model was asked:
each way of asking has its line, drawn where some 5 % of the questions of another life are medium or more."""
_BEST = 2
_SMALLEST, _LARGEST = 8.0, 130.0
"""Conversations of fewer or more messages took no part in the fit: they count as these."""


def confidence_of(
    evidence: Sequence[Evidence],
    *,
    size: float = _SMALLEST,
    near: float | None = None,
    lead: float | None = None,
    is_narrowed: bool = False,
) -> Confidence:
    """The word for it.

    `size`: how many messages of mean length the conversation is; a longer one holds more by chance.
    `near`: how many deviations the most similar message lies beyond what chance gives; None where no model was asked.
    `lead`: the share of its score by which the conversation leads the next of many (`lead_of`), and the best of many
    holds more by chance; None for one that was named.
    `is_narrowed`: the request names its time, client or project, and they are right: that is evidence, too.
    """
    line = _LINES[len(evidence) > 1, lead is not None, near is not None]
    words = line.covered * _best([one.covered for one in evidence]) + line.told * _best([one.told for one in evidence])
    chance = line.size * log(min(max(size, _SMALLEST), _LARGEST))
    figure = words + chance + line.near * (near or 0.0) + line.lead * (lead or 0.0)
    if evidence and figure >= line.high:
        return Confidence.HIGH
    return Confidence.MEDIUM if is_narrowed or (evidence and figure >= line.medium) else Confidence.LOW


def _best(figures: Sequence[float]) -> float:
    """The mean of the two best of all wordings."""
    best = sorted(figures, reverse=True)[:_BEST]
    return sum(best) / max(len(best), 1)


_NEXT = 5


def lead_of(scores: Sequence[float]) -> float | None:
    """How far the first of some scores, best first, leads the five next, as a share of it; those missing score 0."""
    return 1.0 - sum(scores[1 : 1 + _NEXT]) / _NEXT / scores[0] if scores and scores[0] > 0 else None
