"""The messages that are similar to a request in meaning, and how similar. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

LEAST_WEIGHT, MOST_WEIGHT = 0.2, 2.0
"""What the most similar message gains, as a share of the best score by words: the first where a conversation holds
every word of the request, the second where none holds any."""
CHANNEL_WEIGHT = 1.0
"""What the most similar channel gains where no conversation holds a word of the request."""
MARGIN = 0.5
"""So many deviations beyond the largest that is to be expected by chance, a message is found by its meaning alone."""

NEAR = 2.0
"""So many deviations above the mean, a message is named where words found something."""
NAMED = 10
"""So many messages are named at most."""


def weight_of_meaning(covered: float) -> float:
    """How much meaning counts where the words of a request are covered so far (0 to 1): the less, the more."""
    return LEAST_WEIGHT + (MOST_WEIGHT - LEAST_WEIGHT) * (1.0 - min(1.0, covered))


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
    `background` is the mean of all `vectors` that were compared (those of the messages not yet embedded were not),
    `weight` what the most similar gains, `channels` what each channel does. `note` says what kept meaning out.
    """

    model: str = ""
    similarities: Mapping[int, float] = field(default_factory=dict)
    least: float = 0.0
    near: float = 0.0
    background: float = 0.0
    vectors: int = 0
    weight: float = 0.0
    channels: Mapping[int, float] = field(default_factory=dict)
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

    def share(self, number: int) -> float:
        """How similar a message is, above the background, 1 being the most similar; 0 for one that is not."""
        largest = max(self.similarities.values(), default=0.0) - self.background
        return (self.similarities.get(number, self.background) - self.background) / largest if largest > 0 else 0.0
