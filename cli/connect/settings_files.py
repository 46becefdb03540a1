"""Change other programs' settings files: show the change, then replace the file in one step.

A copy of the old file is kept in the registry's folder, unless it may hold keys and tokens.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from difflib import unified_diff
from pathlib import Path

from orchestrator.sync.spool import registry_home
from registry.errors import InvalidRequest, StorageError


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A file's text before and after; None where there is no file."""

    file: Path
    before: str | None
    after: str | None
    is_private: bool = False  # no copy of it may be kept
    original: str | None = None  # the text before an installation, if the file then holds only our entry

    def diff(self) -> Iterator[str]:
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
    """Return the text with its original line ends, None if there is no file; StorageError if it cannot be read."""
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as exc:
        raise StorageError(f"{file} could not be read.", str(exc)) from exc


def apply(change: Rewrite) -> Path | None:
    """Write the change and return the copy of the old file, if one was made; StorageError if it cannot be written."""
    if read(change.file) != change.before:
        raise StorageError(f"{change.file} was changed by another program.", "Nothing was written. Try again.")
    file = change.file.resolve()  # dotfiles are often links
    copy = None
    try:
        if change.before is not None and change.after is not None and not change.is_private:
            copy = Path(registry_home(), "before", f"{file.parent.name}-{file.name}.{datetime.now():%Y%m%d-%H%M%S}")
            replace_file(copy, change.before)
        if change.after is None:
            file.unlink()
            _remove_made_folders(file)
        else:
            missing = [str(folder) for folder in file.parents if not folder.exists()]
            replace_file(file, change.after)
            update_record(dict.fromkeys(missing, ""))
    except OSError as exc:
        raise StorageError(f"{change.file} could not be written.", str(exc)) from exc
    return copy


def replace_file(file: Path, text: str) -> None:
    """Replace a file atomically: a program that reads it at this moment sees the old text or the new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as written:
            written.write(text.encode("utf-8", errors="surrogateescape"))
        if file.exists():
            shutil.copymode(file, name)
        os.replace(name, file)
    except BaseException:
        os.unlink(name)
        raise


def _remove_made_folders(file: Path) -> None:
    """Remove the empty folders above a removed file that the installation made."""
    made = original_texts()
    for folder in file.parents:
        if str(folder) not in made or any(folder.iterdir()):
            break
        folder.rmdir()
        update_record({str(folder): None})


def update_record(news: Mapping[str, str | None]) -> None:
    """Store what uninstalling restores: the text of a file, or "" for a folder to remove; None deletes an entry."""
    stored = original_texts()
    texts = {path: text for path, text in {**stored, **news}.items() if text is not None}
    record = Path(registry_home(), "connected.json")
    with suppress(OSError):  # without the record, uninstalling removes the file
        if texts and texts != stored:
            replace_file(record, json.dumps(texts))
        elif not texts:
            record.unlink(missing_ok=True)


def original_texts() -> dict[str, str]:
    """Return the text of each settings file that was empty before the installation, such as `{}`; "" for a folder."""
    try:
        stored = json.loads(Path(registry_home(), "connected.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stored if isinstance(stored, dict) else {}
