"""Rebuilding the index while the registry is in use."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import update

from registry.registry import Registry
from registry.search.retrieval import find_messages
from registry.search.scope import Scope
from registry.storage.conversations.messages import delete_message, restore_message
from registry.storage.index import rebuild_index as rebuilding
from registry.storage.index.message_index import index_of
from registry.storage.index.rebuild_index import reindex
from registry.storage.tables import conversation

pytestmark = pytest.mark.anyio

WORDS = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliett", "kilo"]


@pytest.fixture
async def registry(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Registry]:
    """A registry with ten messages, rebuilt two at a time."""
    monkeypatch.setattr(rebuilding, "BATCH", 2)
    registry = Registry(database_url)
    await save(registry, "c", *(f"redis {word}" for word in WORDS[:10]))
    yield registry
    registry.close()


async def save(registry: Registry, channel: str, *texts: str) -> list[str]:
    messages = [{"role": "user", "text": text} for text in texts]
    return await registry.save_conversation(channel, messages, "cursor", {"title": "zebra stripes"})


async def numbers(registry: Registry, words: str, scope: Scope | None = None) -> list[int]:
    """Return the numbers of the messages that contain the words, best first."""
    findings = await registry.read(lambda tx: find_messages(tx, words, scope or Scope()))
    ranked = (ranked.candidate.number for ranked in findings.ranked)
    return [number for number in ranked if number in findings.matched]


def ignore(_done: int, _total: int) -> None:
    pass


async def mark_index_as_old(registry: Registry) -> None:
    await registry.write(lambda tx: tx.execute(update(conversation).values(analyzer_version=0, length=1)))


@pytest.mark.both_databases
async def test_a_rebuilt_index_finds_what_the_old_one_found(registry: Registry) -> None:
    before = await numbers(registry, "redis")
    progress: list[tuple[int, int]] = []
    assert await reindex(registry, ignore) == 0
    await mark_index_as_old(registry)
    assert await reindex(registry, lambda done, total: progress.append((done, total))) == 10
    assert progress == [(2, 10), (4, 10), (6, 10), (8, 10), (10, 10)]
    assert await numbers(registry, "redis") == before
    assert (await registry.read(lambda tx: find_messages(tx, "zebra", Scope()))).channels
    assert await reindex(registry, ignore) == 0
    await save(registry, "c", "redis afterwards")
    assert len(await numbers(registry, "redis")) == 11


@pytest.mark.both_databases
async def test_an_interrupted_rebuild_is_resumed_and_searches_work_meanwhile(registry: Registry) -> None:
    ids = await save(registry, "d", "mongo one", "mongo two", "mongo three")

    def die(done: int, _total: int) -> None:
        if done == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await reindex(registry, die, everything=True)
    assert len(await numbers(registry, "redis")) == 10
    [first] = await numbers(registry, "alpha")
    gone: dict[str, Any] = (await registry.get_conversations("c", limit=100))[0]
    await registry.write(lambda tx: delete_message(tx, gone["id"]))
    await registry.write(lambda tx: delete_message(tx, ids[0]))
    await registry.write(lambda tx: restore_message(tx, ids[0]))
    assert await numbers(registry, "alpha") == []
    assert await reindex(registry, ignore, everything=True) == 7
    assert await numbers(registry, "alpha") == []
    assert await registry.read(lambda tx: index_of(tx).holders(tx, [["alpha"]])) == []
    assert len(await numbers(registry, "redis")) == 9
    assert len(await numbers(registry, "mongo")) == 3
    await registry.write(lambda tx: restore_message(tx, gone["id"]))
    assert await numbers(registry, "alpha") == [first]


async def test_another_process_searches_the_new_index_without_a_restart(registry: Registry, database_url: str) -> None:
    other = Registry(database_url)
    assert len(await numbers(other, "redis")) == 10
    await reindex(registry, ignore, everything=True)
    assert len(await numbers(other, "redis")) == 10
    await save(other, "c", *(f"redis {word}" for word in WORDS))
    assert len(await numbers(registry, "kilo")) == 1
    assert len(await numbers(other, "redis")) == 11
    other.close()
