"""A program of the release before goes on beside a new one: it reads and writes the new tables as it did the old."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Engine, LargeBinary, MetaData, Table, delete, insert, select, text, update

from registry.registry import Registry
from registry.storage import migrate as migrate_module
from registry.storage.connections import create_database_engine
from registry.storage.migrate import current_revision, migrate
from registry.storage.migrations import HEAD

BEFORE = f"{int(HEAD) - 1:04}"
AT = datetime(2026, 3, 2, 10, tzinfo=UTC)
OURS = {"alembic_version"}


@contextmanager
def opened(url: str) -> Iterator[Engine]:
    engine = create_database_engine(url)
    try:
        yield engine
    finally:
        engine.dispose()


def tables_as_they_were(engine: Engine) -> MetaData:
    """What the program of the release before knows of the tables; the index of SQLite is no ordinary one."""
    known = MetaData()
    known.reflect(engine, only=lambda name, _: not name.startswith(("message_index", "message_term")))
    return known


def row_of(table: Table, number: int) -> dict[str, Any]:
    """A row with every column that the table had."""
    return {column.name: value_of(column, number) for column in table.columns}


def without_number(row: dict[str, Any]) -> dict[str, Any]:
    """The same, of which the database says the number."""
    return {name: value for name, value in row.items() if name != "number"}


def value_of(column: Any, number: int) -> Any:
    if isinstance(column.type, LargeBinary):
        return b"%016d" % number
    kind: Any = {"json": dict, "jsonb": dict}.get(type(column.type).__name__.lower()) or column.type.python_type
    made: Mapping[Any, Any] = {str: f"x{number}", int: number, float: 1.0, bool: False, datetime: AT, dict: {}}
    return made[kind]


def test_what_the_release_before_writes_is_taken(empty_database_url: str) -> None:
    number = 1
    migrate(empty_database_url, BEFORE)
    with opened(empty_database_url) as engine:
        known = tables_as_they_were(engine)
        tables = [table for table in known.sorted_tables if table.name not in OURS]
        migrate(empty_database_url)
        for table in tables:
            with engine.execution_options(write=True).begin() as connection:
                connection.execute(insert(table), row_of(table, number))
                where = [column == value_of(column, number) for column in table.primary_key.columns]
                again = {name: value for name, value in row_of(table, number).items() if not table.c[name].primary_key}
                if again:
                    assert connection.execute(update(table).where(*where).values(**again)).rowcount == 1
                assert connection.execute(select(table).where(*where)).one()
        for table in reversed(tables):
            with engine.execution_options(write=True).begin() as connection:
                connection.execute(delete(table))


@pytest.mark.anyio
async def test_who_writes_while_the_tables_change_loses_nothing(empty_postgres_url: str) -> None:
    migrate(empty_postgres_url, BEFORE)
    stop, has_begun, written = threading.Event(), threading.Event(), list[int]()

    def go_on_writing(engine: Engine, known: MetaData) -> None:
        channel, conversation = known.tables["channel"], known.tables["conversation"]
        with engine.execution_options(write=True).begin() as connection:
            connection.execute(insert(channel), without_number({**row_of(channel, 1), "message_count": 0}))
        for number in range(1, 100_000):
            row = without_number({**row_of(conversation, number), "channel_number": 1, "channel": "x1", "role": "user"})
            with engine.execution_options(write=True).begin() as connection:
                connection.execute(insert(conversation), row)
                connection.execute(update(channel).values(message_count=channel.c.message_count + 1))
            written.append(number)
            has_begun.set()
            if stop.is_set():
                return

    with opened(empty_postgres_url) as engine:
        writer = threading.Thread(target=go_on_writing, args=(engine, tables_as_they_were(engine)))
        writer.start()
        assert has_begun.wait(30)
        registry = Registry(empty_postgres_url)  # which brings the tables up to date
        try:
            before = len(written)
            while len(written) < before + 5:
                assert writer.is_alive()
                await registry.save_conversation("new", [{"role": "user", "text": f"Beside {len(written)}"}], "test")
        finally:
            stop.set()
            writer.join()
        stored = "SELECT count(*) FROM conversation WHERE id <> '' AND channel = 'x1'"
        assert await registry.read(lambda tx: tx.execute(text(stored)).scalar()) == len(written)
        registry.close()


def test_who_reads_for_long_while_the_tables_change_keeps_nobody_else_waiting(empty_postgres_url: str) -> None:
    migrate(empty_postgres_url, BEFORE)
    with opened(empty_postgres_url) as engine:
        upgrade = threading.Thread(target=migrate, args=(empty_postgres_url,))
        with engine.begin() as reader:
            reader.execute(text("SELECT count(*) FROM message_alias, message_vector, message_index, conversation"))
            upgrade.start()
            queued = "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'"
            while not reader.execute(text(queued)).scalar():
                assert upgrade.is_alive()
            with engine.begin() as other:
                other.execute(text("SET LOCAL statement_timeout = '20s'"))
                other.execute(text("SELECT count(*) FROM message_alias"))
        upgrade.join(60)
        with engine.connect() as connection:
            assert current_revision(connection) == HEAD


def test_an_upgrade_that_waits_says_once_for_what(
    empty_postgres_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    migrate(empty_postgres_url, BEFORE)
    tried, attempt = threading.Semaphore(0), migrate_module._hindrance

    def counted(engine: Engine, revision: str) -> str:
        waits_for = attempt(engine, revision)
        tried.release()
        return waits_for

    monkeypatch.setattr(migrate_module, "_hindrance", counted)
    monkeypatch.setattr(migrate_module, "_QUEUE_S", 0.01)
    with opened(empty_postgres_url) as engine:
        upgrade = threading.Thread(target=migrate, args=(empty_postgres_url,))
        with engine.begin() as reader:
            reader.execute(text("SELECT count(*) FROM message_alias, message_vector, message_index, conversation"))
            pid = reader.execute(text("SELECT pg_backend_pid()")).scalar()
            upgrade.start()
            for _ in range(3):
                assert tried.acquire(timeout=60)
        upgrade.join(60)
    [said] = [record.message for record in caplog.records if record.name == migrate_module.__name__]
    assert said.startswith("The tables are not up to date yet: somebody uses what is to be changed (DROP INDEX ")
    assert f"process {pid} of postgres" in said
