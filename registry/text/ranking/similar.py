"""The messages that are similar to a request in meaning, and how similar. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

WEIGHT = 0.6
"""What the most similar message or conversation gains, as a share of the best score by words: never so much that it
outvotes exact words."""
MARGIN = 0.5
"""So many deviations beyond the largest that is to be expected by chance, a message is found by its meaning alone."""

NEAR = 2.0
"""So many deviations above the mean, a message is named where words found something."""
PLAUSIBLE = 1.25
"""So many deviations above the mean, a message may be given as a guess where nothing else is found."""
NAMED = 10
"""So many messages are named at most."""


def deviations_by_chance(messages: int) -> float:
    """How many standard deviations above their mean the largest of so many similarities lies if none means anything.

    It grows with their number; a fixed line would find something in every large registry.
    """
    return math.sqrt(2 * math.log(max(messages, 2)))


@dataclass(frozen=True, slots=True)
class SimilarMessages:
    """The messages most similar to a request in meaning: `similarities` by number, largest first.

    One of at least `least` counts as found by its meaning alone, one of at least `near` where words found something;
    the others only change the order.
    `background` and `deviation` are those of all `vectors` that were compared (not yet embedded messages were not).
    `note` says what kept meaning out.
    """

    model: str = ""
    similarities: Mapping[int, float] = field(default_factory=dict)
    least: float = 0.0
    near: float = 0.0
    background: float = 0.0
    deviation: float = 0.0
    vectors: int = 0
    note: str = ""

    @property
    def standing_out(self) -> frozenset[int]:
        """The messages that are found by their meaning alone."""
        return frozenset(number for number, similarity in self.similarities.items() if similarity >= self.least)

    @property
    def named(self) -> frozenset[int]:
        """The messages that may be meant where words have found something."""
        best = islice(self.similarities.items(), NAMED)
        return self.standing_out | {number for number, similarity in best if similarity >= self.near}

    @property
    def plausible(self) -> frozenset[int]:
        """The messages that may be given as a guess."""
        least = self.background + PLAUSIBLE * self.deviation
        return frozenset(number for number, similarity in self.similarities.items() if similarity >= least)

    def share(self, number: int) -> float:
        """How similar a message is, above the background, 1 being the most similar; 0 for one that is not."""
        largest = max(self.similarities.values(), default=0.0) - self.background
        return (self.similarities.get(number, self.background) - self.background) / largest if largest > 0 else 0.0
