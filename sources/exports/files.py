"""The files of an account export, in a zip, a folder, or alone. Read where they are: nothing is unpacked or written."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

from sources.base import Skipped
from sources.exports import torn_zip
from sources.kit.files import File, entries, look_at, why_not

UNREADABLE = (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, ValueError)
"""What reading a damaged, encrypted or foreign zip may raise."""
PRIVATE = ("user.json", "users.json", "user_settings.json")
"""About the account's owner, with the e-mail address: never opened."""
MOST_FILES = 50_000
_DEEPEST_FOLDER = 2
_DEEPEST_ZIP = 2


@dataclass(frozen=True, slots=True)
class Part:
    """One JSON file of an export. `fingerprint` changes when the file does, or the zip that it is in."""

    name: str
    size: int
    fingerprint: str
    open: Callable[[], BinaryIO]

    @property
    def should_hold_conversations(self) -> bool:
        """By its name: then it is missed if it cannot be read."""
        return os.path.basename(self.name).lower().startswith("conversations")


def parts_of(path: Path, stack: ExitStack) -> Iterator[Part | Skipped]:
    """The JSON files of a zip, a folder, or the one that the path names; zips in a zip or a folder count too.

    Zips stay open as long as the stack. Raises OSError if there is nothing at the path, or it cannot be read.
    """
    if path.is_dir():
        yield from _in_folder(str(path), str(path), stack, _DEEPEST_FOLDER)
        return
    status = path.stat()
    yield from _in_file(File(str(path), _fingerprint(status), status.st_mtime_ns), "", stack)


def _fingerprint(status: os.stat_result) -> str:
    return f"{status.st_ino}-{status.st_size}-{status.st_mtime_ns}"


def _in_folder(folder: str, root: str, stack: ExitStack, deeper: int) -> Iterator[Part | Skipped]:
    for entry in sorted(entries(folder), key=lambda entry: entry.name):
        if entry.is_dir(follow_symlinks=False):
            if deeper:
                yield from _in_folder(entry.path, root, stack, deeper - 1)
        elif _is_worth_reading(entry.name):
            name = os.path.relpath(entry.path, root)
            try:
                file = look_at(entry)
                yield from _in_file(file, name, stack) if isinstance(file, File) else (Skipped(shown(name), file.why),)
            except OSError as exc:
                yield Skipped(shown(name), why_not(exc))


def _in_file(file: File, name: str, stack: ExitStack) -> Iterator[Part | Skipped]:
    """A file outside of any zip; by its content, for a browser may have saved it under any name."""
    if is_zip(file.path):
        yield from _in_zip(stack.enter_context(_plain(file.path)()), name, file.fingerprint, stack, _DEEPEST_ZIP)
    else:
        shown_name = shown(name or os.path.basename(file.path))
        yield Part(shown_name, os.path.getsize(file.path), file.fingerprint, _plain(file.path))


def is_zip(path: str | Path) -> bool:
    """Whether a file begins as a zip does. Raises OSError."""
    with open(path, "rb") as content:
        return content.read(4) == b"PK\x03\x04"


def _plain(path: str) -> Callable[[], BinaryIO]:
    return lambda: open(path, "rb")


def _in_zip(file: BinaryIO, name: str, fingerprint: str, stack: ExitStack, deeper: int) -> Iterator[Part | Skipped]:
    """The JSON files in a zip. Names in it are only shown, never paths to anything."""
    try:
        archive = stack.enter_context(zipfile.ZipFile(file))
    except UNREADABLE:
        yield Skipped(shown(name) or "the zip", "cut off or damaged; read as far as it goes")
        yield from _rescued(file, name, fingerprint)
        return
    members = [member for member in archive.infolist() if _is_worth_reading(member.filename)]
    for member in sorted(members[:MOST_FILES], key=lambda member: member.filename):
        inside = "/".join(filter(None, (name, member.filename)))
        if not member.filename.lower().endswith(".zip"):
            yield Part(shown(inside), member.file_size, fingerprint, _opener(archive, member))
        elif deeper > 1:
            yield from _in_member(archive, member, inside, fingerprint, stack, deeper - 1)
        else:
            yield Skipped(shown(inside), "a zip in a zip in a zip")


def _in_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str, fingerprint: str, stack: ExitStack, deeper: int
) -> Iterator[Part | Skipped]:
    try:
        inner = stack.enter_context(_opener(archive, member)())
    except UNREADABLE as exc:
        yield Skipped(shown(name), reason(exc))
        return
    yield from _in_zip(inner, name, fingerprint, stack, deeper)


def _rescued(file: BinaryIO, name: str, fingerprint: str) -> Iterator[Part | Skipped]:
    """The JSON files in a zip that was cut off."""
    try:
        for member in islice(torn_zip.members_of(file), MOST_FILES):
            if _is_worth_reading(member.name) and not member.name.lower().endswith(".zip"):
                inside = "/".join(filter(None, (name, member.name)))
                yield Part(shown(inside), member.size, fingerprint, partial(torn_zip.open_member, file, member))
    except UNREADABLE as exc:
        yield Skipped(shown(name) or "the zip", reason(exc))


def _opener(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Callable[[], BinaryIO]:
    return lambda: cast(BinaryIO, archive.open(member))


def _is_worth_reading(name: str) -> bool:
    base = os.path.basename(name).lower()
    return base.endswith((".json", ".zip")) and base not in PRIVATE and not base.startswith("._")


def shown(name: str) -> str:
    """A name out of somebody's zip, fit for a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)[:300]


def reason(exc: Exception) -> str:
    """Why a file could not be read, in a few words."""
    return why_not(exc) if isinstance(exc, OSError) else shown(str(exc)) or type(exc).__name__
