"""The base of readers whose client keeps each session in a file of its own."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from registry.domain import Session
from sources.base import FoundSession, Places, Skipped
from sources.kit import drafts
from sources.kit.files import File, document, read_changed
from sources.kit.jsonl import Damage, Record, mapping, read_lines, records_of
from sources.kit.loose_json import read_json


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A session's file in a store.

    `key`: identifies the session in the sync. `agent_of`: the parent session of a sub-agent's file.
    `folder`: the folder that names the project. `note_status`: added to the fingerprint where a second file counts.
    """

    file: File
    key: str
    session_id: str
    agent_of: str | None = None
    folder: str = ""
    note_status: str = ""

    @property
    def fingerprint(self) -> str:
        """Change whenever the session may have changed."""
        return self.file.fingerprint + self.note_status

    def found(self, session: Session, skipped: tuple[Skipped, ...], *times: datetime | None) -> FoundSession:
        """Return the session, dated by `times` or the file; an empty one is returned too, so it is not read again."""
        session = drafts.dated(session, *times, self.file.modified_at)
        if not session.messages:
            skipped += (Skipped(self.file.path, "no conversation in it"),)
        return FoundSession(self.key, self.fingerprint, session, skipped)


ParseFile = Callable[[SessionFile], Iterable[FoundSession]]


class FileReader(ABC):
    """Reads the sessions below `folders` of a client's home folder."""

    name: str
    variables: ClassVar[tuple[str, ...]]
    home: ClassVar[tuple[str, ...]]
    folders: ClassVar[tuple[str, ...]]

    def find(self, places: Places) -> Iterator[Path]:
        """Yield the client's home folder if it holds sessions."""
        yield from self.with_sessions([places.folder(self.variables, *self.home)])

    def with_sessions(self, roots: Iterable[Path]) -> Iterator[Path]:
        """Yield the roots that have one of the folders."""
        return (root for root in roots if any(os.path.isdir(root / folder) for folder in self.folders))

    def stamp(self, store: Path) -> str:
        """Return no stamp: looking at each file's status is as cheap."""
        return ""

    def watched(self, store: Path) -> Iterable[Path]:
        """Return the folders of sessions only: caches, logs and secrets lie beside them."""
        return [store / folder for folder in self.folders]

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """Yield the changed sessions, newest first. Raises StorageError."""
        yield from read_changed(
            self.files(store), lambda file: seen.get(file.key) != file.fingerprint, self.parser(store)
        )

    @abstractmethod
    def files(self, store: Path) -> Iterable[SessionFile | Skipped]:
        """List the session files without opening them. Raises StorageError."""

    @abstractmethod
    def parser(self, store: Path) -> ParseFile:
        """Return the function that parses one file; it may share what it reads beside the files."""


def json_lines(path: str, damage: Damage) -> Iterator[Record]:
    """Yield the JSON objects of a file, one line in memory at a time. Raises OSError."""
    with open(path, "rb") as file:
        yield from records_of(read_lines(file), damage)


def json_document(path: str, damage: Damage) -> Record:
    """Return the JSON object that a file holds, an empty one if it holds none. Raises OSError."""
    value = read_json(document(path))
    if not isinstance(value, dict):
        damage.note(0, "not a JSON object")
    return mapping(value)
