"""Continue: the sessions of its editors' extensions and its command line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from registry.domain import Session
from sources.base import FoundSession, Places, Skipped
from sources.continue_dev.client import CONTINUE
from sources.continue_dev.session import Talk
from sources.kit import drafts
from sources.kit.files import File, document, look_at, read_changed, small_text, store_entries
from sources.kit.jsonl import Record, items, mapping, string
from sources.kit.loose_json import read_json

_SETTINGS = ("CTXR_CONTINUE_DIR", "CONTINUE_GLOBAL_DIR")
_LIST = "sessions.json"


@dataclass(frozen=True, slots=True)
class _Kept:
    file: File


class Continue:
    """Reads `sessions/`. Keys and settings lie beside it."""

    name = CONTINUE.source

    def find(self, places: Places) -> Iterator[Path]:
        """The client's folder, if it holds sessions."""
        root = places.folder(_SETTINGS, ".continue")
        if os.path.isdir(root / "sessions"):
            yield root

    def stamp(self, store: Path) -> str:
        """Each file's own state is as cheap to look at: there is no stamp of the whole."""
        return ""

    def watched(self, store: Path) -> Iterable[Path]:
        """Only the sessions; beside them lie indexes."""
        return [store / "sessions"]

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """The changed sessions, newest first. A file without a conversation is found with no messages, so that it is
        not read again, and says so in its `skipped`. Raises StorageError."""
        folder = store / "sessions"
        yield from read_changed(
            _files(folder),
            lambda kept: seen.get(kept.file.path) != kept.file.fingerprint,
            lambda kept: [_read(kept.file, folder)],
        )


def _files(folder: Path) -> Iterator[_Kept | Skipped]:
    for entry in store_entries(folder):
        if entry.name.endswith(".json") and entry.name != _LIST:
            file = look_at(entry)
            yield _Kept(file) if isinstance(file, File) else file


def _read(file: File, folder: Path) -> FoundSession:
    name = os.path.basename(file.path).removesuffix(".json")
    described = read_json(document(file.path))
    if not isinstance(described, dict):
        return FoundSession(file.path, file.fingerprint, Session(name, ()), (Skipped(file.path, "not a JSON object"),))
    talk = Talk(described, name)
    for item in items(described.get("history")):
        talk.read(mapping(item))
    session = drafts.dated(talk.session(), drafts.moment(_created(_listed(folder, name))), file.modified_at)
    skipped = talk.skipped()
    if not session.messages:
        skipped += (Skipped(file.path, "no conversation in it"),)
    return FoundSession(file.path, file.fingerprint, session, skipped)


def _listed(folder: Path, name: str) -> Record:
    """What the list beside the sessions tells of one: only it has a time."""
    listed = map(mapping, items(read_json(small_text(folder / _LIST))))
    return next((each for each in listed if string(each.get("sessionId")) == name), {})


def _created(listed: Record) -> object:
    written = listed.get("dateCreated")
    return int(written) if isinstance(written, str) and written.isdecimal() and len(written) < 16 else written
