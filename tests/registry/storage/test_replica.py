"""Reads from a streaming replica, also when it falls behind or goes away."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from cli.upkeep.doctor import check_replica
from orchestrator.service import Orchestrator
from registry.errors import InvalidRequest
from registry.registry import Registry
from registry.settings import Settings
from registry.storage import replica
from registry.storage.migrate import migrate
from tests.databases import PostgresServer, running_replica
from tests.orchestrator.remote.laptops import Laptop, Line, texts_by_channel

pytestmark = pytest.mark.anyio

MAX_WAIT_S = 30.0


@pytest.fixture(scope="module")
def original(postgres_server: PostgresServer) -> PostgresServer:
    migrate(postgres_server.url("postgres"))
    return postgres_server


@pytest.fixture(scope="module")
def copies() -> Iterator[ExitStack]:
    """Closed by the last test, which stops the replica."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="module")
def copy(original: PostgresServer, copies: ExitStack) -> PostgresServer:
    return copies.enter_context(running_replica(original))


@pytest.fixture
async def orchestrator(original: PostgresServer, copy: PostgresServer) -> AsyncIterator[Orchestrator]:
    registry = Registry(original.url("postgres"), read_url=copy.url("postgres"))
    yield Orchestrator(registry)
    registry.close()


async def log(orchestrator: Orchestrator, channel: str, text: str, **more: str) -> None:
    message = {"role": "user", "text": text, **more}
    answer = await orchestrator.run({"operation": "conversation_log", "channel": channel, "messages": [message]})
    assert answer["success"]


async def found(orchestrator: Orchestrator, words: str) -> list[str]:
    answer = await orchestrator.run({"operation": "search", "query": {"text": words}})
    return [message["text"] for message in answer["messages"]]


async def answering_server(orchestrator: Orchestrator) -> str:
    """Return which server answers a query now."""
    asking = orchestrator.registry.for_reading()
    is_copy = await asking.read(lambda tx: tx.exec_driver_sql("SELECT pg_is_in_recovery()").scalar())
    return "replica" if is_copy else "original"


async def wait_until_answered_by(orchestrator: Orchestrator, wanted: str) -> None:
    deadline = time.monotonic() + MAX_WAIT_S
    while await answering_server(orchestrator) != wanted:
        assert time.monotonic() < deadline


def execute(server: PostgresServer, statement: Any) -> None:
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(statement)


async def test_a_writer_reads_its_own_writes_while_the_replica_is_behind(
    orchestrator: Orchestrator, copy: PostgresServer
) -> None:
    await log(orchestrator, "basket", "Why does the zanzibar basket lose items?")
    await wait_until_answered_by(orchestrator, "replica")
    assert len(await found(orchestrator, "zanzibar basket")) == 1
    execute(copy, "SELECT pg_wal_replay_pause()")
    await log(orchestrator, "phone", "And on the quokka phone?")
    assert await answering_server(orchestrator) == "original"
    assert len(await found(orchestrator, "quokka phone")) == 1
    execute(copy, "SELECT pg_wal_replay_resume()")
    await wait_until_answered_by(orchestrator, "replica")
    assert len(await found(orchestrator, "quokka phone")) == 1


async def test_pull_gets_new_messages_while_the_replica_is_behind(
    orchestrator: Orchestrator, original: PostgresServer, copy: PostgresServer, tmp_path: Path
) -> None:
    migrate(f"sqlite:///{tmp_path / 'laptop.db'}")
    laptop = Laptop(tmp_path / "laptop.db", Line(orchestrator))
    await log(orchestrator, "nest", "Where is")
    await wait_until_answered_by(orchestrator, "replica")
    await laptop.pull()
    [question] = await orchestrator.registry.get_conversations("nest")
    execute(copy, "SELECT pg_wal_replay_pause()")
    with closing(Registry(original.url("postgres"))) as another:
        await log(Orchestrator(another), "aviary", "Where is the kakapo?")
        await log(Orchestrator(another), "nest", "Where is the egg?", stored_id=question["id"])
    assert await answering_server(orchestrator) == "replica"
    await laptop.pull()
    execute(copy, "SELECT pg_wal_replay_resume()")
    texts = await texts_by_channel(laptop.orchestrator)
    assert (texts.get("aviary"), texts["nest"]) == (["Where is the kakapo?"], ["Where is the egg?"])
    laptop.orchestrator.registry.close()


def test_doctor_checks_the_replica(original: PostgresServer, copy: PostgresServer, tmp_path: Path) -> None:
    url = original.url("postgres")
    [found] = check_replica(Settings(home=tmp_path, database_url=url, database_read_url=copy.url("postgres")))
    assert found.state == "ok"
    [wrong] = check_replica(Settings(home=tmp_path, database_url=url, database_read_url=url))
    assert "not a replica" in wrong.found


async def test_recording_a_run_does_not_move_reads_to_the_original(
    orchestrator: Orchestrator, copy: PostgresServer
) -> None:
    await wait_until_answered_by(orchestrator, "replica")
    execute(copy, "SELECT pg_wal_replay_pause()")
    await found(orchestrator, "basket")
    await orchestrator.settle()
    assert await answering_server(orchestrator) == "replica"
    execute(copy, "SELECT pg_wal_replay_resume()")


async def test_a_replica_that_lost_its_connections_answers_again(
    orchestrator: Orchestrator, copy: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await wait_until_answered_by(orchestrator, "replica")
    monkeypatch.setattr(replica, "RETRY_S", 0.0)
    asking = orchestrator.registry.for_reading()
    kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend'"
    execute(copy, kill + " AND pid <> pg_backend_pid()")
    assert await asking.read(lambda tx: tx.exec_driver_sql("SELECT 1").scalar()) == 1
    await wait_until_answered_by(orchestrator, "replica")


def test_a_replica_of_an_sqlite_file_is_refused(sqlite_url: str) -> None:
    with pytest.raises(InvalidRequest, match="replica's address"):
        Registry(sqlite_url, read_url="postgresql://nobody@/nothing")


async def test_the_original_answers_and_a_warning_is_logged_when_the_replica_is_gone(
    orchestrator: Orchestrator, copies: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    await log(orchestrator, "lost", "Where is the wombat?")
    await wait_until_answered_by(orchestrator, "replica")
    copies.close()
    assert await found(orchestrator, "wombat") == ["Where is the wombat?"]
    assert await answering_server(orchestrator) == "original"
    assert sum("The replica does not answer" in record.message for record in caplog.records) == 1
