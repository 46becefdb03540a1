"""The one door to the database: an engine, `read` and `write`, and foreign exceptions translated.

SQLAlchemy Core, synchronous, in threads: one function is one whole transaction, so a caller who stops
waiting leaves nothing half-written (docs/decisions).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NewType, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from registry.errors import InvalidRequest, StorageError

ReadTransaction = NewType("ReadTransaction", Connection)
WriteTransaction = NewType("WriteTransaction", ReadTransaction)
"""May do all a reader may; functions that store take this one."""

T = TypeVar("T")

BUSY_TIMEOUT_MS = 10_000
CONNECT_TIMEOUT_S = 5
READERS = 4
WRITERS = {"sqlite": 1, "postgresql": 8}
"""SQLite has one writer at a time; one thread in a queue is faster and fairer than many at its lock."""

_dump = partial(json.dumps, ensure_ascii=False, separators=(",", ":"))


def create_database_engine(url: str) -> Engine:
    """An engine for `sqlite:///path` or `postgresql://…`; InvalidRequest for any other address."""
    try:
        address = make_url(url)
        if address.get_backend_name() == "postgresql":
            return create_engine(
                address.set(drivername="postgresql+psycopg"),
                json_serializer=_dump,
                hide_parameters=True,
                pool_size=READERS + WRITERS["postgresql"],
                pool_pre_ping=True,
                # A server of another time zone would show years that Python has not.
                connect_args={"connect_timeout": CONNECT_TIMEOUT_S, "options": "-c timezone=UTC"},
            )
        if address.get_backend_name() == "sqlite":
            return _sqlite_engine(url)
    except (ArgumentError, NoSuchModuleError, ImportError) as exc:
        raise InvalidRequest("The database address is not usable.", f"CTXR_DATABASE_URL: {exc}") from exc
    raise InvalidRequest(
        "The database address is not usable.",
        f"CTXR_DATABASE_URL: given {address.get_backend_name()!r}; allowed: sqlite, postgresql",
    )


def _sqlite_engine(url: str) -> Engine:
    file = make_url(url).database
    if file:
        _make_private_folder(Path(file).parent)
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
        raise StorageError(f"Could not {doing} the registry.", f"{type(cause).__name__}: {str(cause).strip()}") from exc


class Database:
    """An engine with its reader and writer threads. Close it when done."""

    def __init__(self, url: str) -> None:
        self.engine = create_database_engine(url)
        self.dialect = self.engine.dialect.name
        self._file = _file_of(self.engine)
        self._identity: int | None = None
        self._writing = self.engine.execution_options(write=True)
        # All that one read sees is of one instant; a reader of SQLite has that anyway.
        is_server = self.dialect == "postgresql"
        self._reading = self.engine.execution_options(isolation_level="REPEATABLE READ") if is_server else self.engine
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="registry-read")
        self._writers = ThreadPoolExecutor(WRITERS[self.dialect], thread_name_prefix="registry-write")

    async def read(self, work: Callable[[ReadTransaction], T]) -> T:
        """Run `work` in one read transaction, a consistent picture of the registry; StorageError if it cannot."""

        def run() -> T:
            self._check_file()
            with storage_errors("read"), self._reading.begin() as connection:
                return work(ReadTransaction(connection))

        return await asyncio.get_running_loop().run_in_executor(self._readers, run)

    async def write(self, work: Callable[[WriteTransaction], T]) -> T:
        """Run `work` in one write transaction: all of it is stored, or nothing; StorageError if it cannot.

        A cancelled caller stops waiting; work not begun is dropped, work begun comes to its end.
        """

        def run() -> T:
            self._check_file()
            with storage_errors("write"), self._writing.begin() as connection:
                return work(WriteTransaction(ReadTransaction(connection)))

        return await asyncio.get_running_loop().run_in_executor(self._writers, run)

    async def maintain(self, statements: Sequence[str]) -> list[Any]:
        """Run statements that no transaction may hold, one after the other; the rows of the last one."""

        def run() -> list[Any]:
            self._check_file()
            is_server = self.dialect == "postgresql"
            options = {"isolation_level": "AUTOCOMMIT"} if is_server else {"maintenance": True}
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

    @property
    def is_embedded(self) -> bool:
        """A file of this machine's, not a server that others use too."""
        return self.dialect == "sqlite"

    def close(self) -> None:
        """Let running transactions end, then let go of the database."""
        self._writers.shutdown()
        self._readers.shutdown()
        self.engine.dispose()
