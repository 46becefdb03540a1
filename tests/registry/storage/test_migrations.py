"""Tables and their history: from nothing, at many starts at once, never from an unknown version."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError

import registry.storage.migrations
from registry.errors import StorageError
from registry.registry import Registry
from registry.storage import connections
from registry.storage.connections import create_database_engine
from registry.storage.migrate import current_revision, migrate
from registry.storage.migrations import HEAD
from registry.storage.upkeep.table_export import rehearse


def scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(Path(registry.storage.migrations.__file__).parent))
    return ScriptDirectory.from_config(config)


def test_the_known_head_is_the_newest_migration() -> None:
    assert scripts().get_current_head() == HEAD


def test_processes_that_start_at_once_make_the_tables_once(empty_database_url: str) -> None:
    with ThreadPoolExecutor(6) as starts:
        list(starts.map(migrate, [empty_database_url] * 6))
    engine = create_database_engine(empty_database_url)
    with engine.connect() as connection:
        assert current_revision(connection) == HEAD
    engine.dispose()


def test_all_that_open_an_empty_registry_at_once_get_in(tmp_path: Path) -> None:
    def opened(number: int) -> None:
        engine = create_database_engine(f"sqlite:///{tmp_path / str(number)}.db")
        with engine.connect():
            pass
        engine.dispose()

    with ThreadPoolExecutor(6) as starts:
        list(starts.map(opened, [place // 6 for place in range(150)]))


@pytest.mark.parametrize(("revision", "refusal"), [("9999", "newer version"), ("0025", "development version before")])
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


@pytest.mark.parametrize(("revision", "refusal"), [("9999", "newer version"), ("0025", "development version before")])
def test_a_backup_of_another_version_is_refused(tmp_path: Path, revision: str, refusal: str) -> None:
    with pytest.raises(StorageError, match=refusal):
        rehearse(tmp_path / "restored.db", revision, lambda _table: [])


@pytest.mark.anyio
async def test_a_program_that_is_older_than_the_tables_writes_no_more(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = {"role": "user", "text": "hello"}
    current = Registry(database_url)
    await current.save_conversation("c", [message], "cursor")
    monkeypatch.setattr(connections, "WRITER", 22)
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
def test_a_program_from_before_that_is_refused_too(database_url: str, statement: str) -> None:
    driver = create_engine(database_url.replace("postgresql:", "postgresql+psycopg:"))
    with driver.connect() as connection, pytest.raises(DBAPIError, match=r"ctxr_writer|newer version"):
        connection.exec_driver_sql(statement)
    driver.dispose()
