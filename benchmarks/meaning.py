"""Time searches by meaning among 100 000 messages: python -m benchmarks.meaning [--messages N] [--dimensions D] …

Vectors are random, because times do not depend on their content. Times include the search by words and the comparison
of vectors, but not the model's embedding of the query.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import select

from benchmarks.scale import queries, size_of, timed
from benchmarks.setup.corpus import fill
from benchmarks.setup.figures import table
from registry.registry import Registry
from registry.search import meaning
from registry.search.retrieval import SearchResult, find_messages
from registry.search.scope import Scope
from registry.search.vectors import EmbeddingModel, Vector, save_model, save_vectors
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.tables import conversation

HEADS = ("p50 / p95 in ms", "by words", "with meaning", "in a channel", "first search of a process")
BATCH = 5_000


def embed(registry: Registry, dimensions: int) -> EmbeddingModel:
    """Give every message a random vector."""
    rng = np.random.default_rng(1)

    def keep(tx: WriteTransaction, rows: Any, model: EmbeddingModel) -> None:
        vectors = [
            Vector(row.number, row.digest, rng.integers(-127, 128, dimensions, np.int8).tobytes()) for row in rows
        ]
        save_vectors(tx, model, vectors)

    async def work() -> EmbeddingModel:
        model = await registry.write(lambda tx: save_model(tx, "random", dimensions, 1, 0.0, 1 / dimensions**0.5))
        query = select(conversation.c.number, conversation.c.digest).order_by(conversation.c.number)
        rows = await registry.read(lambda tx: tx.execute(query).all())
        for some in _batches(rows):
            await registry.write(partial(keep, rows=some, model=model))
        return model

    return asyncio.run(work())


def _batches(rows: Any) -> Iterator[Any]:
    return (rows[at : at + BATCH] for at in range(0, len(rows), BATCH))


def measure(registry: Registry, model: EmbeddingModel) -> list[str]:
    """Return the figures of a table row."""
    rng = np.random.default_rng(2)

    def search(words: str, scope: Scope) -> SearchResult:
        vector = rng.standard_normal(model.dimensions).tolist()
        return find_messages(tx, words, scope, compare=partial(meaning.similar_messages, model=model, vector=vector))

    with registry.engine.begin() as connection:
        tx = ReadTransaction(connection)
        typical = queries("typical")
        started = time.perf_counter()
        search(typical[0], Scope())
        first = 1000 * (time.perf_counter() - started)
        return [
            str(timed(lambda words, scope: find_messages(tx, words, scope), [(words, Scope()) for words in typical])),
            str(timed(search, [(words, Scope()) for words in typical])),
            str(timed(search, [(words, Scope(channel_number=1 + i)) for i, words in enumerate(typical)])),
            f"{first:.0f}",
        ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.meaning", description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--dimensions", type=int, action="append", help="may be repeated; 256 and 768 by default")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        registry = Registry(f"sqlite:///{Path(folder) / 'r.db'}")
        fill(registry, options.messages)
        before = size_of(registry)
        for dimensions in options.dimensions or [256, 768]:
            model = embed(registry, dimensions)
            bytes_each = (size_of(registry) - before) / options.messages
            print(f"{dimensions} dimensions: {bytes_each:.0f} bytes a message")
            rows.append([f"{options.messages}, {dimensions} dimensions", *measure(registry, model)])
        registry.close()
    print(table(HEADS, rows))


if __name__ == "__main__":
    main()
