"""The files of an SQLite database, seen from outside: has it changed, and what lies beside it."""

from __future__ import annotations

import os
from pathlib import Path


def stamp(database: Path) -> str:
    """Return size and time of the database and of its WAL, and the WAL's salts: they change with the database."""
    wal = beside(database, "-wal")
    return f"{_size_and_time(database)}|{_size_and_time(wal)}|{_salts(wal)}"


def last_change(database: Path) -> float:
    """Return the time of the last write, in seconds since 1970; 0 if the database is not there."""
    return max(_modified(database), _modified(beside(database, "-wal")))


def beside(database: Path, end: str) -> Path:
    """Return the path of a file that SQLite keeps with a database: `-wal`, `-shm` or `-journal`."""
    return database.with_name(database.name + end)


def pages(database: Path) -> tuple[int, int]:
    """Return size and time of a database, which change when pages are rewritten. Raises OSError."""
    status = os.stat(database)
    return status.st_size, status.st_mtime_ns


def has_content(file: Path) -> bool:
    """Return True if a file is there and not empty."""
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
    """Return the salts, which are new for each generation of a WAL, also within one tick of the file's clock."""
    try:
        with wal.open("rb") as file:
            return file.read(24)[16:].hex()
    except OSError:
        return "-"
