"""Looking at a client's folders without touching them: what is there, and has it changed."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeVar

from registry.errors import StorageError
from sources.base import FoundSession, Skipped
from sources.kit.drafts import moment

LARGEST_DOCUMENT = 32 * 2**20
"""Bytes. What has to be read as a whole, as JSON has, is passed over beyond this; so memory stays bounded."""


@dataclass(frozen=True, slots=True)
class File:
    """A file as the folder lists it. `fingerprint`: inode, size and time of its last change."""

    path: str
    fingerprint: str
    modified: int
    """Nanoseconds since 1970."""

    @property
    def modified_at(self) -> datetime | None:
        """The time of its last change; None where the file system tells none that can be."""
        return moment(self.modified / 1e9)


class Kept(Protocol):
    """What a client keeps in a file of its own: a conversation, mostly."""

    @property
    def file(self) -> File:
        """The file."""


Some = TypeVar("Some", bound=Kept)


def read_changed(
    found: Iterable[Some | Skipped],
    has_changed: Callable[[Some], bool],
    read: Callable[[Some], Iterable[FoundSession]],
) -> Iterator[FoundSession | Skipped]:
    """What is to be passed over, then what the changed files hold, newest first; one that cannot be read is skipped."""
    changed = []
    for kept in found:
        if isinstance(kept, Skipped):
            yield kept
        elif has_changed(kept):
            changed.append(kept)
    for kept in sorted(changed, key=lambda kept: kept.file.modified, reverse=True):
        try:
            yield from read(kept)
        except OSError as exc:
            yield Skipped(kept.file.path, why_not(exc))


def entries(folder: str | Path) -> list[os.DirEntry[str]]:
    """What a folder holds; nothing if it is not there. Raises OSError if it cannot be read."""
    try:
        with os.scandir(folder) as listing:
            return list(listing)
    except (FileNotFoundError, NotADirectoryError):
        return []


def store_entries(folder: str | Path) -> list[os.DirEntry[str]]:
    """The same for the root of a store. Raises StorageError."""
    try:
        return entries(folder)
    except OSError as exc:
        raise StorageError(f"Could not read the folder {folder}.", why_not(exc)) from exc


def folders_in(listing: list[os.DirEntry[str]]) -> Iterator[str]:
    """The paths of the folders among the entries."""
    return (entry.path for entry in listing if _is_folder(entry))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def look_at(entry: os.DirEntry[str]) -> File | Skipped:
    """One file by its listing; opens nothing. What is no plain file (a folder, a pipe) is skipped."""
    try:
        return _as_file(entry.path, entry.stat())
    except OSError as exc:
        return Skipped(entry.path, why_not(exc))


def file_at(path: str) -> File | Skipped | None:
    """One file by its path, in the same way; None if it is not there."""
    try:
        return _as_file(path, os.stat(path))
    except FileNotFoundError:
        return None
    except OSError as exc:
        return Skipped(path, why_not(exc))


def _as_file(path: str, seen: os.stat_result) -> File | Skipped:
    if not stat.S_ISREG(seen.st_mode):
        return Skipped(path, "not a file" if not stat.S_ISDIR(seen.st_mode) else "a folder, not a file")
    return File(path, f"{seen.st_ino}-{seen.st_size}-{seen.st_mtime_ns}", seen.st_mtime_ns)


def status_of(path: str) -> str:
    """What changes whenever a file beside a conversation does; nothing if it is not there."""
    try:
        seen = os.stat(path)
    except OSError:
        return ""
    return f"{seen.st_size}-{seen.st_mtime_ns}"


def document(path: str, largest: int = LARGEST_DOCUMENT) -> bytes:
    """All of a file that can only be read as a whole. Raises OSError, also for one that is too large."""
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size > largest:
            raise OSError(errno.EFBIG, "too large to be read as a whole")
        return file.read()


def small_text(path: str | Path) -> str:
    """A note that lies beside conversations, such as a project's path; nothing if it is not there or too large."""
    try:
        return document(str(path), 2**20).decode("utf-8", "replace")
    except (OSError, ValueError):  # a note may name any path, also one with a NUL in it
        return ""


def why_not(exc: OSError) -> str:
    """The system's reason in its own words, without the path."""
    return (exc.strerror or type(exc).__name__).lower()
