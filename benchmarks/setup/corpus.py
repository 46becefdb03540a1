"""A large registry in little time: made-up words as frequent as real ones, through our own tables and index."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate, islice
from typing import Any, NamedTuple

from sqlalchemy import insert

from registry.domain import Role, digest_of
from registry.storage.database import Database, ReadTransaction, WriteTransaction
from registry.storage.index.engines import index_of
from registry.storage.index.index_entries import message_entry
from registry.storage.tables import channel, conversation
from registry.text.analysis.analyzer import ANALYZER_VERSION, analyze

WORDS = 120_000
MESSAGE_WORDS = range(8, 60)
CHANNEL_MESSAGES = (4, 10, 20, 40, 100, 400)
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
    """A message to be: in which channel, its place there, what it says."""

    channel_number: int
    seq: int
    text: str


def vocabulary(seed: int = 7) -> list[str]:
    """Distinct words, the most frequent first: English-looking, Korean and identifiers."""
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
    """`count` messages in channels of a few to some hundred; the n-th word is 1/n as frequent as the first (Zipf)."""
    dice, words = random.Random(seed), vocabulary()
    weights = list(accumulate(1 / (rank + 3) for rank in range(WORDS)))
    number, seq, left = 0, 0, 0
    for _ in range(count):
        if not left:
            number, seq, left = number + 1, 0, dice.choice(CHANNEL_MESSAGES)
        yield Text(number, seq, " ".join(dice.choices(words, cum_weights=weights, k=dice.choice(MESSAGE_WORDS))))
        seq, left = seq + 1, left - 1


def fill(database: Database, count: int) -> None:
    """Store `count` messages, in transactions of some thousand."""
    stream, at = texts(count), 1
    while batch := list(islice(stream, BATCH)):
        with database.engine.execution_options(write=True).begin() as connection:
            _store(WriteTransaction(ReadTransaction(connection)), batch, at)
        at += len(batch)


def _store(tx: WriteTransaction, batch: list[Text], first: int) -> None:
    rows, entries = [], []
    for number, message in enumerate(batch, first):
        found = analyze(message.text)
        row = _row(number, message, len(found))
        rows.append(row)
        entries.append(message_entry(row, found))
    channels: dict[int, dict[str, Any]] = {}
    for row in rows:
        _count(channels, row)
    known = [one for one in channels.values() if one["seq_count"] == one["message_count"]]
    tx.execute(insert(channel), known)
    for one in (one for one in channels.values() if one["seq_count"] != one["message_count"]):
        tx.execute(
            channel.update()
            .where(channel.c.number == one["number"])
            .values(
                message_count=one["seq_count"],
                seq_count=one["seq_count"],
                token_count=channel.c.token_count + one["token_count"],
                updated_at=one["updated_at"],
            )
        )
    tx.execute(insert(conversation), rows)
    index_of(tx).add(tx, entries)


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
