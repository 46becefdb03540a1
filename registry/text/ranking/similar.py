"""The messages most similar to a request in the embedding model. Pure."""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from registry.text.ranking import weights
from registry.text.ranking.scores import Candidate

_SEVERAL = 3
_NEAR = 0.5  # standard deviations beyond chance from which on a message is a hit by its meaning alone


@dataclass(frozen=True)
class SimilarMessages:
    """The most similar messages in scope: `similarities` and `candidates` by number, largest first.

    `background` and `deviation`: mean and standard deviation of all `vectors` compared. `by_chance`: how many
    deviations above the mean the best of so many unrelated messages lies. `note`: why the model was not used.
    """

    model: str = ""
    similarities: Mapping[int, float] = field(default_factory=dict)
    candidates: Mapping[int, Candidate] = field(default_factory=dict)
    background: float = 0.0
    deviation: float = 0.0
    by_chance: float = 0.0
    vectors: int = 0
    note: str = ""

    def deviations(self, number: int) -> float:
        """Return how many standard deviations above the mean a message lies; 0 if it was not compared."""
        if number not in self.similarities or not self.deviation:
            return 0.0
        return (self.similarities[number] - self.background) / self.deviation

    def share(self, number: int) -> float:
        """Return the similarity as a share (0 to 1) of what the model may add to a score."""
        return min(1.0, max(0.0, self.deviations(number)) / weights.FAR)

    @property
    def least(self) -> float:
        """Return the similarity from which on a message is similar beyond chance."""
        return self.background + (self.by_chance + _NEAR) * self.deviation

    @cached_property
    def standing_out(self) -> frozenset[int]:
        """Return the messages that are similar beyond chance."""
        return frozenset(number for number, value in self.similarities.items() if value >= self.least)

    def beyond_chance(self, channel_number: int) -> float:
        """Return by how many standard deviations a channel's most similar message exceeds what chance explains."""
        numbers = (n for n in self.similarities if self.candidates[n].channel_id == channel_number)
        return max(map(self.deviations, numbers), default=0.0) - self.by_chance

    def of_channels(self, sizes: Mapping[int, int]) -> dict[int, float]:
        """Return, by channel, the mean share of its three most similar messages; of a smaller channel (`sizes`:
        messages) of all. One message alone is similar by chance."""
        shares: dict[int, list[float]] = defaultdict(list)
        for number in self.similarities:
            shares[self.candidates[number].channel_id].append(self.share(number))
        return {
            channel: sum(some[:_SEVERAL]) / min(_SEVERAL, max(sizes.get(channel, _SEVERAL), 1))
            for channel, some in shares.items()
        }


def deviations_by_chance(messages: int) -> float:
    """Return how many standard deviations the largest of so many unrelated similarities lies above their mean.

    It grows with their number, so a fixed threshold would find something in every large registry.
    """
    return math.sqrt(2 * math.log(max(messages, 2)))
