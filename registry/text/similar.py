"""The messages that are similar to a request in meaning, and how similar. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SimilarMessages:
    """The messages similar to a request in meaning: `similarities` by number, largest first, all at least `least`.

    `background` is the similarity of texts that have nothing to do with each other. `vectors` were compared, those
    of the messages not yet embedded or beyond the limit were not. `note` says what kept meaning out of the search.
    """

    model: str = ""
    similarities: Mapping[int, float] = field(default_factory=dict)
    least: float = 0.0
    background: float = 0.0
    vectors: int = 0
    note: str = ""

    def share(self, number: int) -> float:
        """How similar a message is, above the background, 1 being the most similar; 0 for one that is not."""
        largest = max(self.similarities.values(), default=0.0) - self.background
        return (self.similarities.get(number, self.background) - self.background) / largest if largest > 0 else 0.0
