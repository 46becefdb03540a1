"""An engine of each database, for tests that write in their own transactions."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from registry.storage.connections import create_database_engine


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    opened = create_database_engine(database_url)
    yield opened.execution_options(write=True)
    opened.dispose()


@pytest.fixture(scope="module")
def shared_engine(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Share one SQLite database among the tests of a module."""
    file = shutil.copy(sqlite_template, tmp_path_factory.mktemp("shared") / "registry.db")
    opened = create_database_engine(f"sqlite:///{file}")
    yield opened.execution_options(write=True)
    opened.dispose()
