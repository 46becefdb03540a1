"""What the other files of a project folder say about a transcript: whose copy it is, and its summary."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from sources.claude_code.tree import fork_origin, stamps_of
from sources.kit.files import File, entries, look_at
from sources.kit.jsonl import Damage, Record, read_lines, records_of, string

_HEAD_LINES = 200
_LONGEST_HEAD_LINE = 2**20


@dataclass(slots=True)
class _Folder:
    """The beginnings of the transcripts in a folder."""

    starts: dict[str, str] = field(default_factory=dict)
    """Path to the uuid of the first message, for those that name no origin themselves."""
    origins: dict[str, dict[str, str]] = field(default_factory=dict)
    """Uuid of a first message to the origins among the sessions that begin with it."""
    summaries: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Neighbours:
    """Reads the beginnings of a folder's files once, when the first changed one among them is read."""

    _folders: dict[str, _Folder] = field(default_factory=dict)

    def summaries(self, path: str) -> dict[str, str]:
        """Leaf uuid to summary, for conversations in any file of the folder."""
        return self._folder(path).summaries

    def origin(self, path: str) -> str | None:
        """The session that this one is a copy and continuation of, where it does not say so itself."""
        folder = self._folder(path)
        start = folder.starts.get(path)
        if start is None:
            return None
        if start not in folder.origins:
            folder.origins[start] = _origins([twin for twin, other in folder.starts.items() if other == start])
        return folder.origins[start].get(Path(path).stem)

    def _folder(self, path: str) -> _Folder:
        folder = os.path.dirname(path)
        if folder not in self._folders:
            self._folders[folder] = _beginnings(folder)
        return self._folders[folder]


def _beginnings(folder: str) -> _Folder:
    found = _Folder()
    for entry in entries(folder):
        is_session = entry.name.endswith(".jsonl") and not entry.name.startswith("agent-")
        if is_session and isinstance(look_at(entry), File):
            for record in _head(entry.path):
                if record.get("type") == "summary":
                    found.summaries[string(record.get("leafUuid"))] = string(record.get("summary"))
                elif uuids := stamps_of([record]):
                    if "forkedFrom" not in record:
                        found.starts[entry.path] = next(iter(uuids))
                    break
    return found


def _head(path: str) -> Iterator[Record]:
    return islice(_records(path), _HEAD_LINES)


def _origins(twins: list[str]) -> dict[str, str]:
    """Session to origin among files that begin alike. They share most of their uuids, so the memory for them too."""
    if len(twins) < 2:
        return {}
    known: dict[str, str] = {}
    stamps = {Path(twin).stem: stamps_of(_records(twin), known) for twin in twins}
    return {name: origin for name in stamps if (origin := fork_origin(name, stamps))}


def _records(path: str) -> Iterator[Record]:
    """The records of a file; what cannot be read is told where the file itself is read."""
    try:
        with open(path, "rb") as file:
            yield from records_of(read_lines(file, _LONGEST_HEAD_LINE), Damage())
    except OSError:
        return
