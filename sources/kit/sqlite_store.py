"""Read a client's SQLite database while the client uses it, without changing any file.

A plain read-only open changes files: in WAL mode it creates `-wal` and `-shm`, and rewrites an unused `-shm`. The
options for opening therefore depend on which of these files exist.
"""

import logging
import platform
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from registry.errors import StorageError
from registry.temporary_folder import TemporaryFolder
from sources.kit.files import File, file_at, fingerprint_at


def stamp(database: Path) -> str:
    """Return a text that changes with the database: size and time of the database and its WAL, and the WAL's salts."""
    wal, salts = companion_file(database, "-wal"), "-"
    with suppress(OSError), wal.open("rb") as file:
        salts = file.read(24)[16:].hex()  # they change with each restart of the WAL, also within one clock tick
    return f"{fingerprint_at(str(database))}|{fingerprint_at(str(wal))}|{salts}"


def last_change(database: Path) -> float:
    """Return the time of the last write, in seconds since 1970; 0 if the database does not exist."""
    files = (file_at(str(path)) for path in (database, companion_file(database, "-wal")))
    return max((file.modified / 1e9 for file in files if isinstance(file, File)), default=0.0)


def companion_file(database: Path, end: str) -> Path:
    """Return the path of a database's companion file: `-wal`, `-shm` or `-journal`."""
    return database.with_name(database.name + end)


_log = logging.getLogger(__name__)

_Result = TypeVar("_Result")

WAIT_S = 5.0  # longest wait for a locked database
_PAUSE_S = 0.002  # between two tries
_ERRORS = (sqlite3.Error, UnicodeDecodeError)  # the second: of invalid names in a damaged schema
_NEEDS_COPY = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
_IN_USE = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_READONLY)
# the client is restarting its WAL; only the client may write into the shared index, and soon will
_RESTARTING = (sqlite3.SQLITE_READONLY_CANTINIT, sqlite3.SQLITE_READONLY_RECOVERY)


class DamagedDatabase(StorageError):
    """A database, or part of it, is corrupt."""


class BusyDatabase(StorageError):
    """The client has locked the database; it can be read later."""


class ClientDatabase:
    """A client's database, opened strictly read-only, with the contents of its WAL.

    No statement leaves a transaction open, so the client can checkpoint between them. Raises StorageError if it cannot
    be opened, BusyDatabase if it stays locked, DamagedDatabase if it cannot be read.
    """

    def __init__(self, path: Path, *, waits: bool = True) -> None:
        self._path = path
        self._wait_s = WAIT_S if waits else 0.0
        self._temporary: TemporaryFolder | None = None
        self._state_when_opened: str | None = None

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def tables(self) -> set[str]:
        return {name for (name,) in self.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def columns(self, table: str) -> set[str]:
        """Return the names of a table's columns; none if the table does not exist."""
        return {str(name) for (name,) in self.rows("SELECT name FROM pragma_table_info(?)", (table,))}

    def rows(self, statement: str, parameters: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a statement. Bytes stay bytes; invalid UTF-8 in text becomes U+FFFD."""
        return self._run(partial(self._execute, statement, parameters))[1]

    def records(self, statement: str) -> list[dict[str, Any]]:
        """Return all rows of a statement by the names of their columns."""
        names, rows = self._run(partial(self._execute, statement, ()))
        return [dict(zip(names, row, strict=True)) for row in rows]

    def copy_to(self, target: Path) -> None:
        """Copy a consistent snapshot of the database into a new file."""
        target.unlink(missing_ok=True)
        with closing(sqlite3.connect(target)) as copy:
            self._run(lambda: self._connection.backup(copy))
            copy.execute("PRAGMA journal_mode=DELETE")  # the copy is a single file

    def _run(self, action: Callable[[], _Result]) -> _Result:
        """Run an action; repeat it if pages were rewritten while it read without locks."""
        while True:
            try:
                result = _retry_while_restarting(action, self._wait_s)
            except _ERRORS as exc:
                if not self._has_changed():
                    raise _storage_error(self._path, exc) from exc
            else:
                if not self._has_changed():
                    return result
            self._close()
            self._open()

    def _execute(self, statement: str, parameters: tuple[object, ...]) -> tuple[list[str], list[tuple[Any, ...]]]:
        cursor = self._connection.execute(statement, parameters)
        return [column[0] for column in cursor.description], cursor.fetchall()

    def _has_changed(self) -> bool:
        """Return True if the database was opened without locks and the client has rewritten pages since."""
        return self._state_when_opened not in (None, fingerprint_at(str(self._path)))

    def _open(self) -> None:
        try:
            self._connection = self._connect()
        except (*_ERRORS, StorageError, OSError) as exc:
            self._close()
            if isinstance(exc, _ERRORS):
                raise _storage_error(self._path, exc) from exc
            if isinstance(exc, OSError):
                raise StorageError(f"Cannot read {self._path.name}.", f"{self._path}: {exc.strerror}") from exc
            raise

    def _connect(self) -> sqlite3.Connection:
        before = fingerprint_at(str(self._path))
        options = _options_for(self._path)
        if options is None:
            return self._connect_to_copy()
        self._state_when_opened = before if "immutable" in options else None
        try:
            return _retry_while_restarting(partial(_connect_to, self._path, options, self._wait_s), self._wait_s)
        except sqlite3.Error as exc:
            if _error_code(exc) & 0xFF not in _NEEDS_COPY:
                raise
            _log.debug("cannot open %s in place (%s), reading a copy", self._path.name, exc)
            return self._connect_to_copy()

    def _connect_to_copy(self) -> sqlite3.Connection:
        self._state_when_opened = None
        self._temporary = TemporaryFolder()
        copy = _copy(self._path, Path(self._temporary.name))
        return _connect_to(copy, "mode=rw", self._wait_s)  # SQLite may recover our own copy

    def _close(self) -> None:
        if hasattr(self, "_connection"):
            self._connection.close()
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None


def _options_for(database: Path) -> str | None:
    """Return the URI options for opening without changing files; None if a copy must be read."""
    if database.stat().st_size == 0:
        # SQLite would delete the WAL of an empty file, even if it is opened read-only
        raise StorageError(f"{database.name} is empty.", str(database))
    if _is_on_windows_drive_of_wsl(database):
        return None
    wal, shared_memory = companion_file(database, "-wal"), companion_file(database, "-shm")
    if not wal.exists() and not _in_wal_mode(database):
        return "mode=ro"
    if wal.exists() and shared_memory.exists():
        return "mode=ro&readonly_shm=1"
    return None if wal.exists() and wal.stat().st_size else "mode=ro&immutable=1"


def _in_wal_mode(database: Path) -> bool:
    with database.open("rb") as file:
        return 2 in file.read(20)[18:]  # the file format's version: 2 is WAL


def _is_on_windows_drive_of_wsl(database: Path) -> bool:
    """Return True for a mount on which file locks do not work."""
    return database.parts[:2] == ("/", "mnt") and "microsoft" in platform.release().lower()


def _connect_to(database: Path, options: str, wait_s: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{database.absolute().as_uri()}?{options}",
        uri=True,
        timeout=wait_s,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    except _ERRORS:
        connection.close()
        raise
    return connection


def _retry_while_restarting(attempt: Callable[[], _Result], wait_s: float) -> _Result:
    """Retry while the client restarts its WAL; SQLite itself waits for locks only."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            return attempt()
        except sqlite3.OperationalError as exc:
            if _error_code(exc) not in _RESTARTING or time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE_S)


def _copy(database: Path, folder: Path) -> Path:
    """Copy the database, its WAL and its journal; retry if they change meanwhile."""
    for _ in range(3):
        before = stamp(database)
        for end in ("", "-wal", "-journal"):
            origin, target = companion_file(database, end), folder / (database.name + end)
            target.unlink(missing_ok=True)
            if not end or origin.exists():
                shutil.copyfile(origin, target)
        if stamp(database) == before:
            return folder / database.name
    raise BusyDatabase(f"{database.name} changes faster than it can be copied.", str(database))


def _storage_error(database: Path, exc: Exception) -> StorageError:
    if _error_code(exc) & 0xFF in _IN_USE:
        return BusyDatabase(f"{database.name} is locked by another program.", f"{database}: {exc}")
    return DamagedDatabase(f"{database.name} cannot be read.", f"{database}: {exc}")


def _error_code(exc: Exception) -> int:
    """Return SQLite's extended error code, whose last byte is the primary code; 0 for an error of Python's module."""
    return getattr(exc, "sqlite_errorcode", 0)
