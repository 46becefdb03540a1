"""Read and write the database in transactions, and translate the driver's exceptions.

SQLAlchemy Core, synchronous, in threads: one function is one whole transaction, so a caller who stops
waiting leaves nothing half-written (docs/decisions).
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
from registry.storage.replica import NotThere, Replica
from registry.storage.safety.visibility import OPTION, restrict_statements

ReadTransaction = NewType("ReadTransaction", Connection)
WriteTransaction = NewType("WriteTransaction", ReadTransaction)
"""May do all a reader may; functions that store take this one."""

T = TypeVar("T")

logger = logging.getLogger(__name__)


def insert_into(dialect: str, table: Table) -> sqlite.Insert:
    """Return the dialect's INSERT, which has ON CONFLICT."""
    return postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)  # type: ignore[return-value]


def insert_new(tx: WriteTransaction, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows; one whose key is taken already is left out."""
    if rows:
        tx.execute(insert_into(tx.dialect.name, table).on_conflict_do_nothing(), rows)


def upsert(
    tx: WriteTransaction,
    table: Table,
    key: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    kept: Collection[str] = (),
) -> None:
    """Insert rows; one with the key of a stored row replaces its values but for those that are `kept`."""
    statement = insert_into(tx.dialect.name, table)
    news = {name: statement.excluded[name] for name in rows[0] if name not in (*key, *kept)}
    tx.execute(statement.on_conflict_do_update(index_elements=key, set_=news), rows)


def take_turn(tx: WriteTransaction, of: str) -> None:
    """Wait until the other transactions that took a turn of this name have ended; SQLite has one writer anyway."""
    if tx.dialect.name == "postgresql":
        tx.execute(select(func.pg_advisory_xact_lock(crc32(of.encode()))))


def update_rows(tx: WriteTransaction, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Change rows by their `number`, in one statement; all of them name the same columns."""
    if rows:
        # a column's own name is SQLAlchemy's
        values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in rows[0]}
        statement = update(table).where(table.c.number == values.pop("number")).values(values)
        tx.execute(statement, [{f"new_{name}": value for name, value in row.items()} for row in rows])


@contextmanager
def storage_errors(doing: str) -> Iterator[None]:
    """Turn the driver's exceptions into StorageError; callers need not know which database is used."""
    try:
        yield
    except SQLAlchemyError as exc:
        cause = getattr(exc, "orig", None) or exc
        state = getattr(cause, "sqlstate", None)
        if state in _RAN_OUT_OF_TIME:
            raise OperationTimeout(_BUSY, f"{str(cause).strip()}; nothing was stored, asking again is safe") from exc
        to_do = _NOT_ITS_OWN if (doing, state) == ("open", _MAY_NOT) else ""
        message = NOT_NOW if doing == "write" and _passes(exc) else f"Could not {doing} the registry."
        raise StorageError(message, f"{type(cause).__name__}: {str(cause).strip()}{to_do}") from exc


_MAY_NOT = "42501"
_NOT_ITS_OWN = """
The role has to own the database: ALTER DATABASE … OWNER TO …, or a schema of its name in it: \
CREATE SCHEMA AUTHORIZATION …"""
_RAN_OUT_OF_TIME = ("55P03", "57014")  # PostgreSQL's states for a lock, and for a statement, that took too long
_DEADLOCK = "40P01"
_BUSY = "The registry's database took too long, or somebody else is writing there."


def _is_away(exc: DatabaseError) -> bool:
    """Return whether the database could not be reached at all: such an error quotes nothing that is stored."""
    if isinstance(exc.orig, sqlite3.Error):
        code = getattr(exc.orig, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        return code not in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_BUSY)
    return isinstance(exc, OperationalError) and getattr(exc.orig, "sqlstate", None) not in _RAN_OUT_OF_TIME


def _passes(exc: SQLAlchemyError) -> bool:
    """Return whether a database server is away, or has become a replica that only reads."""
    if not isinstance(exc, DatabaseError) or isinstance(exc.orig, sqlite3.Error):
        return False
    return _is_away(exc) or getattr(exc.orig, "sqlstate", None) == _ONLY_READS


_ONLY_READS = "25006"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a server in seconds: for a lock that another holds, and for one statement. 0: no limit."""

    lock_s: float = 0.0
    statement_s: float = 0.0


UNLIMITED = Limits()


def _from_here(work: Callable[[], T]) -> Callable[[], T]:
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
        self._read_at: int | None = None
        begin = partial(begin_on_server, lock_timeout=limits.lock_s, statement_timeout=limits.statement_s)
        self._writing = self.engine.execution_options(write=True, begin=begin())
        # All that one read sees is of one instant; a reader of SQLite has that anyway.
        self._reading = self.engine.execution_options(begin=begin("REPEATABLE READ"))
        self._replica = Replica(read_url, self.engine, begin("REPEATABLE READ")) if read_url else None
        self._asks_replica = False
        self._outage = Outage(
            logger, begun="The registry's database does not answer", over="The registry's database answers again"
        )
        self._turns: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="registry-read")
        self._writers = ThreadPoolExecutor(WRITERS[self.dialect], thread_name_prefix="registry-write")

    async def read(self, work: Callable[[ReadTransaction], T]) -> T:
        """Run `work` in one read transaction, a consistent picture of the registry; StorageError if it cannot."""

        def run() -> T:
            self._check_file()
            if self._replica and self._asks_replica:
                access = self._reading.get_execution_options().get(OPTION)
                with storage_errors("read"), suppress(NotThere):
                    return self._replica.read(lambda connection: work(ReadTransaction(connection)), access)
            with storage_errors("read"), self._noting_outage(), self._reading.begin() as connection:
                return work(ReadTransaction(connection))

        return await asyncio.get_running_loop().run_in_executor(self._readers, _from_here(run))

    @contextmanager
    def _noting_outage(self) -> Iterator[None]:
        """Log once when the database cannot be reached, and once when it is back."""
        asked_at = time.monotonic()
        try:
            yield
        except DatabaseError as exc:
            if _is_away(exc):
                self._outage.begins(str(exc.orig).strip(), asked_at)
            raise
        self._outage.is_over()

    async def write(self, work: Callable[[WriteTransaction], T], of: Hashable = None, *, is_awaited: bool = True) -> T:
        """Run `work` in one write transaction: all of it is stored, or nothing; StorageError if it cannot.

        A cancelled caller stops waiting; work not begun is dropped, work begun comes to its end. `of`: what is written
        to. Those who write to the same take turns, so that who waits there for a lock never takes the others' threads.
        `is_awaited`: whether the next question must see it.
        """

        self._check_writable()

        def run() -> T:
            self._check_file()
            with storage_errors("write"):
                done = self._written(work)
            if self._replica and is_awaited:
                self._replica.note_write()
            return done

        if of is None:
            return await asyncio.get_running_loop().run_in_executor(self._writers, _from_here(run))
        return await self._in_turn(run, of)

    def _written(self, work: Callable[[WriteTransaction], T]) -> T:
        """Run the work in one transaction, up to three times if PostgreSQL ends it in a deadlock."""
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
                    said = f"{str(exc.orig).strip()}; it may have been stored: sending it again is safe"
                    raise StorageError(NOT_CONFIRMED, said) from exc
                if is_last or not is_deadlock:
                    raise
        raise AssertionError

    async def _in_turn(self, run: Callable[[], T], of: Hashable) -> T:
        """Run it when all before it have ended, also those whose callers have gone."""
        turn = self._turns.setdefault(of, asyncio.Lock())
        await turn.acquire()
        loop = asyncio.get_running_loop()

        def release() -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(turn.release)

        running = self._writers.submit(_from_here(run))
        running.add_done_callback(lambda _: release())
        return await asyncio.wrap_future(running)

    async def maintain(self, statements: Sequence[str]) -> list[Any]:
        """Run statements that no transaction may hold, one after the other; the rows of the last one."""

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
            self._outage.begins(f"{self._file} was removed or replaced", time.monotonic())
            raise StorageError("The registry's file was removed or replaced.", f"{self._file}; start again")
        if self.is_read_only:
            self._read_anew()

    def _read_anew(self) -> None:
        at = self._file.stat().st_mtime_ns if self._file else None
        if at != self._read_at:
            self.engine.dispose()
            self._read_at = at

    def _check_writable(self) -> None:
        if self.is_read_only:
            raise StorageError(
                "The registry is read only.",
                f"{self._file} or its folder cannot be written by this user; what is stored can be read",
            )

    def seen_by(self, access: Access | None) -> Self:
        """Return the database as a token may see it; for None all of it."""
        if access is None:
            return self
        seen = copy.copy(self)
        seen._reading = self._reading.execution_options(**{OPTION: access})
        seen._writing = self._writing.execution_options(**{OPTION: replace(access, is_writing=True)})
        return seen

    def for_questions(self) -> Self:
        """Return the database for reading from a replica, if one has what this process wrote."""
        if self._replica is None:
            return self
        asking = copy.copy(self)
        asking._asks_replica = True
        return asking

    @property
    def can_be_written_by_now(self) -> bool:
        """Return whether it was opened read only, and its file could be written: only opening it anew makes it so."""
        return self.is_read_only and self._file is not None and not is_read_only(self._file)

    @property
    def is_embedded(self) -> bool:
        """Return True for a file on this machine, False for a server that others use too."""
        return self.dialect == "sqlite"

    @property
    def takes_in(self) -> bool:
        """Return True if the stores of this machine's clients are synced automatically."""
        return self.is_embedded and not self.is_read_only

    def close(self) -> None:
        """Wait for running transactions, then close all connections."""
        self._writers.shutdown()
        self._readers.shutdown()
        self.engine.dispose()
        if self._replica:
            self._replica.close()
