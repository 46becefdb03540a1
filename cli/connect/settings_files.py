"""Other programs' settings files, changed with care: read as they are, shown, replaced in one step.

A copy of the old file is kept beside it, unless keys and tokens may stand in it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from difflib import unified_diff
from pathlib import Path

from registry.errors import InvalidRequest, StorageError


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A file's text before and after; None where there is no file."""

    file: Path
    before: str | None
    after: str | None
    is_private: bool = False
    """No copy of it may be left behind."""

    def diff(self) -> Iterator[str]:
        """The lines that change, as a diff with names."""
        old, new = ((text or "").splitlines() for text in (self.before, self.after))
        return unified_diff(old, new, str(self.file), str(self.file), lineterm="")


def rewrite(file: Path, edit: Callable[[str], str], is_private: bool = False) -> Rewrite | None:
    """Return the change that an edit makes to a file, None if none; InvalidRequest if the file cannot be parsed."""
    before = read(file)
    try:
        after = edit(before or "")
    except ValueError as exc:
        raise InvalidRequest(f"{file} could not be changed, and stays as it is.", str(exc)) from exc
    if before is None and after and not after.endswith("\n"):
        after += "\n"
    return None if after == (before or "") else Rewrite(file, before, after or None, is_private)


def read(file: Path) -> str | None:
    """The text with its own line ends, None if there is no file; StorageError if it cannot be read."""
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as exc:
        raise StorageError(f"{file} could not be read.", str(exc)) from exc


def apply(change: Rewrite) -> Path | None:
    """Do it; the copy of the old file, beside it, if one was kept. StorageError if the file cannot be written."""
    if read(change.file) != change.before:
        raise StorageError(f"{change.file} was changed by another program.", "Nothing was written. Try again.")
    file = change.file.resolve()  # dotfiles are often links
    try:
        is_ours_alone = change.before is None or change.after is None
        copy = None if is_ours_alone or change.is_private else _copy(file)
        if change.after is None:
            file.unlink()
        else:
            _replace(file, change.after)
    except OSError as exc:
        raise StorageError(f"{change.file} could not be written.", str(exc)) from exc
    return copy


def _copy(file: Path) -> Path:
    copy = file.with_name(f"{file.name}.{datetime.now():%Y%m%d-%H%M%S}.bak")
    if not copy.exists():
        shutil.copy2(file, copy)
    return copy


def _replace(file: Path, text: str) -> None:
    """A client that reads at this moment sees the old text or the new one, never a part."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as written:
            written.write(text.encode("utf-8"))
        if file.exists():
            shutil.copymode(file, name)
        os.replace(name, file)
    except BaseException:
        os.unlink(name)
        raise
