"""What a model is to everybody else: texts go in, vectors come out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

Vectors = Sequence[Sequence[float]]


class Unavailable(Exception):
    """No vectors now: the endpoint is gone, slow, refuses us or talks nonsense; or the model cannot be loaded."""


class TextRefused(Exception):
    """These texts are not taken, most likely because one is too long."""


class Embedder(Protocol):
    """A model of one name: the same name gives the same vectors.

    What is asked and what was said go in by different ways: many models want other words in front of each, some
    are two models. All vectors have the same length.
    """

    name: str
    cost: str
    """What it takes, for a person to read."""
    patience_s: float
    """A search waits no longer."""
    answer_s: float | None
    """A request for the vectors of a batch waits no longer; None: a model in this process ends, however busy it is."""

    async def warm_up(self) -> None:
        """Load what the first search would wait for; Unavailable if that cannot be."""

    async def queries(self, texts: Sequence[str]) -> Vectors:
        """Return one vector for each question; raises Unavailable or TextRefused."""

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """Return one vector for each message, at low priority; raises Unavailable or TextRefused."""

    async def close(self) -> None:
        """Let go of what it holds."""
