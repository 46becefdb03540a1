"""Prefilled registries: filled once per test process, and copied for each test."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from registry.registry import Registry
from tests.databases import TEMPLATE, PostgresServer, SpareDatabases

if TYPE_CHECKING:
    from orchestrator.service import Orchestrator

Seed = Callable[["Orchestrator"], Awaitable[object]]
"""Fills an empty registry. The result is cached for each function, so it must not depend on the test."""
Seeded = Callable[[Seed], Awaitable[str]]
"""Returns the address of this test's own copy of the filled registry."""


class SeededFiles:
    """Prefilled SQLite files."""

    def __init__(self, template: Path, folder: Path) -> None:
        self._template = template
        self._folder = folder
        self._files: dict[Seed, Path] = {}

    async def copy(self, seed: Seed, to: Path) -> str:
        """Copy the file filled by `seed` into the folder `to`, and return its address."""
        if seed not in self._files:
            file = Path(shutil.copy(self._template, self._folder / f"seeded_{len(self._files)}.db"))
            await _fill(f"sqlite:///{file}", seed)
            self._files[seed] = file
        return f"sqlite:///{shutil.copy(self._files[seed], to)}"


class SeededDatabases:
    """Prefilled PostgreSQL databases."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._databases: dict[Seed, SpareDatabases] = {}

    async def enter(self, seed: Seed, stack: ExitStack) -> str:
        """Return the address of a database filled by `seed`, which is reused after the stack is closed."""
        if seed not in self._databases:
            name = f"seeded_{len(self._databases)}"
            self._server.execute("CREATE DATABASE {} TEMPLATE {}", name, TEMPLATE)
            await _fill(self._server.url(name), seed)
            self._databases[seed] = SpareDatabases(self._server, name)
        return stack.enter_context(self._databases[seed].database())

    def close(self) -> None:
        """Close the connections."""
        for databases in self._databases.values():
            databases.close()


async def _fill(url: str, seed: Seed) -> None:
    from orchestrator.service import Orchestrator  # takes a second, and few tests need it

    registry = Registry(url)
    try:
        await seed(Orchestrator(registry))
    finally:
        registry.close()


def seeded_by(request: pytest.FixtureRequest, kind: str, to: Path, stack: ExitStack) -> Seeded:
    """Return a function that copies prefilled registries of one kind of database."""
    if kind == "sqlite":
        files: SeededFiles = request.getfixturevalue("seeded_files")
        return lambda seed: files.copy(seed, to)
    databases: SeededDatabases = request.getfixturevalue("seeded_databases")
    return lambda seed: databases.enter(seed, stack)
