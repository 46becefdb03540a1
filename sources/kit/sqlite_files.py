"""The files of an SQLite database, looked at from outside: has it changed, and what lies beside it."""

from __future__ import annotations

import os
from pathlib import Path


def stamp(database: Path) -> str:
    """What changes whenever the database does: size and time of it and of its WAL, and the WAL's salts."""
    wal = beside(database, "-wal")
    return f"{_size_and_time(database)}|{_size_and_time(wal)}|{_salts(wal)}"


def last_change(database: Path) -> float:
    """When the database was last written, in seconds since 1970; 0 if it is not there."""
    return max(_modified(database), _modified(beside(database, "-wal")))


def beside(database: Path, end: str) -> Path:
    """A file that SQLite keeps with a database: `-wal`, `-shm` or `-journal`."""
    return database.with_name(database.name + end)


def pages(database: Path) -> tuple[int, int]:
    """Changes when pages are rewritten; asked for each statement, so one call to the system. Raises OSError."""
    status = os.stat(database)
    return status.st_size, status.st_mtime_ns


def has_content(file: Path) -> bool:
    """Whether a file is there and not empty."""
    return file.exists() and file.stat().st_size > 0


def _modified(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def _size_and_time(file: Path) -> str:
    try:
        return ".".join(map(str, pages(file)))
    except OSError:
        return "-"


def _salts(wal: Path) -> str:
    """New for each generation of a WAL, which a lazy clock does not hide."""
    try:
        with wal.open("rb") as file:
            return file.read(24)[16:].hex()
    except OSError:
        return "-"
