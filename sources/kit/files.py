"""Looking at a client's folders without touching them: what is there, and has it changed."""

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

# bytes of a file that has to be read as a whole, as JSON has; a larger one is passed over, so memory stays bounded
LARGEST_DOCUMENT = 32 * 2**20


@dataclass(frozen=True, slots=True)
class File:
    """A file as its folder lists it. `fingerprint`: inode, size and time of change; `modified`: nanoseconds."""

    path: str
    fingerprint: str
    modified: int

    @property
    def modified_at(self) -> datetime | None:
        """Return the time of its last change; None if the file system's time cannot be true."""
        return moment(self.modified / 1e9)


def files_below(folder: str, pattern: str) -> Iterator[File | Skipped]:
    """List the files that match a pattern such as `projects/*/chats/*.jsonl`, without opening any.

    A part of the pattern has one `*` at most; `**` stands for folders of any depth. A folder that cannot be listed is
    skipped with the reason.
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
    """List a folder; nothing if it is not there. Raises OSError if it cannot be read."""
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


def file_at(path: str) -> File | Skipped | None:
    """Return a file by its status; a folder or a pipe is skipped. None if it is not there."""
    try:
        seen = os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as exc:
        return Skipped(path, system_reason(exc))
    if not stat.S_ISREG(seen.st_mode):
        return Skipped(path, "not a file" if not stat.S_ISDIR(seen.st_mode) else "a folder, not a file")
    return File(path, f"{seen.st_ino}-{seen.st_size}-{seen.st_mtime_ns}", seen.st_mtime_ns)


def digest(*parts: object) -> str:
    """Return a short digest for a fingerprint, which changes whenever one of the parts does."""
    return blake2b(repr(parts).encode("utf-8", "replace"), digest_size=16).hexdigest()


def status_of(path: str) -> str:
    """Return the fingerprint of a file; empty if it is not there."""
    file = file_at(path)
    return file.fingerprint if isinstance(file, File) else ""


def document(path: str, largest: int = LARGEST_DOCUMENT) -> bytes:
    """Read a whole file. Raises OSError, also for one that is too large."""
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size > largest:
            raise OSError(errno.EFBIG, "too large to be read as a whole")
        return file.read()


def small_text(path: str | Path, largest: int = 2**20) -> str:
    """Read a note that lies beside conversations, such as a project's path; empty if it is missing or too large."""
    try:
        return document(str(path), largest).decode("utf-8", "replace")
    except (OSError, ValueError):  # a note may name any path, also one with a NUL in it
        return ""


def system_reason(exc: OSError) -> str:
    """Return the system's reason in its own words, without the path."""
    text = exc.strerror or type(exc).__name__
    return text[:1].lower() + text[1:]
