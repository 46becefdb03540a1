"""Define the interface of embedding models, and the text prefixes of known models."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

Vectors = Sequence[Sequence[float]]


class Unavailable(Exception):
    """The endpoint or model does not answer properly, or cannot be loaded."""


def dimension_mismatch(model: str, given: int, stored: int) -> str:
    """Return the message for vectors of another length than the stored ones."""
    return f"{model} answers with {given} dimensions, its vectors here have {stored}: ctxr db embed"


class TextRefused(Exception):
    """The model refuses these texts, most likely because one is too long."""


class Embedder(Protocol):
    """An embedding model; the same name always gives the same vectors.

    Questions and messages are embedded separately: many models want different prefixes, or are two models.
    """

    name: str
    query_timeout_s: float  # seconds that a search waits
    batch_timeout_s: float | None  # seconds that a batch waits; None: no limit, for a model in this process

    async def warm_up(self) -> None:
        """Load the model. Raises Unavailable."""

    async def queries(self, texts: Sequence[str]) -> Vectors:
        """Return one vector for each question; raises Unavailable or TextRefused."""

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """Return one vector for each message, at low priority; raises Unavailable or TextRefused."""

    async def close(self) -> None:
        """Release its resources."""


class Prefixes(NamedTuple):
    """Texts put before questions and before messages."""

    query: str = ""
    passage: str = ""


PREFIXES = {
    "e5": Prefixes("query: ", "passage: "),
    "bge-m3": Prefixes(),
    "bge": Prefixes("Represent this sentence for searching relevant passages: "),
    "nomic": Prefixes("search_query: ", "search_document: "),
    "qwen3-embedding": Prefixes(
        "Instruct: Given what a user asks, retrieve the messages of earlier conversations that answer it\nQuery: "
    ),
    "jina-embeddings-v5": Prefixes("Query: ", "Document: "),
}
"""Prefixes that models were trained with, by a part of the model's name; the first match counts."""


def prefixes_for(model: str) -> Prefixes:
    """Return a model's prefixes; empty ones if it is unknown."""
    known = (prefixes for part, prefixes in PREFIXES.items() if part in model.lower())
    return next(known, Prefixes())


def name_with_prefix(model: str, prefixes: Prefixes) -> str:
    """Return the model's name with the passage prefix, since that changes its vectors."""
    return f"{model}, {prefixes.passage.strip()!r} before what was said" if prefixes.passage else model
