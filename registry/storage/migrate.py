"""Bring a registry's tables up to date: at every start, by `ctxr db upgrade`, and in tests."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection, inspect, text
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError, OperationalError

from registry.errors import StorageError
from registry.storage.connections import begin_on_server, create_database_engine
from registry.storage.database import storage_errors
from registry.storage.migrations import HEAD

logger = logging.getLogger(__name__)

_LOCK = 0x63747872
"""Any number of ours, for PostgreSQL's advisory lock: several processes may start at once."""
_TAKE_TURN = "SELECT pg_advisory_xact_lock(:key)"

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
        is_said = False
        while waits_for := _hindrance(engine.execution_options(write=True, begin=begin), revision):
            if not is_said:
                logger.warning("The tables are not up to date yet: %s%s", waits_for, _longest_transaction(engine))
                is_said = True
            time.sleep(_PAUSE_S)
        return before


_OLDEST = """
SELECT pid, usename, coalesce(host(client_addr), 'a socket'), extract(epoch FROM now() - xact_start)::int
FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
ORDER BY xact_start LIMIT 1
"""


def _longest_transaction(engine: Engine) -> str:
    """Who it may be that an upgrade waits for, as far as the server tells."""
    with suppress(DBAPIError), engine.connect() as connection:
        if row := connection.exec_driver_sql(_OLDEST).first():
            return f"; longest in a transaction is process {row[0]} of {row[1]} at {row[2]}, for {row[3]} s"
    return ""


def _hindrance(engine: Engine, revision: str) -> str:
    """Bring it there, and nothing is returned; or, where somebody uses its tables, what it waits for."""
    try:
        with engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text(_TAKE_TURN), {"key": _LOCK})
            if current_revision(connection) != revision:  # nobody else did it while we waited
                _upgrade(connection, revision)
    except OperationalError as exc:
        if getattr(exc.orig, "sqlstate", None) in _IN_USE:
            if "advisory" in (exc.statement or ""):
                return "another process upgrades them"
            return f"somebody uses what is to be changed ({' '.join((exc.statement or '').split())[:100]})"
        raise
    return ""


def _upgrade(connection: Connection, revision: str) -> None:
    from alembic import command  # 250 ms that only a migration needs
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
