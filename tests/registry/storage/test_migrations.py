"""Tables and their history: from nothing, from the first release, at many starts at once, never from the future."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

import registry.storage.migrations
from registry.errors import StorageError
from registry.storage.database import create_database_engine
from registry.storage.migrate import current_revision, migrate
from registry.storage.migrations import HEAD
from registry.storage.tables import metadata


def test_the_known_head_is_the_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(registry.storage.migrations.__file__).parent))
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD


def test_migrations_make_the_tables_that_the_code_queries(database_url: str) -> None:
    engine = create_database_engine(database_url)
    with engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), metadata)
    engine.dispose()
    of_our_tables = [difference for difference in differences if "message_" not in str(difference)]
    assert of_our_tables == []


def test_processes_that_start_at_once_make_the_tables_once(empty_database_url: str) -> None:
    with ThreadPoolExecutor(6) as starts:
        list(starts.map(migrate, [empty_database_url] * 6))
    engine = create_database_engine(empty_database_url)
    with engine.connect() as connection:
        assert current_revision(connection) == HEAD
    engine.dispose()


def test_a_database_of_a_newer_release_is_refused_and_left_alone(database_url: str) -> None:
    engine = create_database_engine(database_url)
    with engine.execution_options(write=True).begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StorageError, match="newer version"):
        migrate(database_url)
    with engine.connect() as connection:
        assert current_revision(connection) == "9999"
    engine.dispose()
