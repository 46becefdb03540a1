"""Read from a PostgreSQL replica while it is reachable and has replayed this process's last write.

Until then the original is read, so that a process reads its own writes.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from registry.access import Access
from registry.errors import InvalidRequest
from registry.log import Outage
from registry.storage.connections import create_database_engine
from registry.storage.safety.visibility import OPTION, restrict_statements

logger = logging.getLogger(__name__)

T = TypeVar("T")

RETRY_S = 5.0  # seconds without the replica after it failed
_REACHED = "SELECT pg_current_wal_insert_lsn()::text"
_HAS = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
_TOO_LONG = ("55P03", "57014")  # what takes too long there would take too long elsewhere


class NotThere(Exception):
    """The replica cannot answer now."""


class Replica:
    """A replica, as used by one process that writes to the original."""

    def __init__(self, url: str, original: Engine, begin: str) -> None:
        """Open the replica at an address; InvalidRequest unless both are PostgreSQL."""
        self._engine, self._original = create_database_engine(url, "CTXR_DATABASE_READ_URL"), original
        if not original.dialect.name == self._engine.dialect.name == "postgresql":
            raise InvalidRequest(
                "The address to read from is not usable.",
                "CTXR_DATABASE_READ_URL: allowed: postgresql://… of a replica of CTXR_DATABASE_URL",
            )
        restrict_statements(self._engine)
        self._begin = begin
        self._has_written = True  # what was written before this process began counts, too
        self._wanted: str | None = None
        self._finding = threading.Lock()
        self._away_until = 0.0
        self._outage = Outage(
            logger, begun="The replica does not answer, the original does instead", over="The replica answers again"
        )

    def note_write(self) -> None:
        self._has_written = True

    def read(self, work: Callable[[Connection], T], access: Access | None) -> T:
        """Read from the replica; NotThere if the original must be asked instead."""
        asked_at = time.monotonic()
        if asked_at < self._away_until:
            raise NotThere
        wanted = self._place_wanted()
        try:
            with self._engine.execution_options(begin=self._begin, **{OPTION: access}).begin() as connection:
                if wanted and not connection.exec_driver_sql(_HAS, (wanted,)).scalar():
                    raise NotThere
                if wanted == self._wanted:
                    self._wanted = None
                answer = work(connection)
        except DBAPIError as exc:
            if getattr(exc.orig, "sqlstate", None) in _TOO_LONG:
                raise
            self._outage.begins(str(exc.orig).strip(), asked_at)
            self._away_until = time.monotonic() + RETRY_S
            raise NotThere from exc
        self._outage.is_over()
        return answer

    def _place_wanted(self) -> str | None:
        """Return the WAL position that the replica must have replayed: the original's after our last write."""
        with self._finding:  # nobody reads on by an older place while the new one is asked for
            if self._has_written:
                self._has_written = False
                try:
                    with self._original.connect() as connection:
                        self._wanted = connection.exec_driver_sql(_REACHED).scalar_one()
                except DBAPIError:
                    self._has_written = True
                    raise
            return self._wanted

    def close(self) -> None:
        self._engine.dispose()
