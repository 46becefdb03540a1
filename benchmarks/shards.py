"""What a registry on two PostgreSQL nodes would cost: python -m benchmarks.shards [--messages N]

Channels, messages and the index in partitions by the hash of the channel, one on each node, put together by
`postgres_fdw`; beside it the same in one table on one node. docs/beyond-one-node.md says what follows from the figures.
The servers are Debian's: the tests' own has no `postgres_fdw`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, LiteralString

import psycopg

from benchmarks.setup.corpus import fill, vocabulary
from deploy.ha.processes import Missing, programs_of_postgres, wait_until
from registry.storage.database import Database
from registry.storage.index.channel_keys import complete_channels
from registry.storage.migrate import migrate

QUESTIONS = 60
ROUNDS = 5
OPTIONS = ("shared_buffers=256MB", "listen_addresses=", "synchronous_commit=off", "enable_partitionwise_aggregate=on")
NAMING = {"message_alias": "number", "remote_message": "number", "message_vector": "message_number"}
"""What belongs to a message, and how it names the message."""
KEYS: dict[str, str] = {
    "channel": "number",
    **dict.fromkeys(("conversation", "message_index", *NAMING), "channel_number"),
}
"""By what each table is shared out."""
INDEXES: dict[str, Sequence[LiteralString]] = {
    "channel": ("CREATE UNIQUE INDEX ON sharded.{0} (number)", "CREATE UNIQUE INDEX ON sharded.{0} (name)"),
    "conversation": (
        "CREATE UNIQUE INDEX ON sharded.{0} (number)",
        "CREATE UNIQUE INDEX ON sharded.{0} (id)",
        "CREATE INDEX ON sharded.{0} (channel_number, seq)",
    ),
    "message_index": (
        "CREATE UNIQUE INDEX ON sharded.{0} (number)",
        "CREATE INDEX ON sharded.{0} USING gin (tokens)",
        "CREATE INDEX ON sharded.{0} (channel_number)",
    ),
    "message_alias": ("CREATE UNIQUE INDEX ON sharded.{0} (id)", "CREATE INDEX ON sharded.{0} (number)"),
    "remote_message": ("CREATE UNIQUE INDEX ON sharded.{0} (url, number)",),
    "message_vector": ("CREATE UNIQUE INDEX ON sharded.{0} (message_number, model_number)",),
}
"""Of each partition: a table with partitions elsewhere can have no unique index of its own."""
BELONGING: Sequence[LiteralString] = (
    "INSERT INTO message_alias (id, number) SELECT 'was_' || number, number FROM conversation LIMIT 10000",
    "INSERT INTO remote_message (url, number, id) SELECT 'elsewhere', number, id FROM conversation LIMIT 10000",
    "INSERT INTO embedding_model (name, dimensions, calibration, background, spread) VALUES ('toy', 4, 1, 0, 1)",
    "INSERT INTO message_vector (message_number, model_number, digest, vector)"
    " SELECT conversation.number, embedding_model.number, digest, '\\x00112233' FROM conversation, embedding_model"
    " LIMIT 10000",
)
"""What belongs to messages, as a release writes it that knows no channel there."""
Connection = psycopg.Connection[Any]


@contextmanager
def node(*options: str) -> Iterator[Path]:
    """A PostgreSQL of Debian's, in the folder of its socket; Missing if there is none with `postgres_fdw`."""
    programs = programs_of_postgres()
    version = programs.parent.name
    if not Path(f"/usr/share/postgresql/{version}/extension/postgres_fdw.control").exists():
        raise Missing("apt-get install postgresql-contrib")
    folder = Path(tempfile.mkdtemp(prefix="ctxr-node-"))
    user = "postgres" if os.geteuid() == 0 else None
    if user:
        shutil.chown(folder, user)
    initdb: list[str | Path] = [
        programs / "initdb",
        "-D",
        folder / "data",
        "--username=postgres",
        "--auth=trust",
        "--no-sync",
    ]
    locale = ["--encoding=UTF8", "--locale=C.UTF-8"]
    subprocess.run([*initdb, *locale], user=user, cwd="/", check=True, stdout=subprocess.DEVNULL)
    settings = [f"-c{option}" for option in (*OPTIONS, *options)]
    server: list[str | Path] = [programs / "postgres", "-D", folder / "data", "-k", folder, *settings]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(server, user=user, cwd="/", stderr=log)
    try:
        wait_until(lambda: (folder / ".s.PGSQL.5432").exists(), "PostgreSQL", 60)
        yield folder
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def two_nodes(messages: int) -> Iterator[Connection]:
    """A connection to the first: `public` holds a registry of so many messages, `sharded` the same over both."""
    with ExitStack() as stack:
        first, second = (stack.enter_context(node()) for _ in range(2))
        url = f"postgresql://postgres@/postgres?host={first}"
        migrate(url)
        database = Database(url)
        fill(database, messages)
        with psycopg.connect(url) as connection:
            for statement in BELONGING:
                connection.execute(statement)
        asyncio.run(complete_channels(database))
        database.close()
        here, there = (stack.enter_context(psycopg.connect(_address(one), autocommit=True)) for one in (first, second))
        share_out(here, there, second)
        yield here


def _address(folder: Path) -> str:
    return f"host={folder} user=postgres dbname=postgres"


def share_out(here: Connection, there: Connection, other: Path) -> None:
    """The tables of `public` once more in `sharded`, one half on the other node."""
    here.execute("CREATE SCHEMA sharded")
    there.execute("CREATE SCHEMA sharded")
    here.execute("CREATE EXTENSION postgres_fdw")
    here.execute(
        "CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw OPTIONS "
        f"(host '{other}', dbname 'postgres', fetch_size '5000', batch_size '1000', async_capable 'true')"
    )
    here.execute("CREATE USER MAPPING FOR postgres SERVER other OPTIONS (user 'postgres', password_required 'false')")
    for table, key in KEYS.items():
        columns = _columns(here, table)
        _run(here, f"CREATE TABLE sharded.{table} ({columns}) PARTITION BY HASH ({key})")
        _run(there, f"CREATE TABLE sharded.{table}_1 ({columns})")
        of = f"PARTITION OF sharded.{table} FOR VALUES WITH (MODULUS 2, REMAINDER"
        _run(here, f"CREATE TABLE sharded.{table}_0 {of} 0)")
        _run(here, f"CREATE FOREIGN TABLE sharded.{table}_1 {of} 1) SERVER other OPTIONS (schema_name 'sharded')")
        for place, connection in enumerate((here, there)):
            for statement in INDEXES[table]:
                _run(connection, statement.format(f"{table}_{place}"))
    for table in KEYS:
        _run(here, f"INSERT INTO sharded.{table} SELECT * FROM public.{table} WHERE {KEYS[table]} IS NOT NULL")
    for connection in (here, there):
        connection.execute("VACUUM ANALYZE")
    for table in KEYS:
        _run(here, f"ANALYZE sharded.{table}_1")


def _run(connection: Connection, statement: str) -> None:
    """Our own names, put together above."""
    connection.execute(statement)


def _columns(connection: Connection, table: str) -> str:
    """A table's columns as they are."""
    found = connection.execute(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum",
        [f"public.{table}"],
    ).fetchall()
    return ", ".join(f'"{name}" {kind}' for name, kind in found)


@dataclass(frozen=True)
class Questions:
    """What is asked of both: the same statements, but for the schema."""

    connection: Connection
    schema: str

    def in_channel(self, number: int, word: str) -> list[int]:
        """Newest first, the messages of one channel that hold a word: as now by a token, sharded also by the key."""
        by_key = f"channel_number = {number} AND " if self.schema == "sharded" else ""
        return self._numbers(
            f"SELECT number FROM {self.schema}.message_index WHERE {by_key}tokens @@ %s::tsquery"
            " ORDER BY number DESC LIMIT 1000",
            f"'zzc{number}' & '{word}'",
        )

    def anywhere(self, words: Sequence[str]) -> list[int]:
        """Newest first, the messages that hold any of the words, after these were counted one by one."""
        for word in words:
            self._numbers(f"SELECT count(*) FROM {self.schema}.message_index WHERE tokens @@ %s::tsquery", f"'{word}'")
        any_of = " | ".join(f"'{word}'" for word in words)
        return self._numbers(
            f"SELECT number FROM {self.schema}.message_index WHERE tokens @@ %s::tsquery"
            " ORDER BY number DESC LIMIT 1000",
            any_of,
        )

    def read(self, numbers: Sequence[int]) -> list[int]:
        """The messages of these numbers, wherever they are: what an answer shows."""
        statement = f"SELECT number, text FROM {self.schema}.conversation WHERE number = ANY(%s) ORDER BY number"
        return [row[0] for row in self.connection.execute(statement, [list(numbers)])]

    def plan(self, number: int, word: str) -> str:
        """How a search in one channel is carried out."""
        asked = (
            f"EXPLAIN SELECT number FROM {self.schema}.message_index"
            f" WHERE channel_number = {number} AND tokens @@ '{word}'::tsquery"
        )
        return "\n".join(line for (line,) in self.connection.execute(asked))

    def _numbers(self, statement: str, tokens: str) -> list[int]:
        return [row[0] for row in self.connection.execute(statement, [tokens])]


def on_other_node(connection: Connection) -> set[int]:
    """The channels of the other node."""
    return {row[0] for row in connection.execute("SELECT number FROM sharded.channel_1")}


def _timed(ask: Callable[[], object]) -> float:
    began = time.perf_counter()
    ask()
    return (time.perf_counter() - began) * 1000


def _figures(asks: Sequence[Callable[[], object]]) -> str:
    """Median and 95th percentile of the best of some rounds, in milliseconds."""
    best = [min(_timed(ask) for _ in range(ROUNDS)) for ask in asks]
    return f"{statistics.median(best):.1f} / {statistics.quantiles(best, n=20)[-1]:.1f}"


def measured(connection: Connection) -> Iterator[tuple[str, str, str]]:
    """What is asked, and median / p95 of one node and of two."""
    dice, words = random.Random(3), vocabulary()
    alone, shared = Questions(connection, "public"), Questions(connection, "sharded")
    channels = [row[0] for row in connection.execute("SELECT number FROM public.channel ORDER BY number")]
    far = on_other_node(connection)
    pairs = [(dice.choice(channels), words[dice.randrange(30, 3000)]) for _ in range(QUESTIONS)]
    asked = [[words[dice.randrange(100, 20_000)] for _ in range(3)] for _ in range(QUESTIONS)]
    messages = [row[0] for row in connection.execute("SELECT number FROM public.conversation")]
    shown = [dice.sample(messages, 20) for _ in range(QUESTIONS)]
    asks: dict[str, Callable[[Questions], list[Callable[[], object]]]] = {
        "in a channel that is here": lambda of: [partial(of.in_channel, *one) for one in pairs if one[0] not in far],
        "in a channel that is there": lambda of: [partial(of.in_channel, *one) for one in pairs if one[0] in far],
        "in all, three words: counted, then the newest 1000": lambda of: [partial(of.anywhere, one) for one in asked],
        "20 messages by their numbers": lambda of: [partial(of.read, one) for one in shown],
    }
    for name, made in asks.items():
        yield name, _figures(made(alone)), _figures(made(shared))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shards", description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    options = parser.parse_args()
    with two_nodes(options.messages) as connection:
        print(f"{options.messages} messages; median / p95 in ms", "one node", "two nodes", sep=" | ")
        for row in measured(connection):
            print(*row, sep=" | ", flush=True)


if __name__ == "__main__":
    main()
