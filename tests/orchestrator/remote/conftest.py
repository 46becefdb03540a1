"""Fixtures: two laptops and the registry elsewhere, on each database in turn."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from orchestrator.service import Orchestrator
from orchestrator.state import LocalFiles
from sources.base import Paths
from tests.orchestrator.remote.laptops import Laptop, Line


@pytest.fixture
def elsewhere(orchestrator: Orchestrator) -> Orchestrator:
    return orchestrator


@pytest.fixture
def keeper(elsewhere: Orchestrator, tmp_path: Path) -> Orchestrator:
    """The registry elsewhere, with a folder for its backups."""
    local_files = LocalFiles(tmp_path / "backups", [], Paths(tmp_path, {}), tmp_path / "resume")
    return Orchestrator(elsewhere.registry, local_files=local_files)


@pytest.fixture
def line(elsewhere: Orchestrator) -> Line:
    return Line(elsewhere)


@pytest.fixture(scope="session")
def laptop_files(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Empty registries of two laptops, each with its own key for marks of secrets."""
    files = [Path(shutil.copy(sqlite_template, tmp_path_factory.mktemp("laptops") / name)) for name in ("one", "two")]
    for file in files:
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("INSERT OR REPLACE INTO registry_key (number, key) VALUES (1, ?)", (file.name.encode(),))
    return files


@pytest.fixture
async def laptops(laptop_files: list[Path], tmp_path: Path, line: Line) -> AsyncIterator[tuple[Laptop, Laptop]]:
    one, two = (Laptop(Path(shutil.copy(file, tmp_path / f"{file.name}.db")), line) for file in laptop_files)
    yield one, two
    for laptop in (one, two):
        laptop.orchestrator.registry.close()
