"""Recognise a renamed or moved folder: the project whose folder is gone and whose files are here."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

from orchestrator.state import Run
from registry.storage.conversations.facets import known_names
from registry.storage.conversations.messages import messages_of
from registry.storage.conversations.project_moves import channels_of_project
from registry.storage.database import ReadTransaction

SESSIONS, MESSAGES = 5, 300
"""Sessions of a project, and last messages of each, that are read to learn its files."""
LEAST_FILES = 2
SHARE = 0.5
"""Share of those files that must exist in the folder: some are deleted as a project goes on."""


async def moved_from(run: Run, folder: str) -> dict[str, Any]:
    """Which project's folder this one was, as `moved_from`; empty where nothing tells so.

    For who is on this machine alone: it looks into its folders.
    """
    if run.recorder.token is not None or not PurePath(folder).is_absolute():
        return {}
    found = await run.registry.read(lambda tx: _earlier(tx, folder))
    return {"moved_from": found} if found else {}


def _earlier(tx: ReadTransaction, folder: str) -> dict[str, Any] | None:
    for _, path in sorted(known_names(tx).projects) if Path(folder).is_dir() else ():
        if not (_is_alike(path, folder) and not Path(path).exists()):
            continue
        rows = [row for row in channels_of_project(tx, path) if not row.deleted]
        read = (messages_of(tx, row.number, limit=MESSAGES) for row in rows[-SESSIONS:])
        files = files_below(path, (message.payload for messages in read for message in messages))
        if is_same_project(files, folder):
            command = f"ctxr project move {shlex.quote(path)} {shlex.quote(folder)}"
            return {"path": path, "count": len(rows), "command": command}
    return None


def _is_alike(path: str, folder: str) -> bool:
    """Renamed, it stands where it stood; moved, it is called as it was."""
    one, other = PurePath(path), PurePath(folder)
    return one != other and (one.parent == other.parent or one.name == other.name)


def files_below(path: str, payloads: Iterable[Mapping[str, Any]]) -> set[str]:
    """The files of a project that were worked on in messages, from its folder on."""
    begin = path.rstrip("/") + "/"
    return {name.removeprefix(begin) for payload in payloads for name in _names_in(payload) if name.startswith(begin)}


def _names_in(payload: Mapping[str, Any]) -> Iterator[str]:
    for holder in (payload.get("context"), (payload.get("tool") or {}).get("params")):
        if isinstance(holder, Mapping):
            yield from (value for value in holder.values() if isinstance(value, str))


def is_same_project(files: Collection[str], folder: str) -> bool:
    """Return True if most of these files are in the folder."""
    here = sum(_is_file(Path(folder) / name) for name in files)
    return here >= LEAST_FILES and here >= SHARE * len(files)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a text that is no name at all
        return False
