"""Whether what was found answers at all: by how much of the request one conversation holds, and how telling that is.

No threshold on single messages works (the best of many always holds something), but figures of a conversation do:
the share of the request that all of it holds, and how much one place of it holds in words as telling as the rarest
(with other wordings of the request the two best of all count); how far beyond chance its most similar message lies;
and its lead over the next conversation. The coefficients are logistic regressions on questions of four sets, against
questions of other people's lives (`docs/decisions/0010-what-answers.md`). Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
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
    covered: float
    told: float
    constant: float


_ONE_WORDING = _Line(2.6, 1.15, -2.95)
_SEVERAL = _Line(6.55, 1.5, -6.35)


class _Least(NamedTuple):
    """Of the three figures what each counts, and from which sum on it is medium or high."""

    words: float
    near: float
    lead: float
    medium: float
    high: float


_LEAST = {
    (False, False, False): _Least(1.04, 0.0, 0.0, -0.36, 0.94),
    (False, False, True): _Least(0.68, 0.89, 0.0, -0.07, 1.08),
    (False, True, False): _Least(1.19, 0.0, 1.17, 1.85, 2.8),
    (False, True, True): _Least(0.82, 0.66, 1.24, 1.45, 2.7),
    (True, False, False): _Least(0.68, 0.0, 0.0, -0.06, 1.04),
    (True, False, True): _Least(0.6, 0.29, 0.0, 0.2, 1.2),
    (True, True, False): _Least(0.58, 0.0, 2.37, 2.48, 3.4),
    (True, True, True): _Least(0.47, 0.28, 3.2, 2.82, 3.75),
}
"""By whether there are several wordings, whether the conversation is the best of many, and whether a model was asked:
each way of asking has its line, drawn where some 5 % of the questions of another life are medium or more."""
NOTHING = -6.0
"""What no word of the request counts as."""
_BEST = 2


def logit(evidence: Sequence[Evidence]) -> float:
    """What the words of all wordings say, as one figure; 0 is as likely as not."""
    if not evidence:
        return NOTHING
    best = min(_BEST, len(evidence))
    covered = sum(sorted((one.covered for one in evidence), reverse=True)[:best]) / best
    told = sum(sorted((one.told for one in evidence), reverse=True)[:best]) / best
    line = _SEVERAL if len(evidence) > 1 else _ONE_WORDING
    return line.covered * covered + line.told * told + line.constant


def confidence_of(
    evidence: Sequence[Evidence],
    *,
    near: float | None = None,
    lead: float | None = None,
    is_narrowed: bool = False,
) -> Confidence:
    """The word for it.

    `near`: how many deviations the most similar message lies beyond what chance gives; None where no model was asked.
    `lead`: the share of its score by which the conversation leads the next of many, and the best of many holds more
    by chance; None for one that was named.
    `is_narrowed`: the request names its time, client or project, and they are right: that is evidence, too.
    """
    least = _LEAST[len(evidence) > 1, lead is not None, near is not None]
    figure = least.words * logit(evidence) + least.near * (near or 0.0) + least.lead * (lead or 0.0)
    if figure >= least.high:
        return Confidence.HIGH
    return Confidence.MEDIUM if figure >= least.medium or is_narrowed else Confidence.LOW
