"""List and read the files of a client, and notice changes, without modifying anything."""

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from pathlib import Path

from registry.errors import StorageError
from sources.base import Skipped
from sources.kit.drafts import moment

# largest file that is read as a whole, as JSON must be; larger ones are skipped to limit memory
MAX_DOCUMENT_BYTES = 32 * 2**20


@dataclass(frozen=True, slots=True)
class File:
    """A file as its folder lists it. `fingerprint`: inode, size and time of change; `modified`: nanoseconds."""

    path: str
    fingerprint: str
    modified: int

    @property
    def modified_at(self) -> datetime | None:
        """Return the time of its last change; None if that is implausible."""
        return moment(self.modified / 1e9)


def files_below(folder: str, pattern: str) -> Iterator[File | Skipped]:
    """List the files that match a pattern such as `projects/*/chats/*.jsonl`, without opening any.

    Each part of the pattern has at most one `*`; `**` matches folders of any depth. A folder that cannot be listed is
    yielded as Skipped.
    """
    part, _, rest = pattern.partition("/")
    if "*" not in part:
        path = os.path.join(folder, part)
        if rest:
            yield from files_below(path, rest)
        elif file := file_at(path):
            yield file
        return
    try:
        listing = entries(folder)
    except OSError as exc:
        yield Skipped(folder, system_reason(exc))
        return
    if part == "**":
        yield from files_below(folder, rest)
    begin, _, end = part.partition("*")
    for entry in listing:
        if part == "**":
            if _is_folder(entry, follow=False):
                yield from files_below(entry.path, pattern)
        elif entry.name.startswith(begin) and entry.name.endswith(end):
            if not rest:
                yield file_at(entry.path) or Skipped(entry.path, "not there")
            elif _is_folder(entry):
                yield from files_below(entry.path, rest)


def entries(folder: str | Path) -> list[os.DirEntry[str]]:
    """List a folder; return nothing if it does not exist. Raises OSError if it cannot be read."""
    try:
        with os.scandir(folder) as listing:
            return list(listing)
    except (FileNotFoundError, NotADirectoryError):
        return []


def store_entries(folder: str | Path) -> list[os.DirEntry[str]]:
    """List the root folder of a store. Raises StorageError."""
    try:
        return entries(folder)
    except OSError as exc:
        raise StorageError(f"Could not read the folder {folder}.", system_reason(exc)) from exc


def folders_in(listing: list[os.DirEntry[str]]) -> Iterator[str]:
    return (entry.path for entry in listing if _is_folder(entry))


def _is_folder(entry: os.DirEntry[str], *, follow: bool = True) -> bool:
    try:
        return entry.is_dir(follow_symlinks=follow)
    except OSError:
        return False


def is_there(path: Path) -> bool:
    """Return True if a file or folder exists, also if that is not permitted to know: reading it reports the reason."""
    return file_at(str(path)) is not None


def file_at(path: str) -> File | Skipped | None:
    """Return a file with its fingerprint, Skipped if it is a folder or a pipe, or None if it does not exist."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError) as exc:
        return Skipped(path, system_reason(exc)) if os.path.islink(path) else None
    except OSError as exc:
        return Skipped(path, system_reason(exc))
    if not stat.S_ISREG(status.st_mode):
        return Skipped(path, "not a file" if not stat.S_ISDIR(status.st_mode) else "a folder, not a file")
    return File(path, f"{status.st_ino}-{status.st_size}-{status.st_mtime_ns}", status.st_mtime_ns)


def digest(*parts: object) -> str:
    """Return a short digest of the parts, for a fingerprint."""
    return blake2b(repr(parts).encode("utf-8", "replace"), digest_size=16).hexdigest()


def fingerprint_at(path: str) -> str:
    """Return the fingerprint of a file; empty if it does not exist."""
    file = file_at(path)
    return file.fingerprint if isinstance(file, File) else ""


def read_document(path: str, max_bytes: int = MAX_DOCUMENT_BYTES) -> bytes:
    """Read a whole file. Raises OSError, also if it is too large."""
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size > max_bytes:
            raise OSError(errno.EFBIG, "too large to be read as a whole")
        return file.read()


def read_small_text(path: str | Path, max_bytes: int = 2**20) -> str:
    """Read a small text file, such as a project's path; return an empty text if it is missing or too large."""
    try:
        return read_document(str(path), max_bytes).decode("utf-8", "replace")
    except (OSError, ValueError):  # paths from other files may contain NUL
        return ""


def system_reason(exc: OSError) -> str:
    """Return the system's error message without the path."""
    text = exc.strerror or type(exc).__name__
    return text[:1].lower() + text[1:]
