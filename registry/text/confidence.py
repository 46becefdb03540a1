"""Whether what was found answers at all: by how much of the request one conversation holds, and how telling that is.

No threshold on single messages works (the best of many always holds something), but two figures of a conversation
do: the share of the request that all of it holds, and how much one place of it holds in words as telling as the
rarest. With other wordings of the request the two best of all count. The coefficients are a logistic regression on
questions of three sets that nobody here wrote, against questions of other people's lives
(`docs/decisions/0010-what-answers.md`). Pure.
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
    medium: float
    high: float


_LEAST = {
    (False, False): _Least(-0.25, 1.25),
    (False, True): _Least(1.0, 2.0),
    (True, False): _Least(0.0, 1.5),
    (True, True): _Least(2.0, 3.0),
}
"""By whether there are several wordings, and whether the conversation is the best of many: the logits from which on it
is medium or high. Of questions of another life 7, 5, 6 and 5 % are medium or more, of those whose conversation was
found 66, 67, 93 and 77 % (each set by the line that the other two give)."""
_BEST = 2


def logit(evidence: Sequence[Evidence]) -> float:
    """The evidence of all wordings as one figure; 0 is as likely as not."""
    if not evidence:
        return float("-inf")
    best = min(_BEST, len(evidence))
    covered = sum(sorted((one.covered for one in evidence), reverse=True)[:best]) / best
    told = sum(sorted((one.told for one in evidence), reverse=True)[:best]) / best
    line = _SEVERAL if len(evidence) > 1 else _ONE_WORDING
    return line.covered * covered + line.told * told + line.constant


def confidence_of(evidence: Sequence[Evidence], *, is_chosen: bool = False, is_narrowed: bool = False) -> Confidence:
    """The word for it.

    `is_chosen`: the conversation is the best of many, and the best of many holds more by chance.
    `is_narrowed`: the request names its time, client or project, and they are right: that is evidence, too.
    """
    figure = logit(evidence)
    least = _LEAST[len(evidence) > 1, is_chosen]
    if figure >= least.high:
        return Confidence.HIGH
    return Confidence.MEDIUM if figure >= least.medium or is_narrowed else Confidence.LOW
