"""Read and write the database in transactions, and translate the driver's exceptions.

SQLAlchemy Core runs synchronously in threads. One function is one transaction, so a cancelled caller leaves no partial
write (docs/decisions).
"""

import asyncio
import copy
import logging
import sqlite3
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NewType, Self, TypeVar
from weakref import WeakValueDictionary
from zlib import crc32

from sqlalchemy import Connection, Table, bindparam, func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DatabaseError, OperationalError, SQLAlchemyError

from registry.access import Access
from registry.errors import NOT_CONFIRMED, NOT_NOW, OperationTimeout, StorageError
from registry.log import Outage
from registry.storage.connections import READERS, WRITERS, begin_on_server, create_database_engine, is_read_only
from registry.storage.replica import TIMEOUT_STATES, Replica, ReplicaUnavailable
from registry.storage.safety.visibility import OPTION, restrict_statements

ReadTransaction = NewType("ReadTransaction", Connection)
WriteTransaction = NewType("WriteTransaction", ReadTransaction)
"""Can also be passed to functions that only read; functions that write require it."""

T = TypeVar("T")

logger = logging.getLogger(__name__)


def insert_into(dialect: str, table: Table) -> sqlite.Insert:
    """Return the dialect's INSERT, which has ON CONFLICT."""
    return postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)  # type: ignore[return-value]


def insert_new(tx: WriteTransaction, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows; skip those with an existing key."""
    if rows:
        tx.execute(insert_into(tx.dialect.name, table).on_conflict_do_nothing(), rows)


def upsert(
    tx: WriteTransaction,
    table: Table,
    key: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    unchanged: Collection[str] = (),
) -> None:
    """Insert rows; a row with an existing key updates the stored one, except its columns in `unchanged`."""
    statement = insert_into(tx.dialect.name, table)
    news = {name: statement.excluded[name] for name in rows[0] if name not in (*key, *unchanged)}
    tx.execute(statement.on_conflict_do_update(index_elements=key, set_=news), rows)


def acquire_lock(tx: WriteTransaction, name: str) -> None:
    """Acquire a named lock until the transaction ends. SQLite needs none, because it has one writer."""
    if tx.dialect.name == "postgresql":
        tx.execute(select(func.pg_advisory_xact_lock(crc32(name.encode()))))


def update_rows(tx: WriteTransaction, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Update rows by `number` in one statement; all rows must have the same columns."""
    if rows:
        # SQLAlchemy reserves parameters with a column's name
        values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in rows[0]}
        statement = update(table).where(table.c.number == values.pop("number")).values(values)
        tx.execute(statement, [{f"new_{name}": value for name, value in row.items()} for row in rows])


@contextmanager
def storage_errors(doing: str) -> Iterator[None]:
    """Turn the driver's exceptions into StorageError; callers do not depend on the database."""
    try:
        yield
    except SQLAlchemyError as exc:
        cause = getattr(exc, "orig", None) or exc
        state = getattr(cause, "sqlstate", None)
        if state in TIMEOUT_STATES:
            raise OperationTimeout(_BUSY, f"{str(cause).strip()}; nothing was stored, so trying again is safe") from exc
        hint = _OWNERSHIP_HINT if (doing, state) == ("open", _INSUFFICIENT_PRIVILEGE) else ""
        message = NOT_NOW if doing == "write" and _is_temporary(exc) else f"Could not {doing} the registry."
        raise StorageError(message, f"{type(cause).__name__}: {str(cause).strip()}{hint}") from exc


_INSUFFICIENT_PRIVILEGE = "42501"
_OWNERSHIP_HINT = """
The role has to own the database: ALTER DATABASE … OWNER TO …, or a schema of its name in it: \
CREATE SCHEMA AUTHORIZATION …"""
_DEADLOCK = "40P01"
_BUSY = "The registry's database took too long, or another process is writing to it."


def _is_unreachable(exc: DatabaseError) -> bool:
    """Return True if the database could not be reached; such an error quotes no stored text."""
    if isinstance(exc.orig, sqlite3.Error):
        code = getattr(exc.orig, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        return code not in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_BUSY)
    return isinstance(exc, OperationalError) and getattr(exc.orig, "sqlstate", None) not in TIMEOUT_STATES


def _is_temporary(exc: SQLAlchemyError) -> bool:
    """Return True if a retry may succeed: the server is unreachable, or has become a read-only replica."""
    if not isinstance(exc, DatabaseError) or isinstance(exc.orig, sqlite3.Error):
        return False
    return _is_unreachable(exc) or getattr(exc.orig, "sqlstate", None) == _READ_ONLY


_READ_ONLY = "25006"


@dataclass(frozen=True, slots=True)
class Limits:
    """Timeouts in seconds for waiting for a lock, and for one statement. 0: no limit."""

    lock_s: float = 0.0
    statement_s: float = 0.0


UNLIMITED = Limits()


def _with_current_context(work: Callable[[], T]) -> Callable[[], T]:
    return partial(copy_context().run, work)


class Database:
    """An engine with its reader and writer threads. Close it when done."""

    def __init__(self, url: str, limits: Limits = UNLIMITED, read_url: str = "") -> None:
        self.engine = create_database_engine(url)
        restrict_statements(self.engine)
        self.dialect = self.engine.dialect.name
        name = self.engine.url.database if self.is_embedded else None
        self._file = Path(name) if name and name != ":memory:" else None
        self._identity: int | None = None
        self.is_read_only = self._file is not None and is_read_only(self._file)
        self._modified_at: int | None = None
        begin = partial(begin_on_server, lock_timeout=limits.lock_s, statement_timeout=limits.statement_s)
        self._writing = self.engine.execution_options(write=True, begin=begin())
        # A read transaction sees one snapshot; SQLite's always do.
        self._reading = self.engine.execution_options(begin=begin("REPEATABLE READ"))
        self._replica = Replica(read_url, self.engine, begin("REPEATABLE READ")) if read_url else None
        self._uses_replica = False
        self._outage = Outage(
            logger,
            begun="The registry's database does not answer",
            over="The registry's database answers again",
        )
        self._locks: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="registry-read")
        self._writers = ThreadPoolExecutor(WRITERS[self.dialect], thread_name_prefix="registry-write")

    async def read(self, work: Callable[[ReadTransaction], T]) -> T:
        """Run `work` in one read transaction with a consistent snapshot. Raises StorageError."""

        def run() -> T:
            self._check_file()
            if self._replica and self._uses_replica:
                access = self._reading.get_execution_options().get(OPTION)
                with storage_errors("read"), suppress(ReplicaUnavailable):
                    return self._replica.read(lambda connection: work(ReadTransaction(connection)), access)
            with storage_errors("read"), self._log_outage(), self._reading.begin() as connection:
                return work(ReadTransaction(connection))

        return await asyncio.get_running_loop().run_in_executor(self._readers, _with_current_context(run))

    @contextmanager
    def _log_outage(self) -> Iterator[None]:
        """Log once when the database cannot be reached, and once when it is back."""
        started_at = time.monotonic()
        try:
            yield
        except DatabaseError as exc:
            if _is_unreachable(exc):
                self._outage.begin(str(exc.orig).strip(), started_at)
            raise
        self._outage.end()

    async def write(self, work: Callable[[WriteTransaction], T], of: Hashable = None, *, is_awaited: bool = True) -> T:
        """Run `work` in one write transaction: all of it is stored, or nothing. Raises StorageError.

        If the caller is cancelled, waiting work is dropped and running work finishes. `of`: the object written to, such
        as a channel. Writes to the same object run one after another, so that they do not block several threads
        with waiting for one lock. `is_awaited`: the next read must see the write.
        """

        self._check_writable()

        def run() -> T:
            self._check_file()
            with storage_errors("write"):
                done = self._write_with_retries(work)
            if self._replica and is_awaited:
                self._replica.note_write()
            return done

        if of is None:
            return await asyncio.get_running_loop().run_in_executor(self._writers, _with_current_context(run))
        return await self._write_in_order(run, of)

    def _write_with_retries(self, work: Callable[[WriteTransaction], T]) -> T:
        """Run the work in one transaction; retry up to twice after a deadlock in PostgreSQL."""
        for is_last in (False, False, True):
            is_done = False
            try:
                with self._writing.begin() as connection:
                    done = work(WriteTransaction(ReadTransaction(connection)))
                    is_done = True
                return done
            except OperationalError as exc:
                is_deadlock = getattr(exc.orig, "sqlstate", None) == _DEADLOCK
                if is_done and not (self.is_embedded or is_deadlock):
                    details = f"{str(exc.orig).strip()}; it may have been stored; sending it again is safe"
                    raise StorageError(NOT_CONFIRMED, details) from exc
                if is_last or not is_deadlock:
                    raise
        raise AssertionError

    async def _write_in_order(self, run: Callable[[], T], key: Hashable) -> T:
        """Run it after all earlier writes to the same object, including those of cancelled callers."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        await lock.acquire()
        loop = asyncio.get_running_loop()

        def release() -> None:
            with suppress(RuntimeError):  # the event loop is closed
                loop.call_soon_threadsafe(lock.release)

        running = self._writers.submit(_with_current_context(run))
        running.add_done_callback(lambda _: release())
        return await asyncio.wrap_future(running)

    async def maintain(self, statements: Sequence[str]) -> list[Any]:
        """Run statements outside a transaction, in order; return the rows of the last one."""

        self._check_writable()

        def run() -> list[Any]:
            self._check_file()
            options = {"begin": ""} if self.dialect == "postgresql" else {"maintenance": True}
            with storage_errors("maintain"), self.engine.execution_options(**options).connect() as connection:
                found = [connection.exec_driver_sql(statement) for statement in statements][-1]
                return list(found.all()) if found.returns_rows else []

        return await asyncio.get_running_loop().run_in_executor(self._writers, run)

    def _check_file(self) -> None:
        """Raise StorageError if the file was removed: SQLite would write into the deleted file."""
        if self._file is None:
            return
        identity = self._file.stat().st_ino if self._file.exists() else None
        if self._identity is None:
            self._identity = identity
        if identity != self._identity:
            self._outage.begin(f"{self._file} was removed or replaced", time.monotonic())
            raise StorageError("The registry's file was removed or replaced.", f"{self._file}; start again")
        if self.is_read_only:
            self._reopen_if_changed()

    def _reopen_if_changed(self) -> None:
        modified_at = self._file.stat().st_mtime_ns if self._file else None
        if modified_at != self._modified_at:
            self.engine.dispose()
            self._modified_at = modified_at

    def _check_writable(self) -> None:
        if self.is_read_only:
            raise StorageError(
                "The registry is read only.",
                f"{self._file} or its folder cannot be written by this user, or the disk is full;"
                " what is stored can be read",
            )

    def seen_by(self, access: Access | None) -> Self:
        """Return the database restricted to what a token may see; None: unrestricted."""
        if access is None:
            return self
        restricted = copy.copy(self)
        restricted._reading = self._reading.execution_options(**{OPTION: access})
        restricted._writing = self._writing.execution_options(**{OPTION: replace(access, is_writing=True)})
        return restricted

    def for_reading(self) -> Self:
        """Return the database for reads from the replica, while that has this process's writes."""
        if self._replica is None:
            return self
        reader = copy.copy(self)
        reader._uses_replica = True
        return reader

    @property
    def has_become_writable(self) -> bool:
        """Return True if the database was opened read-only but its file is writable now: reopen it to write."""
        return self.is_read_only and self._file is not None and not is_read_only(self._file)

    @property
    def is_embedded(self) -> bool:
        """Return True for a file on this machine, False for a server that others use too."""
        return self.dialect == "sqlite"

    @property
    def syncs_automatically(self) -> bool:
        """Return True if this machine's client stores are synced automatically."""
        return self.is_embedded and not self.is_read_only

    def close(self) -> None:
        """Wait for running transactions, then close all connections."""
        self._writers.shutdown()
        self._readers.shutdown()
        self.engine.dispose()
        if self._replica:
            self._replica.close()
