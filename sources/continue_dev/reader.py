"""Continue: the sessions of its editors' extensions and its command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from registry.domain import Session
from sources.base import FoundSession, Skipped
from sources.continue_dev.client import CONTINUE
from sources.continue_dev.session import Talk
from sources.kit import drafts
from sources.kit.files import File, document, look_at, small_text, store_entries
from sources.kit.jsonl import Record, items, mapping, string
from sources.kit.loose_json import read_json
from sources.kit.reader import FileReader, ParseFile, SessionFile

_LIST = "sessions.json"


class Continue(FileReader):
    """Reads `sessions/`. Keys and settings lie beside it."""

    name = CONTINUE.source
    variables = ("CTXR_CONTINUE_DIR", "CONTINUE_GLOBAL_DIR")
    home = (".continue",)
    folders = ("sessions",)

    def files(self, store: Path) -> Iterator[SessionFile | Skipped]:
        """List the sessions; the list of them lies in the same folder."""
        for entry in store_entries(store / "sessions"):
            if entry.name.endswith(".json") and entry.name != _LIST:
                file, session_id = look_at(entry), entry.name.removesuffix(".json")
                yield SessionFile(file, file.path, session_id) if isinstance(file, File) else file

    def parser(self, store: Path) -> ParseFile:
        """Return the parser of one session."""
        return lambda file: [_parse(file, store / "sessions")]


def _parse(file: SessionFile, folder: Path) -> FoundSession:
    described = read_json(document(file.file.path))
    if not isinstance(described, dict):
        skipped = (Skipped(file.file.path, "not a JSON object"),)
        return FoundSession(file.key, file.fingerprint, Session(file.session_id, ()), skipped)
    talk = Talk(described, file.session_id)
    for item in items(described.get("history")):
        talk.read(mapping(item))
    created = drafts.moment(_created(_listed(folder, file.session_id)))
    return file.found(talk.session(), talk.skipped(), created)


def _listed(folder: Path, name: str) -> Record:
    """What the list beside the sessions tells of one: only it has a time."""
    listed = map(mapping, items(read_json(small_text(folder / _LIST))))
    return next((each for each in listed if string(each.get("sessionId")) == name), {})


def _created(listed: Record) -> object:
    written = listed.get("dateCreated")
    return int(written) if isinstance(written, str) and written.isdecimal() and len(written) < 16 else written
