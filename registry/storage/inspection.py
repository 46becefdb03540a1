"""A look at a registry's database that changes nothing: for `ctxr doctor`."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, func, select

from registry.storage.database import create_database_engine, storage_errors
from registry.storage.migrate import current_revision
from registry.storage.migrations import HEAD
from registry.storage.tables import channel, conversation


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was found. `revision` None: there are no tables yet; then the counts are 0."""

    server: str
    revision: str | None = None
    channels: int = 0
    messages: int = 0


def inspect_database(url: str) -> Inspection:
    """Look at the database at `url`, without making or migrating it; StorageError if it cannot be reached."""
    file = url.removeprefix("sqlite:///")
    if file != url and not Path(file).exists():
        return Inspection(f"SQLite {sqlite3.sqlite_version}")
    engine = create_database_engine(url)
    try:
        with storage_errors("open"), engine.connect() as connection:
            return _inspect(connection)
    finally:
        engine.dispose()


def _inspect(connection: Connection) -> Inspection:
    names = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
    version = ".".join(map(str, connection.dialect.server_version_info or ()))
    server = f"{names[connection.dialect.name]} {version}"
    revision = current_revision(connection)
    if revision is None or revision > HEAD:
        return Inspection(server, revision)
    counts = (
        connection.execute(select(func.count()).where(table.c.deleted.is_(False))).scalar_one()
        for table in (channel, conversation)
    )
    return Inspection(server, revision, *counts)


def has_fts5() -> bool:
    """Whether this Python's SQLite has the full-text index that search on SQLite is built on."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE t USING fts5(words)")
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()
    return True
