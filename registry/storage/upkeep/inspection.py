"""Inspect a registry's database for `ctxr doctor`, without changing it."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Connection, func, select

from registry.errors import InvalidRequest
from registry.storage.connections import create_database_engine
from registry.storage.database import storage_errors
from registry.storage.migrate import current_revision
from registry.storage.migrations import HEAD
from registry.storage.tables import EMBEDDABLE, channel, conversation, embedding_model, message_vector


@dataclass(frozen=True, slots=True)
class Inspection:
    """The state of a database. `revision` None: there are no tables yet; then the counts are 0.

    `embedded`: of each model the messages that have its vectors, and the bytes of these.
    """

    server: str
    revision: str | None = None
    channels: int = 0
    messages: int = 0
    embeddable: int = 0
    embedded: Mapping[str, tuple[int, int]] = field(default_factory=dict)


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


def behind(url: str, read_url: str) -> int:
    """Return how many bytes of its log a replica has not replayed; StorageError if one of the two cannot be reached."""
    engine, copy = create_database_engine(url), create_database_engine(read_url, "CTXR_DATABASE_READ_URL")
    try:
        with storage_errors("open"), copy.connect() as connection:
            held = connection.exec_driver_sql("SELECT pg_last_wal_replay_lsn()::text").scalar_one()
        if held is None:
            raise InvalidRequest("It is no replica.", "CTXR_DATABASE_READ_URL: allowed: a replica of CTXR_DATABASE_URL")
        with storage_errors("open"), engine.connect() as connection:
            missing = "SELECT greatest(0, pg_current_wal_lsn() - %s::pg_lsn)"
            return int(connection.exec_driver_sql(missing, (held,)).scalar_one())
    finally:
        engine.dispose()
        copy.dispose()


def _inspect(connection: Connection) -> Inspection:
    names = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
    version = ".".join(map(str, connection.dialect.server_version_info or ()))
    server = f"{names[connection.dialect.name]} {version}"
    revision = current_revision(connection)
    if revision is None or revision > HEAD:
        return Inspection(server, revision)
    channels, messages = (
        connection.execute(select(func.count()).where(table.c.deleted.is_(False))).scalar_one()
        for table in (channel, conversation)
    )
    if revision < HEAD:
        return Inspection(server, revision, channels, messages)
    embeddable = connection.execute(select(func.count()).select_from(conversation).where(*EMBEDDABLE)).scalar_one()
    return Inspection(server, revision, channels, messages, embeddable, _embedded(connection))


def _embedded(connection: Connection) -> dict[str, tuple[int, int]]:
    size = func.coalesce(func.sum(func.length(message_vector.c.vector)), 0)
    query = select(embedding_model.c.name, func.count(message_vector.c.number), size)
    query = query.outerjoin(message_vector, message_vector.c.model_number == embedding_model.c.number)
    return {name: (count, total) for name, count, total in connection.execute(query.group_by(embedding_model.c.name))}


def has_fts5() -> bool:
    """Return True if this Python's SQLite has the full-text index that search on SQLite needs."""
    with closing(sqlite3.connect(":memory:")) as connection:
        return ("ENABLE_FTS5",) in connection.execute("PRAGMA compile_options").fetchall()
