"""Read from a PostgreSQL replica while it is reachable and has replayed this process's last write.

Otherwise read from the original, so that a process sees its own writes.
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

TIMEOUT_STATES = ("55P03", "57014")  # PostgreSQL's lock timeout and statement timeout
RETRY_S = 5.0  # seconds until the replica is tried again after a failure
_WRITE_POSITION = "SELECT pg_current_wal_insert_lsn()::text"
_HAS_REPLAYED = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"


class ReplicaUnavailable(Exception):
    """The replica cannot answer now."""


class Replica:
    """A replica of the database that this process writes to."""

    def __init__(self, url: str, original: Engine, begin: str) -> None:
        """Connect to the replica; InvalidRequest unless both databases are PostgreSQL."""
        self._engine, self._original = create_database_engine(url, "CTXR_DATABASE_READ_URL"), original
        if not original.dialect.name == self._engine.dialect.name == "postgresql":
            raise InvalidRequest(
                "The replica's address is not usable.",
                "CTXR_DATABASE_READ_URL: allowed: postgresql://… of a replica of CTXR_DATABASE_URL",
            )
        restrict_statements(self._engine)
        self._begin = begin
        self._has_written = True  # true at first, because earlier processes may have written
        self._position: str | None = None
        self._lock = threading.Lock()
        self._retry_at = 0.0
        self._outage = Outage(
            logger,
            begun="The replica does not answer; reads go to the original",
            over="The replica answers again",
        )

    def note_write(self) -> None:
        self._has_written = True

    def read(self, work: Callable[[Connection], T], access: Access | None) -> T:
        """Read from the replica; ReplicaUnavailable if the original must be read instead."""
        started_at = time.monotonic()
        if started_at < self._retry_at:
            raise ReplicaUnavailable
        position = self._required_position()
        try:
            with self._engine.execution_options(begin=self._begin, **{OPTION: access}).begin() as connection:
                if position and not connection.exec_driver_sql(_HAS_REPLAYED, (position,)).scalar():
                    raise ReplicaUnavailable
                if position == self._position:
                    self._position = None
                answer = work(connection)
        except DBAPIError as exc:
            if getattr(exc.orig, "sqlstate", None) in TIMEOUT_STATES:  # the original would not answer faster
                raise
            self._outage.begin(str(exc.orig).strip(), started_at)
            self._retry_at = time.monotonic() + RETRY_S
            raise ReplicaUnavailable from exc
        self._outage.end()
        return answer

    def _required_position(self) -> str | None:
        """Return the WAL position that the replica must have replayed: the original's after our last write."""
        with self._lock:  # no thread uses an older position while the new one is queried
            if self._has_written:
                self._has_written = False
                try:
                    with self._original.connect() as connection:
                        self._position = connection.exec_driver_sql(_WRITE_POSITION).scalar_one()
                except DBAPIError:
                    self._has_written = True
                    raise
            return self._position

    def close(self) -> None:
        self._engine.dispose()
