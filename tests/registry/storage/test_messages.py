"""Logging as clients do it, on both databases: resends, changed times, concurrent writers."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from registry.domain import format_time
from registry.errors import NotFound, StorageError
from registry.registry import Registry

pytestmark = pytest.mark.anyio

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def at(seconds: float) -> str:
    return format_time(NOON + timedelta(seconds=seconds))


def turn(question: str, answer: str, seconds: float | None = None) -> list[dict[str, Any]]:
    messages = [{"role": "user", "text": question}, {"role": "assistant", "text": answer}]
    if seconds is not None:
        messages[0]["timestamp"], messages[1]["timestamp"] = at(seconds), at(seconds + 5)
    return messages


async def texts(registry: Registry, channel: str = "c") -> list[str]:
    return [message["text"] for message in await registry.get_conversations(channel, limit=10_000)]


@pytest.mark.both_databases
async def test_a_message_is_returned_as_it_was_sent(registry: Registry) -> None:
    sent = {
        "role": "user",
        "text": "한글 \x00 emoji 🎉\n\ttabs ",
        "timestamp": "2026-01-05T21:00:00.1234+09:00",
        "context": {"file": "src/a.py", "line": 3, "nul": "\x00"},
        "attachment": "plan.pdf",
    }
    [message_id] = await registry.save_conversation("c", [sent], "cursor")
    [stored] = await registry.get_conversations("c")
    assert stored["id"] == message_id
    assert stored["text"] == "한글 \N{REPLACEMENT CHARACTER} emoji 🎉\n\ttabs "
    assert stored["timestamp"] == "2026-01-05T12:00:00.123Z"
    assert stored["context"] == {"file": "src/a.py", "line": 3, "nul": "\N{REPLACEMENT CHARACTER}"}
    assert stored["payload"]["attachment"] == "plan.pdf"
    assert (stored["source"], stored["channel"], stored["record_type"]) == ("cursor", "c", "conversation")


async def test_messages_are_sorted_by_time_not_by_arrival(registry: Registry) -> None:
    unordered = [*turn("second", "2", 60), *turn("first", "1", 0)]
    await registry.save_conversation("c", unordered, "cursor")
    await registry.save_conversation("c", unordered, "cursor")
    without_times = [{"role": m["role"], "text": m["text"]} for m in unordered]
    await registry.save_conversation("c", without_times, "cursor")
    assert await texts(registry) == ["first", "1", "second", "2"]


@pytest.mark.both_databases
async def test_times_are_compared_with_their_offset(registry: Registry) -> None:
    messages = [
        {"role": "user", "text": "later", "timestamp": "2026-01-05T12:00:00+00:00"},
        {"role": "user", "text": "earlier", "timestamp": "2026-01-05T20:00:00+09:00"},
        {"role": "user", "text": "naive", "timestamp": "2026-01-05T11:30:00"},
    ]
    await registry.save_conversation("c", messages, "cursor")
    assert await texts(registry) == ["earlier", "naive", "later"]


@pytest.mark.both_databases
async def test_a_deleted_message_does_not_come_back_with_the_next_resend(registry: Registry) -> None:
    conversation = turn("the password is hunter2", "noted", 0)
    ids = await registry.save_conversation("c", conversation, "cursor")
    await registry.delete_conversation(ids[0])
    assert await registry.save_conversation("c", [*conversation, *turn("next", "ok", 60)], "cursor")
    assert await texts(registry) == ["noted", "next", "ok"]
    everything = await registry.get_conversations("c", include_deleted=True)
    assert [message["deleted"] for message in everything] == [True, False, False, False]
    with pytest.raises(NotFound):
        await registry.delete_conversation("conv_missing")


@pytest.mark.both_databases
async def test_reading_can_be_limited_by_number_and_time(registry: Registry) -> None:
    await registry.save_conversation("c", [m for i in range(10) for m in turn(f"q{i}", f"a{i}", i * 60)], "cursor")
    assert [m["text"] for m in await registry.get_conversations("c", limit=2)] == ["q9", "a9"]
    some = await registry.get_conversations(
        "c", from_timestamp=NOON + timedelta(minutes=3), to_timestamp=NOON + timedelta(minutes=4)
    )
    assert [m["text"] for m in some] == ["q3", "a3", "q4"]
    assert await registry.get_conversations("unknown") == []


def resend(random: Random, conversation: list[dict[str, Any]], end: int) -> list[dict[str, Any]]:
    """Return the conversation up to `end`, changed and cut like a client that sends it again."""
    start = random.choice([0, 0, max(0, end - random.randint(8, 20))])
    style = random.choice(["as it was", "no times", "some times", "drifted", "wrapped"])
    return [_change(random, style, message) for message in conversation[start:end]]


def _change(random: Random, style: str, message: dict[str, Any]) -> dict[str, Any]:
    changed = dict(message)
    if style == "no times" or (style == "some times" and random.random() < 0.5):
        del changed["timestamp"]
    if style == "drifted":
        moment = datetime.fromisoformat(message["timestamp"]) + timedelta(milliseconds=random.randint(-900, 900))
        changed["timestamp"] = format_time(moment)
    if style == "wrapped":
        changed["text"] = "\n  ".join(message["text"].split(" ")) + "\n"
    return changed


def long_conversation(random: Random, turns: int) -> list[dict[str, Any]]:
    """Return turns of which about a third repeat "continue" / "done"."""
    return [
        message
        for i in range(turns)
        for message in turn(
            *random.choice([("continue", "done"), (f"question {i} 질문", f"answer {i}"), (f"why {i}?", "done")]),
            seconds=i * 60,
        )
    ]


@pytest.mark.slow
@pytest.mark.both_databases
@pytest.mark.parametrize("seed", range(2))
async def test_any_way_of_sending_a_conversation_again_adds_nothing(registry: Registry, seed: int) -> None:
    random = Random(seed)
    conversation = long_conversation(random, 25)
    for end in range(2, len(conversation) + 1, 2):
        # New messages have their times; older ones may be changed.
        fresh = conversation[end - 2 : end]
        for _ in range(random.randint(1, 2)):
            await registry.save_conversation("c", [*resend(random, conversation, end - 2), *fresh], "cursor")
    assert await texts(registry) == [" ".join(message["text"].split()) for message in conversation]


@pytest.mark.both_databases
async def test_concurrent_writers_store_each_message_once(database_url: str) -> None:
    registries = [Registry(database_url) for _ in range(3)]
    conversation = long_conversation(Random(1), 12)
    try:
        for end in range(2, len(conversation) + 1, 2):
            sent = conversation[:end]
            ids = await asyncio.gather(*(each.save_conversation("c", sent, "cursor") for each in registries))
            assert ids[0] == ids[1] == ids[2]
        assert await texts(registries[0]) == [message["text"] for message in conversation]
    finally:
        for each in registries:
            each.close()


@pytest.mark.both_databases
async def test_a_failing_call_stores_nothing(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> Iterator[int]:
        raise sqlite3.OperationalError("disk full")

    monkeypatch.setattr("registry.ingest.save._channel_totals", full)
    with pytest.raises(sqlite3.OperationalError):
        await registry.save_conversation("c", turn("lost?", "no", 0), "cursor")
    monkeypatch.undo()
    assert await registry.get_conversations("c") == []
    assert len(await registry.save_conversation("c", turn("lost?", "no", 0), "cursor")) == 2


@pytest.mark.both_databases
async def test_a_cancelled_call_stores_all_or_nothing(registry: Registry) -> None:
    for i in range(20):
        saving = asyncio.create_task(registry.save_conversation("c", turn(f"q{i}", f"a{i}", i * 60), "cursor"))
        await asyncio.sleep(0.001 * (i % 3))
        saving.cancel()
        await asyncio.gather(saving, return_exceptions=True)
    await registry.save_conversation("d", turn("after", "all", 0), "cursor")  # waits for the running ones
    stored = await texts(registry)
    assert len(stored) % 2 == 0
    assert [text[0] for text in stored] == ["q", "a"] * (len(stored) // 2)


async def test_a_damaged_registry_is_reported_not_treated_as_empty(tmp_path: Path) -> None:
    file = tmp_path / "registry.db"
    file.write_bytes(b"this is no database, but it was one" * 100)
    with pytest.raises(StorageError) as refused:
        Registry(f"sqlite:///{file}")
    assert "not a database" in refused.value.details
    assert file.read_bytes().startswith(b"this is no database")
