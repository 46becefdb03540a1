"""Fixtures: two laptops and the registry elsewhere, on each database in turn."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from orchestrator.service import Orchestrator
from registry.registry import Registry
from tests.orchestrator.remote.laptops import Laptop, Line


@pytest.fixture
async def elsewhere(database_url: str) -> AsyncIterator[Orchestrator]:
    registry = Registry(database_url)
    yield Orchestrator(registry)
    registry.close()


@pytest.fixture
def line(elsewhere: Orchestrator) -> Line:
    return Line(elsewhere)


@pytest.fixture
async def laptops(sqlite_template: Path, tmp_path: Path, line: Line) -> AsyncIterator[tuple[Laptop, Laptop]]:
    one, two = (Path(shutil.copy(sqlite_template, tmp_path / name)) for name in ("one.db", "two.db"))
    _set_masking_key(one, b"one")
    _set_masking_key(two, b"two")
    both = Laptop(one, line), Laptop(two, line)
    yield both
    for laptop in both:
        laptop.orchestrator.registry.close()


def _set_masking_key(file: Path, key: bytes) -> None:
    """Give a machine its own key for marks of secrets, not the template's."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("INSERT OR REPLACE INTO registry_key (number, key) VALUES (1, ?)", (key,))
