"""The JSON files of an account export: in a zip, in a folder, or a single one. Read in place, nothing is unpacked."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from sources.base import Skipped
from sources.kit.files import File, file_at, system_reason

# What reading a damaged, encrypted or foreign zip may raise.
UNREADABLE = (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, ValueError)
PRIVATE = ("user.json", "users.json", "user_settings.json")  # the owner's e-mail address: never opened


@dataclass(frozen=True, slots=True)
class ExportFile:
    """A JSON file of an export. `fingerprint` changes when the file does, or the zip that it is in."""

    name: str
    size: int
    fingerprint: str
    open: Callable[[], BinaryIO]


def parts_of(path: Path, stack: ExitStack) -> Iterator[ExportFile | Skipped]:
    """Yield the JSON files of a zip, of a folder and the zips in it, or the one file that the path names.

    Zips stay open as long as the stack. Raises OSError if there is nothing at the path, or it cannot be read.
    """
    if not path.is_dir():
        yield from _in_file(str(path), "", stack)
        return
    os.listdir(path)  # os.walk passes over what it cannot list
    for folder, inner, names in os.walk(path):
        below = os.path.relpath(folder, path)
        inner[:] = [] if below.count(os.sep) > 1 else sorted(inner)  # as in `Takeout/My Activity/Gemini Apps`
        for name in filter(_is_worth_reading, sorted(names)):
            shown_name = name if below == "." else os.path.join(below, name)
            try:
                yield from _in_file(os.path.join(folder, name), shown_name, stack)
            except OSError as exc:
                yield Skipped(printable_name(shown_name), system_reason(exc))


def _in_file(path: str, name: str, stack: ExitStack) -> Iterator[ExportFile | Skipped]:
    """Tell a zip by its content: a browser may have saved it under any name."""
    file = file_at(path)
    if not isinstance(file, File):
        yield Skipped(printable_name(name), file.why if file else "not there")
    elif is_zip(path):
        yield from _in_zip(stack.enter_context(_plain(path)()), name, file.fingerprint, stack)
    else:
        shown_name = printable_name(name or os.path.basename(path))
        yield ExportFile(shown_name, os.path.getsize(path), file.fingerprint, _plain(path))


def _plain(path: str) -> Callable[[], BinaryIO]:
    return lambda: open(path, "rb")


def is_zip(path: str | Path) -> bool:
    """Return True if the file begins as a zip does. Raises OSError."""
    with open(path, "rb") as content:
        return content.read(4) == b"PK\x03\x04"


def _in_zip(
    file: BinaryIO, name: str, fingerprint: str, stack: ExitStack, *, is_inner: bool = False
) -> Iterator[ExportFile | Skipped]:
    """Names in a zip are only shown, never used as paths."""
    try:
        archive = stack.enter_context(zipfile.ZipFile(file))
    except UNREADABLE:
        yield Skipped(printable_name(name) or "the zip", "cut off or damaged; download it again")
        return
    members = [member for member in archive.infolist() if _is_worth_reading(member.filename)]
    for member in sorted(members, key=lambda member: member.filename):
        inside = printable_name("/".join(filter(None, (name, member.filename))))
        open_member = cast(Callable[[], BinaryIO], partial(archive.open, member))
        if not member.filename.lower().endswith(".zip"):
            yield ExportFile(inside, member.file_size, fingerprint, open_member)
        elif is_inner:
            yield Skipped(inside, "a zip in a zip in a zip")
        else:
            try:
                inner = stack.enter_context(open_member())
            except UNREADABLE as exc:
                yield Skipped(inside, reason_of_failure(exc))
            else:
                yield from _in_zip(inner, inside, fingerprint, stack, is_inner=True)


def _is_worth_reading(name: str) -> bool:
    base = os.path.basename(name).lower()
    return base.endswith((".json", ".zip")) and base not in PRIVATE and not base.startswith("._")


def printable_name(name: str) -> str:
    """Make a name from a foreign zip safe for a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)[:300]


def reason_of_failure(exc: Exception) -> str:
    """Say in a few words why a file could not be read."""
    return system_reason(exc) if isinstance(exc, OSError) else printable_name(str(exc)) or type(exc).__name__
