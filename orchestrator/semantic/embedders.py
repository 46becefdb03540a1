"""Define the interface of an embedding model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

Vectors = Sequence[Sequence[float]]


class Unavailable(Exception):
    """The endpoint or model does not answer properly, or cannot be loaded."""


class TextRefused(Exception):
    """The model refuses these texts, most likely because one is too long."""


class Embedder(Protocol):
    """An embedding model; the same name always gives the same vectors.

    Questions and messages are embedded separately: many models want different prefixes, or are two models.
    """

    name: str
    cost: str
    """Its cost in time and memory, for a person to read."""
    patience_s: float
    """Seconds that a search waits."""
    answer_s: float | None
    """Seconds that a batch waits; None: without limit, for a model in this process."""

    async def warm_up(self) -> None:
        """Load the model. Raises Unavailable."""

    async def queries(self, texts: Sequence[str]) -> Vectors:
        """Return one vector for each question; raises Unavailable or TextRefused."""

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """Return one vector for each message, at low priority; raises Unavailable or TextRefused."""

    async def close(self) -> None:
        """Release its resources."""
