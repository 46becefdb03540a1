"""Define the prefixes that tell a model whether a text is a question or a message."""

from __future__ import annotations

from typing import NamedTuple


class Prefixes(NamedTuple):
    """The texts put before questions and before messages."""

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
"""Prefixes that models were trained with, by a part of their names; the first match counts."""


def prefixes_for(model: str) -> Prefixes:
    """Return a known model's prefixes; none for any other."""
    known = (prefixes for part, prefixes in PREFIXES.items() if part in model.lower())
    return next(known, Prefixes())


def named(model: str, prefixes: Prefixes) -> str:
    """Return the model's name, with the prefix that changes its vectors."""
    return f"{model}, {prefixes.passage.strip()!r} before what was said" if prefixes.passage else model
