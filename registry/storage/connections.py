"""Create engines for SQLite and PostgreSQL, with their pragmas and limits.

SQLite: one writer, acknowledged writes are on disk, and only this user may read the file. PostgreSQL: settings are
local to a transaction.
"""

import os
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import disk_usage
from typing import Any
from urllib.parse import unquote
from weakref import WeakSet

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from registry.domain import as_json
from registry.errors import InvalidRequest, StorageError
from registry.storage.migrations import HEAD

BUSY_TIMEOUT_MS = 10_000
KEEPALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 20_000}
"""TCP settings to detect a dead server in half a minute instead of 15; the address may override them."""
WRITER_REVISION = int(HEAD)  # set in each transaction; triggers refuse writers that are too old for the tables
PAGE_BYTES = 1024  # of a new SQLite file: a logged message changes some 40 pages, and SQLite writes whole ones
LOG_INDEX_BYTES = 32 * 1024  # smallest size of an SQLite `-shm` file
READERS = 4  # threads, each with a connection
WRITERS = {"sqlite": 1, "postgresql": 8}  # one thread in a queue is faster and fairer than many at SQLite's lock


def create_database_engine(url: str, setting: str = "CTXR_DATABASE_URL") -> Engine:
    """Create an engine for `sqlite:///path` or `postgresql://…`; InvalidRequest for others names the setting."""
    try:
        address = _parse_address(url)
        if address.get_backend_name() == "postgresql":
            return _postgres_engine(address)
        if address.get_backend_name() == "sqlite":
            return _sqlite_engine(url)
    except (ArgumentError, NoSuchModuleError, ImportError, ValueError) as exc:
        raise InvalidRequest("The database address is not usable.", f"{setting}: {exc}") from exc
    raise InvalidRequest(
        "The database address is not usable.",
        f"{setting}: given {address.get_backend_name()!r}; allowed: sqlite, postgresql",
    )


@contextmanager
def open_engine(url: str, setting: str = "CTXR_DATABASE_URL") -> Iterator[Engine]:
    """Create an engine as `create_database_engine` does, and close its connections at the end."""
    engine = create_database_engine(url, setting)
    try:
        yield engine
    finally:
        engine.dispose()


def _parse_address(url: str) -> URL:
    """Parse an address; translate a list of hosts (`a:5432,b:5433`) into SQLAlchemy's form."""
    match = _HOST_LIST.match(url)
    if match is None:
        return make_url(url)
    address = make_url(match["before"] + match["after"])
    return address.update_query_dict({"host": list(map(unquote, match["hosts"].split(",")))})


_HOST_LIST = re.compile(r"(?P<before>\w[\w+]*://(?:[^/?#]*@)?)(?P<hosts>[^/?#@]*,[^/?#@]*)(?P<after>.*)", re.DOTALL)


def _postgres_engine(address: URL) -> Engine:
    engine = create_engine(
        address.set(drivername="postgresql+psycopg"),
        json_serializer=as_json,
        hide_parameters=True,
        pool_size=READERS + WRITERS["postgresql"],
        pool_pre_ping=True,
        connect_args={
            **{name: value for name, value in KEEPALIVE.items() if name not in address.query},
            "connect_timeout": 5,
            "prepare_threshold": None,
            "autocommit": True,
        },
    )

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:  # sends BEGIN and the transaction's settings in one round trip
        if statement := connection.get_execution_options().get("begin", begin_on_server()):
            connection.exec_driver_sql(statement, execution_options={"no_parameters": True})

    return engine


def begin_on_server(isolation: str = "READ COMMITTED", **limits_s: float) -> str:
    """Return the BEGIN statement for PostgreSQL, with the isolation level and limits in seconds; 0: no limit.

    The idle limit is set because the server's may be too short. JIT compilation takes longer than our statements.
    """
    limits = {"idle_in_transaction_session_timeout": 60.0, **limits_s}  # a hanging process must not hold its locks
    settings = [f"SET LOCAL {name} = {round(seconds * 1000)}" for name, seconds in limits.items()]
    settings += ["SET LOCAL jit = off", f"SET LOCAL ctxr.writer = {WRITER_REVISION}"]
    return "; ".join([f"BEGIN ISOLATION LEVEL {isolation}", *settings])


class ClosingConnection(sqlite3.Connection):
    """Closes all its cursors when it is returned to the pool.

    An open cursor, referenced by a logged exception for example, keeps its snapshot, and the next write would fail.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._opened = WeakSet[sqlite3.Cursor]()

    def cursor(self, *given: Any, **named: Any) -> Any:
        opened = super().cursor(*given, **named)
        self._opened.add(opened)
        return opened

    def rollback(self) -> None:
        """Close the cursors, then roll back; SQLAlchemy does so whenever a connection is returned."""
        for opened in list(self._opened):
            opened.close()
        super().rollback()


def _sqlite_engine(url: str) -> Engine:
    file = make_url(url).database
    if file and file != ":memory:":
        if is_read_only(Path(file)):
            return _read_only_engine(Path(file))
        _make_private_file(Path(file))  # SQLite creates the -wal and -shm files with the same permissions
        keep_private(Path(f"{file}{end}") for end in ("", "-wal", "-shm"))
    opened_here = {"check_same_thread": False, "factory": ClosingConnection}
    engine = create_engine(url, json_serializer=as_json, hide_parameters=True, connect_args=opened_here)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # we send BEGIN ourselves, below
        # as on PostgreSQL; SQLite's built-in lower() handles ASCII only
        connection.create_function("lower", 1, lambda of: of.lower() if isinstance(of, str) else of, deterministic=True)
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")  # first: switching to WAL itself needs the lock
        connection.create_function("ctxr_writer", 0, lambda: WRITER_REVISION, deterministic=True)
        cursor.execute(f"PRAGMA page_size={PAGE_BYTES}")  # before the file exists
        _switch_to_wal(cursor)
        for pragma in (
            "wal_autocheckpoint=16000",  # pages, 16 MB: so most pages are copied into the file only once
            "synchronous=FULL",  # an acknowledged write is on disk
            "foreign_keys=ON",
            "secure_delete=ON",  # what is deleted is overwritten
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
    """Return True if the registry's file, or the folder with its write-ahead log, can be read but not written."""
    if not file.is_file():
        return False
    return not (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)) or _is_disk_full(file)


def _is_disk_full(file: Path) -> bool:
    """Return True if there is neither the log's index, which every connection needs, nor room for it."""
    if disk_usage(file.parent).free >= 2 * LOG_INDEX_BYTES:
        return False
    try:
        return os.path.getsize(f"{file}-shm") < LOG_INDEX_BYTES
    except FileNotFoundError:  # the last process that closes the registry removes it
        return True


def _read_only_engine(file: Path) -> Engine:
    """Create an engine that only reads. In WAL mode SQLite needs `immutable` unless the log is there."""

    def connect() -> sqlite3.Connection:
        log = Path(f"{file}-wal")
        mode = "mode=ro" if log.exists() and log.stat().st_size else "mode=ro&immutable=1"
        address = f"{file.absolute().as_uri()}?{mode}"
        return sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None)

    engine = create_engine(f"sqlite:///{file}", creator=connect, json_serializer=as_json, hide_parameters=True)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    return engine


def _switch_to_wal(cursor: sqlite3.Cursor) -> None:
    """Switch to WAL; retry while another process switches, because SQLite's busy timeout does not apply."""
    deadline = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as exc:
            if exc.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def _make_private_file(path: Path) -> None:
    """Create the folder, and an empty file that only this user may read, if there is none. Raises StorageError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as exc:
        raise StorageError(f"The folder {path.parent} cannot be written.", f"{exc.strerror}; set CTXR_HOME") from exc


def keep_private(paths: Iterable[Path]) -> None:
    """Remove the permissions of other users from these files and folders, if they exist."""
    for path in paths:
        with suppress(OSError):
            mode = path.stat().st_mode
            if mode & 0o077:
                path.chmod(mode & 0o7700)


def private_files_of(home: Path) -> Iterable[Path]:
    yield home / "config.toml"
    yield home / "masking.json"
    yield from home.glob("registry.db*")
    yield home / "spool"
    yield from (home / "spool").glob("*")
