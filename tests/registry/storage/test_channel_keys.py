"""What belongs to a message names its channel: as it is stored, when conversations become one, and after a rebuild."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sqlalchemy import text

from registry.ingest.merge_channels import merge_channels
from registry.registry import Registry
from registry.search.vectors import EmbeddingModel, Vector, keep_model, keep_vectors, unembedded
from registry.storage.exchange.remote import note_messages
from registry.storage.index.rebuild_index import reindex
from registry.storage.upkeep.copying import copy_registry
from registry.storage.upkeep.integrity import damage_of

pytestmark = pytest.mark.anyio

ELSEWHERE = "https://memory.example.org"
ASKED = ["Why does the basket lose its items after login?", "And what about guests who never log in at all?"]
NAMING = {"message_alias": "number", "remote_message": "number", "message_vector": "message_number"}


@pytest.fixture
async def registry(database_url: str) -> AsyncIterator[Registry]:
    """One conversation twice, each message with a vector and a name elsewhere, and once more with one more message."""
    registry = Registry(database_url)
    for channel, texts in (("session", ASKED), ("named", [*ASKED, "A question that only one of them has"])):
        messages = [{"role": "user", "text": said} for said in texts]
        await registry.save_conversation(channel, messages, "cursor", {"title": channel})
    model = await registry.write(lambda tx: keep_model(tx, "toy", 4, 1, 0.0, 0.2))
    await registry.write(lambda tx: _add_to_each(tx, model))
    yield registry
    registry.close()


def _add_to_each(tx: Any, model: EmbeddingModel) -> None:
    lacking = unembedded(tx, model, 0, 100)
    keep_vectors(tx, model, [Vector(one.number, one.digest, b"1234") for one in lacking])
    note_messages(tx, ELSEWHERE, {one.number: f"there_{one.number}" for one in lacking})


async def rows(registry: Registry, table: str, columns: str = "number, channel_number") -> list[tuple[Any, ...]]:
    statement = text(f"SELECT {columns} FROM {table}")  # noqa: S608
    return [tuple(row) for row in await registry.read(lambda tx: tx.execute(statement).all())]


async def channels_named(registry: Registry) -> dict[str, bool]:
    """Of each table that has rows, whether all of them name the channel of their message."""
    of = dict(await rows(registry, "conversation"))
    named = {table: await rows(registry, table, f"{number}, channel_number") for table, number in NAMING.items()}
    if not registry.is_embedded:
        named["message_index"] = await rows(registry, "message_index WHERE number > 0")
        titles = await rows(registry, "message_index WHERE number < 0")
        assert all(channel == -number for number, channel in titles)
        assert titles
    return {table: all(channel == of[number] for number, channel in held) for table, held in named.items() if held}


def all_right(registry: Registry, *tables: str) -> dict[str, bool]:
    return dict.fromkeys([*tables, *([] if registry.is_embedded else ["message_index"])], True)


async def forget_channels(registry: Registry, value: str = "NULL") -> None:
    tables = [*NAMING, *([] if registry.is_embedded else ["message_index"])]
    for table in tables:
        statement = text(f"UPDATE {table} SET channel_number = {value}")  # noqa: S608
        await registry.write(lambda tx, statement=statement: tx.execute(statement))  # type: ignore[misc]


async def test_what_is_stored_names_its_channel(registry: Registry) -> None:
    assert await channels_named(registry) == all_right(registry, "remote_message", "message_vector")


async def test_conversations_that_become_one_take_all_that_belongs_to_them_along(
    registry: Registry, database_url: str
) -> None:
    numbers = dict(await rows(registry, "channel", "name, number"))
    await registry.write(lambda tx: merge_channels(tx, numbers["named"], numbers["session"]))
    assert len(await rows(registry, "message_alias")) == len(ASKED)
    assert await channels_named(registry) == all_right(registry, *NAMING)
    assert damage_of(database_url) == []


async def test_an_id_that_comes_to_stand_for_another_message_takes_its_channel(registry: Registry) -> None:
    numbers = dict(await rows(registry, "channel", "name, number"))
    await registry.write(lambda tx: merge_channels(tx, numbers["named"], numbers["session"]))
    await registry.save_conversation("third", [{"role": "user", "text": "Something else"}], "cursor")
    moved = text("UPDATE message_alias SET number = (SELECT max(number) FROM conversation)")
    await registry.write(lambda tx: tx.execute(moved))
    assert (await channels_named(registry))["message_alias"]


async def test_a_missing_channel_is_filled_in(registry: Registry, database_url: str) -> None:
    await forget_channels(registry)
    assert damage_of(database_url) == []
    await reindex(registry, lambda *_: None, everything=True)
    assert await channels_named(registry) == all_right(registry, "remote_message", "message_vector")


async def test_a_channel_that_is_not_the_messages_is_named_and_put_right(registry: Registry, database_url: str) -> None:
    await forget_channels(registry, "4711")
    named = damage_of(database_url)
    assert len(named) == (2 if registry.is_embedded else 3)
    assert all(line.startswith("channels: ") for line in named)
    await reindex(registry, lambda *_: None, everything=True)
    assert damage_of(database_url) == []


@pytest.fixture
def several_writers(registry: Registry) -> Registry:
    if registry.is_embedded:
        pytest.skip("SQLite has one writer at a time")
    return registry


@asynccontextmanager
async def not_ended(registry: Registry, work: Callable[[Any], object]) -> AsyncIterator[None]:
    """A transaction in which something was done, and which ends behind this."""
    is_done, goes_on = threading.Event(), threading.Event()

    def done_and_held(tx: Any) -> None:
        work(tx)
        is_done.set()
        assert goes_on.wait(60)

    holding = asyncio.create_task(registry.write(done_and_held))
    assert await asyncio.to_thread(is_done.wait, 60)
    try:
        yield
    finally:
        goes_on.set()
        await holding


async def done_or_waiting(registry: Registry, task: asyncio.Task[None]) -> None:
    """Come back when it has ended, or waits for what somebody holds."""
    waits = text(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    while not task.done() and not await registry.read(lambda tx: tx.execute(waits).scalar()):
        pass


@pytest.mark.parametrize("first", ["merge", "note"])
@pytest.mark.parametrize("table", ["message_vector", "remote_message"])
async def test_what_is_noted_of_a_message_while_it_goes_to_another_channel_names_that_one(
    several_writers: Registry, database_url: str, table: str, first: str
) -> None:
    registry = several_writers
    numbers = dict(await rows(registry, "channel", "name, number"))
    model = await registry.write(lambda tx: keep_model(tx, "toy", 4, 1, 0.0, 0.2))
    moved = text("SELECT max(number) FROM conversation")
    await registry.write(lambda tx: tx.execute(text(f"DELETE FROM {table}")))  # noqa: S608

    def note(tx: Any) -> None:
        number = tx.execute(moved).scalar()
        if table == "message_vector":
            lacking = unembedded(tx, model, number - 1, 1)
            keep_vectors(tx, model, [Vector(one.number, one.digest, b"1234") for one in lacking])
        else:
            note_messages(tx, ELSEWHERE, {number: "there"})

    def merge(tx: Any) -> None:
        merge_channels(tx, numbers["named"], numbers["session"])

    work = {"merge": merge, "note": note}
    async with not_ended(registry, work.pop(first)):
        other = asyncio.create_task(registry.write(*work.values()))
        await done_or_waiting(registry, other)
    await other
    assert damage_of(database_url) == []
    assert len(await rows(registry, table, "channel_number")) == 1


async def test_a_copy_brings_the_channels_along(registry: Registry, database_url: str, tmp_path: Any) -> None:
    copy_registry(database_url, target := f"sqlite:///{tmp_path}/copy.db")
    copied = Registry(target)
    assert await channels_named(copied) == all_right(copied, "remote_message", "message_vector")
    copied.close()
