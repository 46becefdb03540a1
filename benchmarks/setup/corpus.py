"""Fill a large registry quickly with made-up words whose frequencies follow Zipf's law.

Rows go directly into the tables and the index. Each word is analysed once. PostgreSQL gets rows by COPY and builds its
indexes afterwards.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import accumulate, chain, islice
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, bindparam, insert

from registry.domain import Role, digest_of
from registry.storage.database import Database, ReadTransaction, WriteTransaction
from registry.storage.index.message_index import TABLE, Entry, index_of, message_entry
from registry.storage.tables import channel, conversation
from registry.text.analysis.analyzer import ANALYZER_VERSION, analyze

WORDS = 60_000
MESSAGE_WORDS = range(8, 60)
CHANNEL_MESSAGES = (4, 10, 20, 40, 80, 144)
LARGEST_SHARE = 100
"""The first channel holds one in this many messages."""
SOURCES = ("cursor", "claude", "codex", "claude-code")
BATCH = 10_000
START = datetime(2024, 1, 1, 9, tzinfo=UTC)

ONSETS = ("b", "br", "c", "ch", "d", "f", "fl", "g", "gr", "l", "m", "n", "p", "pr", "r", "s", "st", "t", "tr", "v")
VOWELS = ("a", "e", "i", "o", "u", "ea", "ou")
CODAS = ("", "l", "n", "nd", "r", "s", "st", "t", "x")
SYLLABLES = (
    "가각간개거건결경계고공과관구국권규그근금기길나날내노능다단당대도동드등라락량력련로록료류리마만망매면명모목무문물미바반발"
    "방배백번범법변별병보복본부분불비사산상색생서석선설성세소속송수순술스시식신실심아안암야약양어언업에여역연영예오온완외요용"
    "우운원월위유육은음의이인일임입자작장재적전절점정제조종주준중증지직진질집차참창채책처천체초총최추출충치카크키타탁태터토통"
    "투트특파판패편평포표품프피하학한항해행향허험현형호혼화확환활황회효후휴"
)


class Text(NamedTuple):
    """A message to store."""

    channel_number: int
    seq: int
    text: str


@cache
def vocabulary(seed: int = 7) -> list[str]:
    """Return distinct words, the most frequent first: English-looking, Korean and identifiers."""
    dice = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < WORDS:
        kind = dice.random()
        if kind < 0.6:
            word = "".join(_syllable(dice) for _ in range(dice.choice((1, 2, 2, 3))))
        elif kind < 0.9:
            word = "".join(dice.choices(SYLLABLES, k=dice.choice((2, 2, 3, 4))))
        else:
            word = f"{_syllable(dice)}_{dice.randrange(2000)}"
        found[word] = None
    return list(found)


def _syllable(dice: random.Random) -> str:
    return dice.choice(ONSETS) + dice.choice(VOWELS) + dice.choice(CODAS)


def texts(count: int, seed: int = 1) -> Iterator[Text]:
    """Yield `count` messages: 1 % in the first channel, then about fifty in each; words are Zipf-distributed."""
    dice, words = random.Random(seed), vocabulary()
    weights = list(accumulate(1 / (rank + 3) for rank in range(WORDS)))
    number, seq, left = 1, 0, count // LARGEST_SHARE
    for _ in range(count):
        if not left:
            number, seq, left = number + 1, 0, dice.choice(CHANNEL_MESSAGES)
        yield Text(number, seq, " ".join(dice.choices(words, cum_weights=weights, k=dice.choice(MESSAGE_WORDS))))
        seq, left = seq + 1, left - 1


def fill(database: Database, count: int) -> None:
    """Store `count` messages in an empty registry, in transactions of `BATCH`."""
    known = {word: analyze(word) for word in vocabulary()}
    channels: dict[int, dict[str, Any]] = {}
    stream, at = texts(count), 1
    with database.engine.execution_options(write=True).connect() as connection, _indexed_later(connection):
        while batch := list(islice(stream, BATCH)):
            with connection.begin():
                _store(WriteTransaction(ReadTransaction(connection)), batch, at, known, channels)
            at += len(batch)
        with connection.begin():
            connection.execute(TOTALS, [{"of": one["number"], **one} for one in channels.values()])


_COUNTED = ("message_count", "seq_count", "token_count", "updated_at")
TOTALS = (
    channel.update().where(channel.c.number == bindparam("of")).values({name: bindparam(name) for name in _COUNTED})
)


@contextmanager
def _indexed_later(connection: Connection) -> Iterator[None]:
    """On PostgreSQL drop the indexes of the messages except keys, and build them again after the load."""
    if connection.dialect.name == "sqlite":
        yield
        return
    with connection.begin():
        indexes = connection.exec_driver_sql(INDEXES).all()
        for name, _ in indexes:
            connection.exec_driver_sql(f"DROP INDEX {name}")
    yield
    with connection.begin():
        connection.exec_driver_sql("SET LOCAL maintenance_work_mem = '1GB'")
        for _, definition in indexes:
            connection.exec_driver_sql(definition)


INDEXES = """
SELECT indexname, indexdef FROM pg_indexes
WHERE tablename IN ('conversation', 'message_index') AND starts_with(indexname, 'ix_')
"""


def _store(
    tx: WriteTransaction, batch: list[Text], first: int, known: Mapping[str, list[str]], channels: dict[int, Any]
) -> None:
    rows, entries, before = [], [], len(channels)
    for number, message in enumerate(batch, first):
        found = list(dict.fromkeys(chain.from_iterable(map(known.__getitem__, message.text.split()))))
        row = _row(number, message, len(found))
        rows.append(row)
        entries.append(message_entry(row, found))
        _count(channels, row)
    if new := list(channels.values())[before:]:
        _insert(tx, channel, new)
    _insert(tx, conversation, rows)
    if tx.dialect.name == "sqlite":
        index_of(tx).add(tx, entries)
    else:
        lines = ((one.number, " ".join(f"'{token}'" for token in one.tokens)) for one in entries)
        _copy(tx, TABLE, Entry._fields, lines)


def _insert(tx: WriteTransaction, table: Table, rows: list[dict[str, Any]]) -> None:
    if tx.dialect.name == "postgresql":
        lines = (["{}" if value == {} else value for value in row.values()] for row in rows)
        _copy(tx, table.name, rows[0], lines)
    else:
        tx.execute(insert(table), rows)


def _copy(tx: WriteTransaction, table: str, columns: Iterable[str], lines: Iterable[Sequence[Any]]) -> None:
    with tx.connection.cursor().copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy:
        for line in lines:
            copy.write_row(line)


def _row(number: int, message: Text, length: int) -> dict[str, Any]:
    role = Role.ASSISTANT if message.seq % 2 else Role.USER
    at = START + timedelta(seconds=60 * number)
    return {
        "number": number,
        "id": f"conv_{number:026}",
        "record_type": "conversation",
        "source": SOURCES[message.channel_number % len(SOURCES)],
        "channel": f"session_{message.channel_number}",
        "payload": {},
        "timestamp": at,
        "actor": "benchmark",
        "deleted": False,
        "channel_number": message.channel_number,
        "seq": message.seq,
        "place": float(message.seq),
        "turn": message.seq - message.seq % 2,
        "role": role.value,
        "text": message.text,
        "digest": digest_of(role, message.text),
        "received_at": at,
        "length": length,
        "analyzer_version": ANALYZER_VERSION,
    }


def _count(channels: dict[int, dict[str, Any]], row: dict[str, Any]) -> None:
    number = row["channel_number"]
    one = channels.setdefault(
        number,
        {
            "number": number,
            "name": row["channel"],
            "source": row["source"],
            "project_path": f"/home/ann/project_{number % 50}",
            "project_name": f"project_{number % 50}",
            "meta": {},
            "message_count": 0,
            "token_count": 0,
            "created_at": row["timestamp"],
            "deleted": False,
        },
    )
    one |= {"seq_count": row["seq"] + 1, "updated_at": row["timestamp"]}
    one["message_count"] += 1
    one["token_count"] += row["length"]
