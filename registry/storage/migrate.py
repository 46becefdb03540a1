"""Bring a registry's tables up to date: at every start, by `ctxr db upgrade`, and in tests."""

from __future__ import annotations

import time
from pathlib import Path

from sqlalchemy import Connection, inspect, text
from sqlalchemy.engine import Engine
from sqlalchemy.exc import OperationalError

from registry.errors import StorageError
from registry.storage.connections import begin_on_server, create_database_engine
from registry.storage.database import storage_errors
from registry.storage.migrations import HEAD

_LOCK = 0x63747872
"""Any number of ours, for PostgreSQL's advisory lock: several processes may start at once."""


_QUEUE_S = 0.5
"""On PostgreSQL a migration waits no longer for a table, and asks again: those who come after it wait as long."""
_PAUSE_S = 0.2
_IN_USE = ("55P03", "40P01")
"""PostgreSQL's states for a lock that took too long, and for two that wait for each other."""


def current_revision(connection: Connection) -> str | None:
    """The revision a database is at; None for an empty one."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return revision


def migrate(url: str, revision: str = HEAD) -> None:
    """Bring the database at `url` to a revision; StorageError if it cannot be, or comes from a newer release."""
    engine = create_database_engine(url)
    try:
        migrate_engine(engine, revision)
    finally:
        engine.dispose()


def migrate_engine(engine: Engine, revision: str = HEAD) -> str | None:
    """The same for an open engine. Returns the revision it was at before."""
    begin = begin_on_server(idle_in_transaction_session_timeout=0, statement_timeout=0, lock_timeout=_QUEUE_S)
    with storage_errors("open"):
        with engine.execution_options(begin=begin).connect() as connection:
            before = current_revision(connection)
        if before == revision:
            return before
        if before is not None and before > HEAD:
            raise StorageError(
                "The registry was written by a newer version of Context Registry.",
                f"Its tables are at revision {before}, this version knows {HEAD}: update Context Registry",
            )
        while not _is_upgraded(engine.execution_options(write=True, begin=begin), revision):
            time.sleep(_PAUSE_S)
        return before


def _is_upgraded(engine: Engine, revision: str) -> bool:
    """Bring it there; False where somebody uses its tables, and nothing was changed."""
    try:
        with engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
            if current_revision(connection) != revision:  # nobody else did it while we waited
                _upgrade(connection, revision)
    except OperationalError as exc:
        if getattr(exc.orig, "sqlstate", None) in _IN_USE:
            return False
        raise
    return True


def _upgrade(connection: Connection, revision: str) -> None:
    from alembic import command  # 250 ms that only a migration needs
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
