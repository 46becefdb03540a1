"""The messages that are similar to a request in meaning, and how similar. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import mul

LEAST_WEIGHT, MOST_WEIGHT = 0.2, 2.0
"""What the most similar message gains, as a share of the best score by words: the first where a conversation holds
every word of the request, the second where none holds any."""
LEAST_INSIDE = 0.4
"""The first in one channel: a long one holds most words of anything."""
CHANNEL_WEIGHT = 3.0
"""What the nearest channel gains where no conversation holds a word of the request; the best by words scores 1."""
TOGETHER = (1.0, 0.5, 0.25)
"""What the most similar messages of a channel say of it: what a conversation is about it says more than once."""
SHARPNESS = 2.0
"""The nearest channel gains most: what another lies behind it counts so many times."""
MARGIN = 0.5
"""So many deviations beyond the largest that is to be expected by chance, a message is found by its meaning alone."""

NEAR = 2.0
"""So many deviations above the mean, a message is named where words found something."""
PLAUSIBLE = 1.25
"""So many deviations above the mean, a message may be given as a guess where nothing else is found."""
NAMED = 10
"""So many messages are named at most."""


def weight_of_meaning(covered: float, least: float = LEAST_WEIGHT) -> float:
    """How much meaning counts where the words of a request are covered so far (0 to 1): the less, the more."""
    return least + (MOST_WEIGHT - least) * (1.0 - min(1.0, covered))


def similarity_of_channels(similar: Sequence[tuple[int, float]]) -> dict[int, float]:
    """How near channels are to a request in meaning, the nearest 1, by their most similar messages together.

    `similar`: for messages their channel and how far above the usual they lie, the most similar first. Of a channel
    with few of them the others lie below all these, and count as the last.
    """
    by_channel: dict[int, list[float]] = {}
    for number, above in similar:
        by_channel.setdefault(number, []).append(above)
    rest = [similar[-1][1]] * len(TOGETHER) if similar else []
    near = {number: sum(map(mul, TOGETHER, [*some, *rest])) for number, some in by_channel.items()}
    nearest = max(near.values(), default=0.0)
    return {number: (one / nearest) ** SHARPNESS for number, one in near.items()} if nearest > 0 else {}


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
    `background` and `deviation` are those of all `vectors` that were compared (not yet embedded messages were not),
    `by_chance` how many deviations the largest of so many lies above the mean if none means anything,
    `weight` what the most similar gains, `channels` what each channel does. `note` says what kept meaning out.
    """

    model: str = ""
    similarities: Mapping[int, float] = field(default_factory=dict)
    least: float = 0.0
    near: float = 0.0
    background: float = 0.0
    deviation: float = 0.0
    by_chance: float = 0.0
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

    @property
    def plausible(self) -> frozenset[int]:
        """The messages that may be given as a guess."""
        least = self.background + PLAUSIBLE * self.deviation
        return frozenset(number for number, similarity in self.similarities.items() if similarity >= least)

    def share(self, number: int) -> float:
        """How similar a message is, above the background, 1 being the most similar; 0 for one that is not."""
        largest = max(self.similarities.values(), default=0.0) - self.background
        return (self.similarities.get(number, self.background) - self.background) / largest if largest > 0 else 0.0

    def beyond_chance(self, numbers: Iterable[int]) -> float:
        """How many deviations the most similar of some messages lies above what the best of all has by chance."""
        best = max((self.similarities.get(number, self.background) for number in numbers), default=self.background)
        return ((best - self.background) / self.deviation if self.deviation else 0.0) - self.by_chance
