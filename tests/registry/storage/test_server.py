"""PostgreSQL with locked rows, short timeouts, limited roles and several hosts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from typing import Any, LiteralString
from zlib import crc32

import psycopg
import pytest

from orchestrator.service import Orchestrator
from registry.errors import InvalidRequest, StorageError
from registry.registry import Registry
from registry.storage.connections import create_database_engine
from registry.storage.database import Database, Limits
from registry.storage.migrate import migrate

pytestmark = pytest.mark.anyio

WRITERS = 12
"""More than there are writer threads."""
RIGHTS: dict[str, LiteralString] = {
    "owns the database": "ALTER DATABASE {name} OWNER TO ctxr",
    "owns a schema": "CREATE SCHEMA ctxr AUTHORIZATION ctxr",
    "owns nothing": "GRANT CREATE ON DATABASE {name} TO ctxr",
}


@pytest.fixture
async def orchestrator(postgres_url: str) -> AsyncIterator[Orchestrator]:
    registry = Registry(postgres_url, Limits(lock_s=60.0, statement_s=60.0))
    yield Orchestrator(registry)
    registry.close()


async def log(orchestrator: Orchestrator, channel: str, text: str = "Hello?") -> dict[str, Any]:
    message = {"role": "user", "text": text}
    return await orchestrator.run(
        {"operation": "conversation_log", "channel": channel, "source": "cursor", "messages": [message]}
    )


@contextmanager
def locked(url: str, channel: str) -> Iterator[None]:
    """Lock a channel's row in another session."""
    with psycopg.connect(url) as connection:
        connection.execute("SELECT * FROM channel WHERE name = %s FOR UPDATE", [channel])
        yield


async def test_a_locked_channel_does_not_block_other_channels(orchestrator: Orchestrator, postgres_url: str) -> None:
    for name in ("held", "old"):
        await log(orchestrator, name)
    with locked(postgres_url, "held"):
        waiting = [asyncio.create_task(log(orchestrator, "held", f"Question {n}?")) for n in range(WRITERS)]
        await asyncio.sleep(0.1)
        others = [log(orchestrator, "old", "Still there?"), *(log(orchestrator, f"new {n}") for n in range(WRITERS))]
        answers = await asyncio.gather(*others)
        assert not any(task.done() for task in waiting)
        assert [answer["new_count"] for answer in answers] == [1] * (WRITERS + 1)
    assert all(answer["success"] for answer in await asyncio.gather(*waiting))


async def test_two_writes_in_a_deadlock_are_both_stored(orchestrator: Orchestrator, postgres_url: str) -> None:
    await log(orchestrator, "basket", "The session")
    [stored] = await orchestrator.registry.get_conversations("basket")
    message = {"role": "user", "text": "The session expires.", "stored_id": stored["id"]}
    more = {"operation": "conversation_log", "channel": "basket", "source": "cursor", "messages": [message]}
    named = {"operation": "tag", "channel": "basket", "query": {"add_tags": ["shop"]}}
    with closing(Registry(postgres_url, Limits(lock_s=60.0))) as another:
        async with await psycopg.AsyncConnection.connect(postgres_url) as holding:
            await holding.execute("SELECT pg_advisory_xact_lock(%s)", [crc32(b"edits")])
            naming = asyncio.create_task(Orchestrator(another).run(named))  # locks edits, then the channel
            await wait_for_blocked(postgres_url, 1)
            adding = asyncio.create_task(orchestrator.run({**more, "grows": stored["id"]}))  # locks the channel first
            await wait_for_blocked(postgres_url, 2)
        answers = await asyncio.gather(naming, adding)
    assert [answer.get("error") for answer in answers] == [None, None]
    [stored] = await orchestrator.registry.get_conversations("basket")
    assert stored["text"] == "The session expires."


async def wait_for_blocked(url: str, count: int) -> None:
    """Wait until `count` sessions wait for a lock."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as looking:
        while True:
            found = await looking.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if await found.fetchone() == (count,):
                return
            await asyncio.sleep(0.02)


async def test_a_write_that_waits_too_long_for_a_lock_reports_that_nothing_was_stored(postgres_url: str) -> None:
    registry = Registry(postgres_url, Limits(lock_s=0.2))
    orchestrator = Orchestrator(registry)
    await log(orchestrator, "held")
    with locked(postgres_url, "held"):
        error = (await log(orchestrator, "held", "Too late?"))["error"]
    assert error["code"] == "TIMEOUT"
    assert "nothing was stored" in error["details"]
    assert [message["text"] for message in await orchestrator.registry.get_conversations("held")] == ["Hello?"]
    assert (await log(orchestrator, "held", "Too late?"))["new_count"] == 1
    registry.close()


async def test_a_transaction_leaves_no_setting_or_prepared_statement_in_the_session(
    orchestrator: Orchestrator, postgres_url: str
) -> None:
    await log(orchestrator, "chat")
    await orchestrator.run({"operation": "search", "query": {"text": "hello"}})
    with psycopg.connect(postgres_url) as connection:
        usual = connection.execute("SHOW lock_timeout").fetchone()

    def state(tx: Any) -> list[Any]:
        connection = tx.connection.driver_connection
        connection.execute("COMMIT")
        prepared = connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
        return [connection.execute("SHOW lock_timeout").fetchone(), prepared]

    assert await orchestrator.registry.read(state) == [usual, (0,)]


def test_a_slow_migration_ignores_the_servers_idle_and_lock_timeouts(
    empty_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(empty_postgres_url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET idle_in_transaction_session_timeout = '50ms'")
        connection.execute(f"ALTER DATABASE {name} SET lock_timeout = '50ms'")
    from registry.storage import migrate as module

    upgrade = module._upgrade

    def slowly(*arguments: Any) -> None:
        time.sleep(0.2)
        upgrade(*arguments)

    monkeypatch.setattr(module, "_upgrade", slowly)
    migrate(empty_postgres_url)


@contextmanager
def role_that(right: str, url: str) -> Iterator[str]:
    """Yield the database's address for a role with only this right on the server."""
    with psycopg.connect(url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute("CREATE ROLE ctxr LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE")
        connection.execute(RIGHTS[right].format(name=name))
        try:
            yield url.replace("postgres@", "ctxr@", 1)
        finally:
            connection.execute(f"ALTER DATABASE {name} OWNER TO postgres")
            connection.execute("DROP OWNED BY ctxr CASCADE")
            connection.execute("DROP ROLE ctxr")


@pytest.mark.parametrize("right", ["owns the database", "owns a schema"])
async def test_owning_the_database_or_a_schema_is_enough(empty_postgres_url: str, right: str) -> None:
    with role_that(right, empty_postgres_url) as url:
        registry = Registry(url)  # makes the tables
        assert await registry.read(lambda tx: tx.exec_driver_sql("SHOW is_superuser").scalar()) == "off"
        orchestrator = Orchestrator(registry)
        assert (await log(orchestrator, "chat", "Where is the wombat?"))["success"]
        answer = await orchestrator.run({"operation": "search", "query": {"text": "wombat"}})
        assert [message["text"] for message in answer["messages"]] == ["Where is the wombat?"]
        registry.close()


def test_a_role_that_cannot_make_tables_is_told_what_to_own(empty_postgres_url: str) -> None:
    with role_that("owns nothing", empty_postgres_url) as url, pytest.raises(StorageError) as raised:
        Registry(url)
    assert "permission denied" in str(raised.value.details)
    assert "ALTER DATABASE … OWNER TO …" in str(raised.value.details)
    assert "CTXR_" not in str(raised.value.details)  # the address may come from an option instead


async def test_a_role_that_cannot_read_existing_tables_is_not_told_to_own_the_database(postgres_url: str) -> None:
    with role_that("owns nothing", postgres_url) as url:
        database = Database(url)
        with pytest.raises(StorageError) as raised:
            await database.read(lambda tx: tx.exec_driver_sql("SELECT * FROM channel").all())
        database.close()
    assert "permission denied" in raised.value.details
    assert "OWNER" not in raised.value.details


def test_an_address_may_name_several_hosts(postgres_url: str) -> None:
    url = psycopg.conninfo.conninfo_to_dict(postgres_url)
    several = f"postgresql://{url['user']}@%2Fnowhere:5432,{str(url['host']).replace('/', '%2F')}:5432/{url['dbname']}"
    engine = create_database_engine(several)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT 1").scalar() == 1
    engine.dispose()


@pytest.mark.parametrize("url", ["postgresql://a:x/ctxr", "postgresql"])
def test_an_invalid_address_is_reported(url: str) -> None:
    with pytest.raises(InvalidRequest, match="address is not usable"):
        create_database_engine(url)
