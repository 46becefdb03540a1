"""The one door to the database: an engine, `read` and `write`, and foreign exceptions translated.

SQLAlchemy Core, synchronous, in threads: one function is one whole transaction, so a caller who stops
waiting leaves nothing half-written (docs/decisions).
"""

from __future__ import annotations

import asyncio
import copy
import json
import os
import re
import sqlite3
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NewType, Self, TypeVar
from urllib.parse import unquote
from weakref import WeakValueDictionary

from sqlalchemy import URL, Connection, Engine, Table, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from registry.access import Access
from registry.errors import InvalidRequest, OperationTimeout, StorageError
from registry.private_files import keep_private, make_private_file
from registry.storage.replica import NotThere, Replica
from registry.storage.safety.sight import OPTION, restrict_statements
from registry.storage.statement_spans import trace_statements
from registry.tracing import is_tracing

if TYPE_CHECKING:
    from sqlalchemy.dialects.sqlite import Insert

ReadTransaction = NewType("ReadTransaction", Connection)
WriteTransaction = NewType("WriteTransaction", ReadTransaction)
"""May do all a reader may; functions that store take this one."""

T = TypeVar("T")

BUSY_TIMEOUT_MS = 10_000
CONNECT_TIMEOUT_S = 5
IDLE_S = 60.0
"""On PostgreSQL a transaction may be idle so long: a process that stands still must not hold its locks for ever."""
READERS = 4
WRITERS = {"sqlite": 1, "postgresql": 8}
"""SQLite has one writer at a time; one thread in a queue is faster and fairer than many at its lock."""

MOST_SEEN = 256
"""What was counted for so many tokens is remembered."""

_dump = partial(json.dumps, ensure_ascii=False, separators=(",", ":"))


def create_database_engine(url: str, setting: str = "CTXR_DATABASE_URL") -> Engine:
    """An engine for `sqlite:///path` or `postgresql://…`; InvalidRequest, naming the setting, for any other address."""
    try:
        address = _address_of(url)
        if address.get_backend_name() == "postgresql":
            return _server_engine(address)
        if address.get_backend_name() == "sqlite":
            return _sqlite_engine(url)
    except (ArgumentError, NoSuchModuleError, ImportError, ValueError) as exc:
        raise InvalidRequest("The database address is not usable.", f"{setting}: {exc}") from exc
    raise InvalidRequest(
        "The database address is not usable.",
        f"{setting}: given {address.get_backend_name()!r}; allowed: sqlite, postgresql",
    )


def _address_of(url: str) -> URL:
    """The parts of an address; several hosts (`a:5432,b:5433`) as SQLAlchemy writes them."""
    several = _SEVERAL_HOSTS.match(url)
    if several is None:
        return make_url(url)
    address = make_url(several["before"] + several["after"])
    return address.update_query_dict({"host": list(map(unquote, several["hosts"].split(",")))})


_SEVERAL_HOSTS = re.compile(r"(?P<before>\w[\w+]*://(?:[^/?#]*@)?)(?P<hosts>[^/?#@]*,[^/?#@]*)(?P<after>.*)", re.DOTALL)


def _server_engine(address: URL) -> Engine:
    """Nothing outlives a transaction in a session of the server's: a pooler may hand each one to another session."""
    engine = create_engine(
        address.set(drivername="postgresql+psycopg"),
        json_serializer=_dump,
        hide_parameters=True,
        pool_size=READERS + WRITERS["postgresql"],
        pool_pre_ping=True,
        connect_args={"connect_timeout": CONNECT_TIMEOUT_S, "prepare_threshold": None, "autocommit": True},
    )

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:  # in one go with what holds in this transaction
        if chosen := connection.get_execution_options().get("begin", "BEGIN"):
            connection.exec_driver_sql(chosen, execution_options={"no_parameters": True})

    return engine


def begin_on_server(isolation: str = "READ COMMITTED", **limits_s: float) -> str:
    """How a transaction begins on PostgreSQL: its isolation, and its time limits in seconds; 0 is none.

    A limit of its own on how long it may be idle, because the server's may be shorter than we need to think.
    """
    limits = {"idle_in_transaction_session_timeout": IDLE_S, **limits_s}
    settings = [f"SET LOCAL {name} = {round(seconds * 1000)}" for name, seconds in limits.items()]
    return "; ".join([f"BEGIN ISOLATION LEVEL {isolation}", *settings])


def _sqlite_engine(url: str) -> Engine:
    file = make_url(url).database
    if file and file != ":memory:":
        if is_read_only(Path(file)):
            return _read_only_engine(Path(file))
        _make_private_folder(Path(file).parent)
        make_private_file(Path(file))  # what SQLite makes beside it may be read by whom this may be
        keep_private(Path(f"{file}{end}") for end in ("", "-wal", "-shm"))
    engine = create_engine(url, json_serializer=_dump, hide_parameters=True, connect_args={"check_same_thread": False})

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions are begun below, by us
        cursor = connection.cursor()
        # The time limit first: switching to WAL itself needs the lock. FULL: an acknowledged write is on disk.
        for pragma in (
            f"busy_timeout={BUSY_TIMEOUT_MS}",
            "journal_mode=WAL",
            "synchronous=FULL",
            "foreign_keys=ON",
            "secure_delete=ON",  # what is deleted is overwritten
            "cache_size=-32000",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        if options.get("maintenance"):
            return
        is_write = options.get("write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if is_write else "BEGIN")

    return engine


def is_read_only(file: Path) -> bool:
    """Whether a registry is there that can be read and not written; the log of writes stands beside it."""
    return file.is_file() and not (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK))


def _read_only_engine(file: Path) -> Engine:
    """SQLite reads a file in WAL mode only where it can make files beside it, or is told that nobody writes."""

    def connect() -> sqlite3.Connection:
        log = Path(f"{file}-wal")
        mode = "mode=ro" if log.exists() and log.stat().st_size else "mode=ro&immutable=1"
        address = f"{file.absolute().as_uri()}?{mode}"
        return sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None)

    engine = create_engine(f"sqlite:///{file}", creator=connect, json_serializer=_dump, hide_parameters=True)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    return engine


def insert_into(dialect: str, table: Table) -> Insert:
    """An INSERT that can say what to do where the row is there already: each database has one of its own kind."""
    if dialect == "postgresql":
        from sqlalchemy.dialects.postgresql import insert
    else:
        from sqlalchemy.dialects.sqlite import insert  # type: ignore[assignment]
    return insert(table)  # type: ignore[return-value]


def in_parts(values: Sequence[T], length: int = 500) -> Iterator[Sequence[T]]:
    """The values, some at a time: no statement takes any number of them."""
    yield from (values[at : at + length] for at in range(0, len(values), length))


def _file_of(engine: Engine) -> Path | None:
    """The file of an embedded registry; None for a server, or one in memory."""
    name = engine.url.database if engine.dialect.name == "sqlite" else None
    return Path(name) if name and name != ":memory:" else None


def _make_private_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as exc:
        raise StorageError(f"The folder {folder} cannot be written.", f"{exc.strerror}; set CTXR_HOME") from exc


@contextmanager
def storage_errors(doing: str) -> Iterator[None]:
    """Turn the driver's exceptions into StorageError; above this line nobody knows which database we use."""
    try:
        yield
    except SQLAlchemyError as exc:
        cause = getattr(exc, "orig", None) or exc
        if getattr(cause, "sqlstate", None) in _RAN_OUT_OF_TIME:
            raise OperationTimeout(_BUSY, f"{str(cause).strip()}; nothing was stored, asking again is safe") from exc
        raise StorageError(f"Could not {doing} the registry.", f"{type(cause).__name__}: {str(cause).strip()}") from exc


_RAN_OUT_OF_TIME = ("55P03", "57014")
"""PostgreSQL's states for a lock, and for a statement, that took too long."""
_BUSY = "The registry's database took too long, or somebody else is writing there."


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a server may take, in seconds: to get a lock that another has, and for one statement. 0: no limit."""

    lock_s: float = 0.0
    statement_s: float = 0.0


UNLIMITED = Limits()


def _from_here(work: Callable[[], T]) -> Callable[[], T]:
    """The same in a thread, which else would not know to which run it belongs."""
    return partial(copy_context().run, work)


def _tell(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    """Have a loop do something, from a thread; one that has ended meanwhile needs nothing."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(what)


class Database:
    """An engine with its reader and writer threads. Close it when done."""

    def __init__(self, url: str, limits: Limits = UNLIMITED, read_url: str = "") -> None:
        self.engine = create_database_engine(url)
        restrict_statements(self.engine)
        if is_tracing():
            trace_statements(self.engine)
        self._seen: dict[Access, Self] = {}
        self.dialect = self.engine.dialect.name
        self._file = _file_of(self.engine)
        self._identity: int | None = None
        self.is_read_only = self._file is not None and is_read_only(self._file)
        self._read_at: int | None = None
        begin = partial(begin_on_server, lock_timeout=limits.lock_s, statement_timeout=limits.statement_s)
        self._writing = self.engine.execution_options(write=True, begin=begin())
        # All that one read sees is of one instant; a reader of SQLite has that anyway.
        self._reading = self.engine.execution_options(begin=begin("REPEATABLE READ"))
        self._replica = self._open_replica(read_url, begin("REPEATABLE READ")) if read_url else None
        self._asks_replica = False
        self._turns: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="registry-read")
        self._writers = ThreadPoolExecutor(WRITERS[self.dialect], thread_name_prefix="registry-write")

    def _open_replica(self, url: str, begin: str) -> Replica:
        engine = create_database_engine(url, "CTXR_DATABASE_READ_URL")
        if not self.dialect == engine.dialect.name == "postgresql":
            raise InvalidRequest(
                "The address to read from is not usable.",
                "CTXR_DATABASE_READ_URL: allowed: postgresql://… of a replica of CTXR_DATABASE_URL",
            )
        restrict_statements(engine)
        return Replica(engine, self.engine, begin)

    async def read(self, work: Callable[[ReadTransaction], T]) -> T:
        """Run `work` in one read transaction, a consistent picture of the registry; StorageError if it cannot."""

        def run() -> T:
            self._check_file()
            if self._replica and self._asks_replica:
                access = self._reading.get_execution_options().get(OPTION)
                with storage_errors("read"), suppress(NotThere):
                    return self._replica.read(lambda connection: work(ReadTransaction(connection)), access)
            with storage_errors("read"), self._reading.begin() as connection:
                return work(ReadTransaction(connection))

        return await asyncio.get_running_loop().run_in_executor(self._readers, _from_here(run))

    async def write(self, work: Callable[[WriteTransaction], T], of: Hashable = None, *, is_awaited: bool = True) -> T:
        """Run `work` in one write transaction: all of it is stored, or nothing; StorageError if it cannot.

        A cancelled caller stops waiting; work not begun is dropped, work begun comes to its end. `of`: what is written
        to. Those who write to the same take turns, so that who waits there for a lock never takes the others' threads.
        `is_awaited`: whether the next question must see it.
        """

        self._check_writable()

        def run() -> T:
            self._check_file()
            with storage_errors("write"), self._writing.begin() as connection:
                done = work(WriteTransaction(ReadTransaction(connection)))
            if self._replica and is_awaited:
                self._replica.note_write()
            return done

        if of is None or self.is_embedded:  # one thread is a queue already
            return await asyncio.get_running_loop().run_in_executor(self._writers, _from_here(run))
        return await self._in_turn(run, of)

    async def _in_turn(self, run: Callable[[], T], of: Hashable) -> T:
        """Run it when all who came before have ended, also those whose callers have gone."""
        turn = self._turns.setdefault(of, asyncio.Lock())
        await turn.acquire()
        loop = asyncio.get_running_loop()
        running = self._writers.submit(_from_here(run))
        running.add_done_callback(lambda _: _tell(loop, turn.release))
        return await asyncio.wrap_future(running)

    async def maintain(self, statements: Sequence[str]) -> list[Any]:
        """Run statements that no transaction may hold, one after the other; the rows of the last one."""

        self._check_writable()

        def run() -> list[Any]:
            self._check_file()
            is_server = self.dialect == "postgresql"
            options = {"isolation_level": "AUTOCOMMIT", "begin": ""} if is_server else {"maintenance": True}
            with storage_errors("maintain"), self.engine.execution_options(**options).connect() as connection:
                found = [connection.exec_driver_sql(statement) for statement in statements][-1]
                return list(found.all()) if found.returns_rows else []

        return await asyncio.get_running_loop().run_in_executor(self._writers, run)

    def _check_file(self) -> None:
        """SQLite goes on writing into a file that is no longer in its folder: nothing of it would be left."""
        if self._file is None:
            return
        identity = self._file.stat().st_ino if self._file.exists() else None
        if self._identity is None:
            self._identity = identity
        if identity != self._identity:
            raise StorageError("The registry's file was removed or replaced.", f"{self._file}; start again")
        if self.is_read_only:
            self._read_anew()

    def _read_anew(self) -> None:
        """What was read of a file that nobody wrote into is worth nothing once somebody else has."""
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
        """The same as a token lets see it; for None all of it."""
        if access is None or not access.is_restricted:
            return self
        if access not in self._seen:
            if len(self._seen) >= MOST_SEEN:
                self._seen.pop(next(iter(self._seen)))
            seen = copy.copy(self)
            seen._reading = self._reading.execution_options(**{OPTION: access})
            seen._writing = self._writing.execution_options(**{OPTION: access})
            self._seen[access] = seen
        return self._seen[access]

    def for_questions(self) -> Self:
        """The same, read from a replica where there is one that knows what this process wrote."""
        if self._replica is None:
            return self
        asking = copy.copy(self)
        asking._asks_replica = True
        return asking

    @property
    def is_embedded(self) -> bool:
        """A file of this machine's, not a server that others use too."""
        return self.dialect == "sqlite"

    @property
    def takes_in(self) -> bool:
        """Whether what the clients on this machine keep is brought in by itself."""
        return self.is_embedded and not self.is_read_only

    def close(self) -> None:
        """Let running transactions end, then let go of the database."""
        self._writers.shutdown()
        self._readers.shutdown()
        self.engine.dispose()
        if self._replica:
            self._replica.close()
