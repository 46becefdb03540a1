"""Evaluate similarities of the embedding model against those of unrelated messages. Pure."""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from registry.text.ranking import weights
from registry.text.ranking.scores import Candidate

_SEVERAL = 3  # messages of a channel whose mean similarity counts
_HIT_MARGIN = 0.5  # standard deviations above chance from which a message is a hit by similarity alone


@dataclass(frozen=True)
class SimilarMessages:
    """The most similar messages in scope: `similarities` and `candidates` by number, the most similar first.

    `background` and `deviation`: mean and standard deviation of all `vectors` compared. `chance_deviations`: expected
    deviations above the mean of the best of as many unrelated messages. `note`: why the model was not used.
    """

    model: str = ""
    similarities: Mapping[int, float] = field(default_factory=dict)
    candidates: Mapping[int, Candidate] = field(default_factory=dict)
    background: float = 0.0
    deviation: float = 0.0
    chance_deviations: float = 0.0
    vectors: int = 0
    note: str = ""

    def deviations(self, number: int) -> float:
        """Return a message's standard deviations above the mean; 0 if it was not compared."""
        if number not in self.similarities or not self.deviation:
            return 0.0
        return (self.similarities[number] - self.background) / self.deviation

    def share(self, number: int) -> float:
        """Return the similarity as a share (0 to 1) of the largest bonus to a score."""
        return min(1.0, max(0.0, self.deviations(number)) / weights.FAR)

    @property
    def threshold(self) -> float:
        """Return the similarity from which a message is a hit."""
        return self.background + (self.chance_deviations + _HIT_MARGIN) * self.deviation

    @cached_property
    def hits(self) -> frozenset[int]:
        """Return the messages that are more similar than chance explains."""
        return frozenset(number for number, value in self.similarities.items() if value >= self.threshold)

    def excess_deviations(self, channel_number: int) -> float:
        """Return how many standard deviations a channel's most similar message is above `chance_deviations`."""
        numbers = (n for n in self.similarities if self.candidates[n].channel_id == channel_number)
        return max(map(self.deviations, numbers), default=0.0) - self.chance_deviations

    def channel_shares(self, sizes: Mapping[int, int]) -> dict[int, float]:
        """Return the mean share of each channel's three most similar messages, or of all if it has fewer (`sizes`).

        A single message may be similar by chance.
        """
        shares: dict[int, list[float]] = defaultdict(list)
        for number in self.similarities:
            shares[self.candidates[number].channel_id].append(self.share(number))
        return {
            channel: sum(message_shares[:_SEVERAL]) / min(_SEVERAL, max(sizes.get(channel, _SEVERAL), 1))
            for channel, message_shares in shares.items()
        }


def deviations_by_chance(messages: int) -> float:
    """Return the expected standard deviations above the mean of the largest of that many unrelated similarities.

    It grows with the number of messages, so a fixed threshold would always find something in a large registry.
    """
    return math.sqrt(2 * math.log(max(messages, 2)))
