"""Events on PostgreSQL come when they happen, whichever process stored them: the database tells who listens."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from sqlalchemy import event

from orchestrator.service import Orchestrator
from orchestrator.sync.grown_channels import grown_channels
from registry.domain import now
from registry.registry import Registry
from registry.storage.exchange import arrivals
from tests.backoffice.event_stream import Open, Stream
from tests.pooler import running_pooler

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

NEVER_S = 1_000.0
TEXTS = ["one", "two", "three", "four"]
"""The first may be found by the look with which a listener begins, the second when it is first told."""


@pytest.fixture(autouse=True)
def nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not told is not found."""
    monkeypatch.setattr(arrivals, "POLL_S", NEVER_S)
    monkeypatch.setattr(arrivals, "NET_S", NEVER_S)
    monkeypatch.setattr(arrivals, "GATHERING_S", 0.0)


@pytest.fixture
def address(postgres_url: str) -> str:
    """Where the server that is listened to finds the registry."""
    return postgres_url


@pytest.fixture
async def orchestrator(address: str) -> AsyncIterator[Orchestrator]:
    registry = Registry(address)
    yield Orchestrator(registry)
    registry.close()


@pytest.fixture
async def elsewhere(postgres_url: str) -> AsyncIterator[Registry]:
    """The same registry as another process has it."""
    registry = Registry(postgres_url)
    yield registry
    registry.close()


async def say(registry: Registry, text: str, channel: str = "c") -> None:
    await registry.save_conversation(channel, [{"role": "user", "text": text}], "cursor")


async def tell_and_hear(registry: Registry, stream: Stream, texts: list[str]) -> None:
    for text in texts:
        await say(registry, text)
        assert (await stream.next())[2]["text"] == text


async def test_what_another_process_stores_is_told_at_once(elsewhere: Registry, listening: Open) -> None:
    async with listening() as stream:
        await tell_and_hear(elsewhere, stream, TEXTS)


async def test_what_is_stored_without_this_program_is_told_too(
    elsewhere: Registry, postgres_url: str, listening: Open
) -> None:
    columns = "id, operation, source, status, started_at, finished_at, duration_ms, request, steps"
    async with listening() as stream:
        await tell_and_hear(elsewhere, stream, TEXTS)
        async with await psycopg.AsyncConnection.connect(postgres_url) as connection:
            made = "'conversation_log', 'cursor', 'succeeded', now(), now(), 1, '{}'::jsonb, '[]'::jsonb"
            await connection.execute(f"INSERT INTO execution ({columns}) SELECT 'exec_elsewhere', {made}")
        assert (await stream.next())[2]["id"] == "exec_elsewhere"


async def test_subscribers_are_told_at_once_that_a_channel_grew(
    orchestrator: Orchestrator, elsewhere: Registry
) -> None:
    grown = grown_channels(orchestrator.registry, now())
    for channel in TEXTS:
        waiting = asyncio.ensure_future(anext(grown))
        await say(elsewhere, "Hello", channel)
        assert channel in await asyncio.wait_for(waiting, 60)
    await grown.aclose()  # type: ignore[attr-defined]


async def test_a_listening_connection_that_is_cut_is_made_anew(
    elsewhere: Registry, postgres_url: str, listening: Open
) -> None:
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
    async with listening() as stream:
        await tell_and_hear(elsewhere, stream, TEXTS)
        async with await psycopg.AsyncConnection.connect(postgres_url) as connection:
            cut = await (await connection.execute(ended + " AND query = 'LISTEN ctxr'")).fetchall()
        assert cut == [(True,)]
        await tell_and_hear(elsewhere, stream, ["five", "six", "seven", "eight"])


async def test_the_server_is_warned_of_nothing_by_who_listens(orchestrator: Orchestrator, listening: Open) -> None:
    warnings: list[str | None] = []

    @event.listens_for(orchestrator.registry.engine, "checkout")
    def hear(connection: psycopg.Connection[Any], *_: object) -> None:
        connection.add_notice_handler(lambda notice: warnings.append(notice.message_primary))

    async with listening() as stream:
        await tell_and_hear(orchestrator.registry, stream, TEXTS)
        await orchestrator.registry.maintain(["VACUUM (ANALYZE) channel"])
        await tell_and_hear(orchestrator.registry, stream, ["five"])
    assert not warnings


async def test_who_listens_takes_no_connection_that_nobody_waits_for_when_the_registry_is_closed(
    orchestrator: Orchestrator, listening: Open
) -> None:
    takers = set[str]()

    @event.listens_for(orchestrator.registry.engine, "checkout")
    def note(*_: object) -> None:
        takers.add(threading.current_thread().name.rpartition("_")[0])

    async with listening() as stream:
        await tell_and_hear(orchestrator.registry, stream, TEXTS)
    assert takers == {"registry-read", "registry-write"}


async def test_what_is_stored_while_another_tells_is_found_by_looking_again(
    elsewhere: Registry, postgres_url: str, listening: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with listening() as stream:
        await tell_and_hear(elsewhere, stream, TEXTS)
        monkeypatch.setattr(arrivals, "POLL_S", 0.01)
        monkeypatch.setattr(arrivals, "BUSY_S", NEVER_S)
        await tell_and_hear(elsewhere, stream, ["five"])
        async with await psycopg.AsyncConnection.connect(postgres_url) as another:
            await another.execute("SELECT pg_advisory_xact_lock(1668577395)")
            await tell_and_hear(elsewhere, stream, ["six", "seven"])


@pytest.mark.skipif(not shutil.which("pgbouncer"), reason="no pgbouncer")
class TestBehindAPooler:
    @pytest.fixture
    async def address(self, postgres_url: str) -> AsyncIterator[str]:
        with running_pooler(postgres_url) as url:
            yield url

    async def test_events_come_as_they_are_looked_for(
        self, elsewhere: Registry, listening: Open, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(arrivals, "POLL_S", 0.01)
        monkeypatch.setattr(arrivals, "BUSY_S", 0.0)
        monkeypatch.setattr(arrivals, "PROOF_S", 0.2)
        is_given_up = asyncio.Event()
        monkeypatch.setattr(arrivals.logger, "info", lambda *_: is_given_up.set())
        async with listening() as stream:
            await is_given_up.wait()
            await tell_and_hear(elsewhere, stream, TEXTS)
