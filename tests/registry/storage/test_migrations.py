"""Migrations: of an empty database, at concurrent starts, and refused for an unknown version."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Inspector, create_engine, inspect, text
from sqlalchemy.engine.interfaces import ReflectedIndex
from sqlalchemy.exc import DBAPIError

import registry.storage.migrations
from registry.errors import StorageError
from registry.registry import Registry
from registry.storage import connections
from registry.storage.connections import create_database_engine
from registry.storage.migrate import current_revision, migrate
from registry.storage.migrations import HEAD
from registry.storage.tables import metadata
from registry.storage.upkeep.table_export import import_into_file

pytestmark = pytest.mark.both_databases

INDEX_TABLES = {
    "message_index",
    "message_term",
    *(f"message_index_{part}" for part in ("config", "data", "docsize", "idx")),
}
"""Tables of the search index, which SQLAlchemy's metadata does not have."""


def scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(Path(registry.storage.migrations.__file__).parent))
    return ScriptDirectory.from_config(config)


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    engine = create_database_engine(url)
    with engine.execution_options(write=True).begin() as connection:
        yield connection
    engine.dispose()


def names_of(connection: Connection) -> list[str]:
    return sorted(set(inspect(connection).get_table_names()) - INDEX_TABLES - {"alembic_version"})


def described(connection: Connection) -> dict[str, Any]:
    """Return each table's columns, keys and indexes in the database."""
    found = inspect(connection)
    made_of = {name: " ".join(statement.split()) for name, statement in statements(connection)}
    return {
        name: {**described_table(found, name), **storage_of(made_of.get(name, ""))} for name in names_of(connection)
    }


def described_table(found: Inspector, name: str) -> dict[str, Any]:
    return {
        "columns": {
            column.pop("name"): {**column, "type": str(column["type"])} for column in map(dict, found.get_columns(name))
        },
        "primary key": found.get_pk_constraint(name)["constrained_columns"],
        "foreign keys": sorted(map(str, found.get_foreign_keys(name))),
        "unique": sorted(map(str, found.get_unique_constraints(name))),
        "indexes": sorted(map(described_index, found.get_indexes(name))),
    }


def described_index(index: ReflectedIndex) -> str:
    options = {name: str(value) for name, value in index.get("dialect_options", {}).items()}  # conditions too
    return str({**index, "dialect_options": options})


def statements(connection: Connection) -> list[tuple[str, str]]:
    """Return SQLite's CREATE statements, because the inspector does not show everything."""
    if connection.dialect.name != "sqlite":
        return []
    return [
        (row[0], row[1]) for row in connection.execute(text("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
    ]


def storage_of(statement: str) -> dict[str, bool]:
    return {words: words in statement for words in ("AUTOINCREMENT", "WITHOUT ROWID")}


def test_the_known_head_is_the_newest_migration() -> None:
    assert scripts().get_current_head() == HEAD


def test_migrations_make_the_tables_that_the_code_queries(empty_database_url: str) -> None:
    migrate(empty_database_url)
    with connected(empty_database_url) as connection:
        made = described(connection)
        metadata.drop_all(connection)
        metadata.create_all(connection)
        assert made == described(connection)


def test_concurrent_starts_make_the_tables_once(empty_database_url: str) -> None:
    with ThreadPoolExecutor(6) as starts:
        list(starts.map(migrate, [empty_database_url] * 6))
    engine = create_database_engine(empty_database_url)
    with engine.connect() as connection:
        assert current_revision(connection) == HEAD
    engine.dispose()


def test_an_empty_registry_can_be_opened_concurrently(tmp_path: Path) -> None:
    def opened(number: int) -> None:
        engine = create_database_engine(f"sqlite:///{tmp_path / str(number)}.db")
        with engine.connect():
            pass
        engine.dispose()

    with ThreadPoolExecutor(6) as starts:
        list(starts.map(opened, [place // 6 for place in range(150)]))


@pytest.mark.parametrize(("revision", "refusal"), [("9999", "newer version"), ("0022", "development version before")])
def test_a_database_of_another_version_is_refused_and_left_alone(
    database_url: str, revision: str, refusal: str
) -> None:
    engine = create_database_engine(database_url)
    with engine.execution_options(write=True).begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})
    with pytest.raises(StorageError, match=refusal):
        migrate(database_url)
    with engine.connect() as connection:
        assert current_revision(connection) == revision
    engine.dispose()


@pytest.mark.parametrize(("revision", "refusal"), [("9999", "newer version"), ("0022", "development version before")])
def test_a_backup_of_another_version_is_refused(tmp_path: Path, revision: str, refusal: str) -> None:
    with pytest.raises(StorageError, match=refusal):
        import_into_file(tmp_path / "restored.db", revision, lambda _table: [])


@pytest.mark.anyio
async def test_a_program_older_than_the_tables_cannot_write(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    message = {"role": "user", "text": "hello"}
    current = Registry(database_url)
    await current.save_conversation("c", [message], "cursor")
    monkeypatch.setattr(connections, "WRITER_REVISION", 22)
    older = Registry(database_url)
    try:
        assert len(await older.get_conversations("c")) == 1
        for channel in ("c", "new"):
            with pytest.raises(StorageError) as refusal:
                await older.save_conversation(channel, [{"role": "user", "text": "key"}], "cursor")
            assert "upgraded by a newer version of Context Registry" in refusal.value.details
        monkeypatch.undo()
        assert await current.save_conversation("c", [message], "cursor")
        assert [one["text"] for one in await current.get_conversations("c")] == ["hello"]
    finally:
        older.close()
        current.close()


@pytest.mark.parametrize("statement", ["INSERT INTO channel (name) VALUES ('x')", "UPDATE conversation SET text = ''"])
def test_a_program_from_before_this_check_cannot_write_either(database_url: str, statement: str) -> None:
    driver = create_engine(database_url.replace("postgresql:", "postgresql+psycopg:"))
    with driver.connect() as connection, pytest.raises(DBAPIError, match=r"ctxr_writer|newer version"):
        connection.exec_driver_sql(statement)
    driver.dispose()
