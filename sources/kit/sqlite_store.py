"""A client's SQLite database, read while the client works, without a trace in its folder.

A plain read-only open is not traceless: beside a database in WAL mode it creates `-wal` and `-shm`, and rewrites a
`-shm` that nobody uses. So the way in is chosen from what stands there.
"""

from __future__ import annotations

import logging
import platform
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self, TypeVar

from registry.errors import StorageError
from sources.kit.sqlite_files import beside, has_content, pages, stamp

_log = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")

WAIT_S = 5.0
_WAL_MODE = 2
_COPY_TRIES = 3
_BELONGING = ("", "-wal", "-journal")
_NEEDS_COPY = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})
_IN_USE = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_READONLY})
# The client is just starting its WAL anew, and only it may write into the shared index: over in a moment.
_PASSING = frozenset({sqlite3.SQLITE_READONLY_CANTINIT, sqlite3.SQLITE_READONLY_RECOVERY})
_PAUSE_S = 0.002
_STEP_PAGES, _STEPS_S = 4096, 60.0


class DamagedDatabase(StorageError):
    """Part of a database, or all of it, is not what SQLite wrote."""


class BusyDatabase(StorageError):
    """The client is using it; later it can be read."""


class ClientDatabase:
    """A database that belongs to a client: strictly read-only, WAL contents seen, each statement on its own.

    A statement never leaves a transaction open, so the client can checkpoint while we read on. StorageError when
    there is no way in; BusyDatabase when it stays locked longer than `wait_s` seconds; DamagedDatabase when it cannot
    be read.
    """

    def __init__(self, path: Path, wait_s: float = WAIT_S) -> None:
        self._path = path
        self._wait_s = wait_s
        self._temporary: TemporaryDirectory[str] | None = None
        self._unlocked: tuple[int, int] | None = None

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def tables(self) -> set[str]:
        """The names of its tables."""
        return {name for (name,) in self.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def rows(self, statement: str, parameters: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        """All rows of a statement. Bytes stay bytes, text that is no UTF-8 is shown with U+FFFD."""
        return self._fetched(statement, parameters)[1]

    def records(self, statement: str) -> list[dict[str, Any]]:
        """All rows of a statement by the names of their columns."""
        names, rows = self._fetched(statement, ())
        return [dict(zip(names, row, strict=True)) for row in rows]

    def copy_to(self, target: Path) -> None:
        """A copy of all of it as it is at one moment, in a new file; the client works on meanwhile.

        Raises as `rows` does.
        """
        while True:
            try:
                _backed_up(self._connection, target)
            except sqlite3.Error as exc:
                if not self._changed_unlocked():
                    raise _storage_error(self._path, exc) from exc
            else:
                if not self._changed_unlocked():
                    return
            self._close()
            self._open()

    def _fetched(self, statement: str, parameters: tuple[object, ...]) -> tuple[list[str], list[tuple[Any, ...]]]:
        while True:
            try:
                found = _patiently(partial(self._execute, statement, parameters), self._wait_s)
            except sqlite3.Error as exc:
                if not self._changed_unlocked():
                    raise _storage_error(self._path, exc) from exc
            else:
                if not self._changed_unlocked():
                    return found
            self._close()
            self._open()

    def _execute(self, statement: str, parameters: tuple[object, ...]) -> tuple[list[str], list[tuple[Any, ...]]]:
        with _names_readable():
            cursor = self._connection.execute(statement, parameters)
            return [column[0] for column in cursor.description], cursor.fetchall()

    def _changed_unlocked(self) -> bool:
        """Without locks, the client may have come back and rewritten pages under us."""
        try:
            return self._unlocked is not None and pages(self._path) != self._unlocked
        except OSError:
            return True

    def _open(self) -> None:
        try:
            self._connection = self._connected()
        except sqlite3.Error as exc:
            self._close()
            raise _storage_error(self._path, exc) from exc
        except StorageError:
            self._close()
            raise
        except OSError as exc:
            self._close()
            raise StorageError(f"Cannot read {self._path.name}.", f"{self._path}: {exc.strerror}") from exc

    def _connected(self) -> sqlite3.Connection:
        before = pages(self._path)
        options = _way_in(self._path)
        if options is None:
            return self._copied()
        self._unlocked = before if "immutable" in options else None
        try:
            return _patiently(partial(_connect, self._path, options, self._wait_s), self._wait_s)
        except sqlite3.Error as exc:
            if _primary(exc) not in _NEEDS_COPY:
                raise
            _log.debug("no way into %s in place (%s), reading a copy", self._path.name, exc)
            return self._copied()

    def _copied(self) -> sqlite3.Connection:
        self._unlocked = None
        self._temporary = TemporaryDirectory(prefix="ctxr-", ignore_cleanup_errors=True)
        copy = _copy(self._path, Path(self._temporary.name))
        return _connect(copy, "mode=rw", self._wait_s)  # ours: SQLite may recover it as it likes

    def _close(self) -> None:
        if hasattr(self, "_connection"):
            self._connection.close()
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None


class _NeverEnds(Exception):
    """The client writes faster than pages are copied: each of its transactions begins the copy again."""


def _backed_up(origin: sqlite3.Connection, target: Path) -> None:
    """In steps, between which the client may write; at once where it never stops to."""
    deadline = time.monotonic() + _STEPS_S

    def go_on(_status: int, _remaining: int, _total: int) -> None:
        if time.monotonic() > deadline:
            raise _NeverEnds

    target.unlink(missing_ok=True)
    with closing(sqlite3.connect(target)) as copy:
        try:
            origin.backup(copy, pages=_STEP_PAGES, progress=go_on, sleep=_PAUSE_S)
        except _NeverEnds:
            origin.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")  # one file, nothing beside it


def _way_in(database: Path) -> str | None:
    """The URI options that leave nothing behind; None where only a copy does."""
    if database.stat().st_size == 0:
        # Beside an empty file SQLite takes a WAL for a left-over and deletes it, read-only or not.
        raise StorageError(f"{database.name} is empty.", str(database))
    if _on_a_windows_drive_of_wsl(database):
        return None
    wal, shared_memory = beside(database, "-wal"), beside(database, "-shm")
    if not wal.exists() and not _in_wal_mode(database):
        return "mode=ro"
    if wal.exists() and shared_memory.exists():
        return "mode=ro&readonly_shm=1"
    return None if has_content(wal) else "mode=ro&immutable=1"


def _in_wal_mode(database: Path) -> bool:
    with database.open("rb") as file:
        return _WAL_MODE in file.read(20)[18:]


def _on_a_windows_drive_of_wsl(database: Path) -> bool:
    """Locks do not work over that mount."""
    return database.parts[:2] == ("/", "mnt") and "microsoft" in platform.release().lower()


def _connect(database: Path, options: str, wait_s: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{database.absolute().as_uri()}?{options}",
        uri=True,
        timeout=wait_s,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    try:
        with _names_readable():
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


@contextmanager
def _names_readable() -> Iterator[None]:
    """Python reads the names in a schema, and SQLite's complaints about them, as strict UTF-8."""
    try:
        yield
    except UnicodeDecodeError as exc:
        raise sqlite3.DatabaseError("malformed database schema") from exc


def _patiently(attempt: Callable[[], _Answer], wait_s: float) -> _Answer:
    """SQLite waits for locks by itself, but not for this."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            return attempt()
        except sqlite3.OperationalError as exc:
            if _extended(exc) not in _PASSING or time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE_S)


def _copy(database: Path, folder: Path) -> Path:
    """The database and what belongs to it as they stood together at one moment."""
    for _ in range(_COPY_TRIES):
        before = stamp(database)
        for end in _BELONGING:
            origin, target = beside(database, end), folder / (database.name + end)
            target.unlink(missing_ok=True)
            if not end or origin.exists():
                shutil.copyfile(origin, target)
        if stamp(database) == before:
            return folder / database.name
    raise BusyDatabase(f"{database.name} changes faster than it can be copied.", str(database))


def _storage_error(database: Path, exc: sqlite3.Error) -> StorageError:
    if _primary(exc) in _IN_USE:
        return BusyDatabase(f"{database.name} is locked by another program.", f"{database}: {exc}")
    return DamagedDatabase(f"{database.name} cannot be read.", f"{database}: {exc}")


def _primary(exc: sqlite3.Error) -> int:
    """SQLite's error code without its extension; 0 where Python itself complains."""
    return _extended(exc) & 0xFF


def _extended(exc: sqlite3.Error) -> int:
    return getattr(exc, "sqlite_errorcode", 0)
