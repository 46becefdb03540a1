"""Time searches among 10 000, 100 000 or more messages: python -m benchmarks.scale [--messages N] …

Times are those of `find_messages`, from words to a ranking; `calls` measures what the graph and a client add. With
--cpu they are CPU time, including that of a local PostgreSQL, and each search counts with the best of three runs.
"""

from __future__ import annotations

import argparse
import gc
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import text

from benchmarks.setup.corpus import fill, texts, vocabulary
from benchmarks.setup.figures import Spread, table
from registry.domain import parse_time
from registry.registry import Registry
from registry.search.retrieval import find_messages
from registry.search.scope import Scope
from registry.storage.database import Database, ReadTransaction
from registry.text.analysis.analyzer import analyze

QUERIES = 60
KINDS = {"typical": (30, 20_000), "rare": (2_000, 100_000), "commonest": (0, 30)}
"""Ranks in the vocabulary from which a query's words are taken; 0 is the most frequent word."""
HEADS = ("p50 / p95 in ms", "typical", "rare", "commonest", "channel", "project", "a week", "typo")

Search = Callable[[str, Scope], Any]
Clock = Callable[[], float]


def queries(kind: str, seed: int = 3) -> list[str]:
    """Return queries of one to five words, Zipf-distributed within the ranks of the kind."""
    first, last = KINDS[kind]
    dice, words = random.Random(seed), vocabulary()[first:last]
    weights = [1 / (rank + first + 3) for rank in range(len(words))]
    return [" ".join(dice.choices(words, weights, k=dice.choice((1, 2, 3, 3, 5)))) for _ in range(QUERIES)]


def timed(
    search: Search, asked: Sequence[tuple[str, Scope]], clock: Clock = time.perf_counter, times: int = 1
) -> Spread:
    """Return the spread of the searches' times, each the best of `times` runs, after a warm-up."""
    for words, scope in asked[:5]:
        search(words, scope)

    def took(words: str, scope: Scope) -> float:
        started = clock()
        search(words, scope)
        return clock() - started

    return Spread.of([min(took(*each) for _ in range(times)) for each in asked])


def cpu_clock(tx: ReadTransaction) -> Clock:
    """Return a clock of the CPU seconds of this process and, on PostgreSQL, of its local server process."""
    if tx.dialect.name == "sqlite":
        return time.process_time
    serving = Path(f"/proc/{tx.execute(text('SELECT pg_backend_pid()')).scalar_one()}/schedstat")
    return lambda: time.process_time() + int(serving.read_text().split()[0]) / 1e9


def measure(database: Database, *, is_cpu: bool = False) -> list[str]:
    """Return the figures of a table row: searches on this database."""
    dice = random.Random(4)
    gc.collect()
    gc.freeze()  # as a server does after its start
    with database.engine.begin() as connection:
        tx = ReadTransaction(connection)
        channels = tx.execute(text("SELECT max(number) FROM channel")).scalar_one()

        def search(words: str, scope: Scope) -> Any:
            return find_messages(tx, words, scope)

        def spread(asked: Sequence[tuple[str, Scope]]) -> str:
            return str(timed(search, asked, cpu_clock(tx), 3) if is_cpu else timed(search, asked))

        typical = queries("typical")
        last = tx.execute(text("SELECT max(timestamp) FROM conversation")).scalar_one()
        week = Scope(from_=_week_before(last))
        return [
            *(spread([(words, Scope()) for words in queries(kind)]) for kind in KINDS),
            spread([(words, Scope(channel_number=dice.randint(1, channels))) for words in typical]),
            spread([(words, Scope(project="project_7")) for words in typical]),
            spread([(words, week) for words in typical]),
            spread([(_mistyped(words, dice), Scope()) for words in typical]),
        ]


def _week_before(last: datetime | str) -> datetime:
    return parse_time(last if isinstance(last, datetime) else str(last)) - timedelta(days=7)


def _mistyped(words: str, dice: random.Random) -> str:
    place = dice.randrange(len(words))
    return words[:place] + "q" + words[place:]


def size_of(database: Database) -> int:
    """Return the database's size on disk in bytes."""
    statement = {
        "sqlite": "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
        "postgresql": "SELECT pg_database_size(current_database())",
    }[database.dialect]
    with database.engine.begin() as connection:
        return int(connection.execute(text(statement)).scalar_one())


def index_size_of(database: Database) -> int:
    """Return the size of the message index in bytes."""
    statement = {
        "sqlite": "SELECT sum(length(block)) FROM message_index_data",
        "postgresql": "SELECT pg_total_relation_size('message_index')",
    }[database.dialect]
    with database.engine.begin() as connection:
        return int(connection.execute(text(statement)).scalar_one())


@contextmanager
def filled(url: str, count: int) -> Iterator[Database]:
    """Create a registry with `count` messages, and print its speed and size."""
    registry = Registry(url)
    started = time.perf_counter()
    fill(registry, count)
    if registry.dialect == "postgresql":
        with registry.engine.connect().execution_options(isolation_level="AUTOCOMMIT", begin="") as connection:
            connection.execute(text("VACUUM ANALYZE"))
    rate = count / (time.perf_counter() - started)
    print(
        f"{registry.dialect}, {count} messages: {rate:.0f} messages/s stored and indexed,"
        f" {size_of(registry) / count:.0f} bytes a message, {index_size_of(registry) / count:.0f} of them index"
    )
    yield registry
    registry.close()


def measure_tantivy(count: int) -> list[str]:
    """Measure tantivy with the same texts, queries and tokens: BM25, any of the tokens, the best 300."""
    import tantivy

    schema = tantivy.SchemaBuilder().add_text_field("t", tokenizer_name="whitespace", index_option="basic").build()
    index = tantivy.Index(schema)
    writer = index.writer(heap_size=200_000_000, num_threads=1)
    started = time.perf_counter()
    for message in islice(texts(count), count):
        writer.add_document(tantivy.Document(t=" ".join(analyze(message.text))))
    writer.commit()
    writer.wait_merging_threads()
    print(f"tantivy, {count} messages: {count / (time.perf_counter() - started):.0f} messages/s indexed")
    index.reload()
    searcher = index.searcher()

    def search(words: str, _scope: Scope) -> Any:
        terms = [tantivy.Query.term_query(schema, "t", token) for token in analyze(words)]
        asked = tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in terms])
        return searcher.search(asked, 300)

    return [str(timed(search, [(words, Scope()) for words in queries(kind)])) for kind in KINDS]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--messages", type=int, action="append", help="may be repeated; 10000 and 100000 by default")
    parser.add_argument("--url", help="an existing registry; nothing is stored")
    parser.add_argument("--postgresql", action="store_true", help="also on the PostgreSQL of the tests")
    parser.add_argument("--tantivy", action="store_true", help="also in tantivy, if it is installed")
    parser.add_argument("--cpu", action="store_true", help="CPU time instead of elapsed time")
    options = parser.parse_args()
    rows: list[list[str]] = []
    if options.url:
        database = Database(options.url)
        rows.append([database.dialect, *measure(database, is_cpu=options.cpu)])
        database.close()
    for count in options.messages or ([] if options.url else [10_000, 100_000]):
        rows += measure_size(count, options.postgresql, is_cpu=options.cpu)
        if options.tantivy:
            rows.append([f"tantivy {count}", *measure_tantivy(count), *["-"] * 4])
    print(table(HEADS, rows))


def measure_size(count: int, also_postgresql: bool, *, is_cpu: bool) -> Iterator[list[str]]:
    """Yield the table rows for one number of messages."""
    with tempfile.TemporaryDirectory() as folder, filled(f"sqlite:///{Path(folder) / 'r.db'}", count) as database:
        yield [f"sqlite {count}", *measure(database, is_cpu=is_cpu)]
    if also_postgresql:
        from tests.databases import running_postgres

        with running_postgres(shared_buffers="1GB") as server, server.database() as url, filled(url, count) as database:
            yield [f"postgresql {count}", *measure(database, is_cpu=is_cpu)]


if __name__ == "__main__":
    main()
