"""Resent messages add nothing, in any order, with messages left out or inserted."""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, select

from registry.domain import Actor, Message, Role, now
from registry.ingest.save import save_messages
from registry.storage.conversations.channels import open_channel
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.tables import conversation

START = datetime(2026, 5, 4, 9, tzinfo=UTC)


@pytest.fixture
def engine(shared_engine: Engine) -> Engine:
    return shared_engine


def send(engine: Engine, channel: str, letters: str) -> int:
    """Store a message per letter (capitals: user, `.`: system, others: assistant), and return how many are new."""
    roles = {True: Role.USER, False: Role.ASSISTANT}
    messages = [Message(Role.SYSTEM if letter == "." else roles[letter.isupper()], letter) for letter in letters]
    return store(engine, channel, messages)


def store(engine: Engine, channel: str, messages: Sequence[Message]) -> int:
    """Store messages, and return how many are new."""
    with engine.begin() as connection:
        tx = WriteTransaction(ReadTransaction(connection))
        into = open_channel(tx, channel, "cursor", now())
        return save_messages(tx, into, messages, source="cursor", metadata={}, actor=Actor.TOOL, received_at=now()).new


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(calls=st.lists(st.text("AaBbCco.", min_size=1, max_size=10), min_size=1, max_size=5), name=st.uuids())
def test_the_same_call_twice_adds_nothing(engine: Engine, calls: list[str], name: object) -> None:
    for letters in calls:
        send(engine, str(name), letters)
        assert send(engine, str(name), letters) == 0, (calls, letters)


def test_any_resent_part_of_a_long_chat_adds_nothing(engine: Engine) -> None:
    chance = random.Random(7)
    for words in ("AaBbCco.", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"):
        letters = "".join(chance.choices(words, k=400))
        send(engine, words, letters)
        parts = [letters[at : at + chance.randint(1, 9)] for at in chance.sample(range(400), 12)]
        assert [send(engine, words, part) for part in [*parts, letters[::3], letters]] == [0] * 14
        assert send(engine, words, letters[-3:] + "?!") == 2


def test_messages_with_times_are_recognised_in_any_order(engine: Engine) -> None:
    messages = [
        Message(role, f"{role} {at}", timestamp=START + timedelta(seconds=at))
        for at in range(20)
        for role in (Role.USER, Role.ASSISTANT)
    ]
    assert store(engine, "shuffled", messages) == 40
    assert store(engine, "shuffled", messages[::-1]) == 0
    assert store(engine, "shuffled", random.Random(7).sample(messages, 30)) == 0


def test_a_turn_of_a_very_long_chat_takes_little_memory(engine: Engine) -> None:
    send(engine, "endless", "S" + "AaBbCcoo" * 400)
    peaks = []
    for turn in ("oxA", "aay", "Czo"):
        tracemalloc.start()
        send(engine, "endless", turn)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert max(peaks) < 600_000  # bytes; all 3 200 messages are 2 MB


def test_two_clients_that_write_to_one_long_channel_take_little_memory(engine: Engine) -> None:
    sent: dict[str, list[Message]] = {"kim": [], "lee": []}

    def turn(who: str, count: int) -> int:
        begun = len(sent[who])
        new = (Message(Role.USER, f"{who} {begun + n}", START + timedelta(seconds=begun + n)) for n in range(count))
        sent[who] += new
        return store(engine, "shared", sent[who][-6 - count :])

    assert [turn(who, 1500) for who in sent] == [1500, 1500]
    tracemalloc.start()
    assert [turn(who, 2) for _ in range(3) for who in sent] == [2] * 6
    assert tracemalloc.get_traced_memory()[1] < 600_000
    tracemalloc.stop()
    assert store(engine, "shared", sent["kim"]) == 0


INSERTED = [
    *(("Aat", ".Aat", 1), ("AaBb", "AxBb", 1), ("ABb", "AaBb", 1)),
    *(("Aa", ".Aa", 1), ("AaBbCcDdEeFf", ".DdEeFfGg", 3)),
]


def test_a_message_inserted_before_known_ones_is_added_once(engine: Engine) -> None:
    for first, then, new in INSERTED:
        channel = f"{first} {then}"
        send(engine, channel, first)
        assert [send(engine, channel, then) for _ in range(4)] == [new, 0, 0, 0], channel
        assert [send(engine, channel, then + "Zz") for _ in range(2)] == [2, 0], channel


def test_an_inserted_turn_is_recognised_in_the_order_of_arrival_too(engine: Engine) -> None:
    assert [send(engine, "as it came", letters) for letters in ("Aa", "BbAa", "AaBb")] == [2, 2, 0]


def turns_of(engine: Engine, channel: str) -> dict[str, int]:
    with engine.begin() as connection:
        within = conversation.c.channel == channel
        return dict(connection.execute(select(conversation.c.text, conversation.c.turn).where(within)).all())


def test_an_inserted_first_message_has_its_own_turn_and_an_appended_one_belongs_to_the_last(engine: Engine) -> None:
    for channel, added in (("first", ".AaBb"), ("last", "x")):
        send(engine, channel, "AaBb")
        send(engine, channel, added)
    first, last = turns_of(engine, "first"), turns_of(engine, "last")
    assert first["A"] == first["a"] != first["B"] == first["b"]
    assert first["."] not in (first["A"], first["B"])
    assert last["x"] == last["B"]


@pytest.mark.parametrize("letters", ["Co" * 200, "." + "o" * 150])
def test_hundreds_of_equal_messages_are_recognised_fast(engine: Engine, letters: str) -> None:
    send(engine, letters, letters)
    started = time.process_time()
    assert send(engine, letters, letters + "o") == 1
    assert send(engine, letters, "." + letters) <= 1
    assert time.process_time() - started < 5, "far above the usual time; it once took minutes"
