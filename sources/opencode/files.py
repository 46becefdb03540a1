"""Read the sessions that OpenCode kept before its database, with a file for each part."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from registry.domain import Session
from sources.base import FoundSession, Skipped
from sources.kit import drafts
from sources.kit.files import File, document, entries, status_of, system_reason
from sources.kit.loose_json import Record, number, read_json, string, value_at
from sources.kit.reader import FileReader, ParseFile, SessionFile, found_session
from sources.opencode.client import OPENCODE
from sources.opencode.messages import OpenCodeDialogue


class OpenCodeFiles(FileReader):
    """Reads the sessions below `storage`, or below `project` as in the first versions.

    The client writes here no more: a session has changed when its own file or the list of its messages has.
    `migrated`: returns the sessions that a database holds, in which they go on.
    """

    client = OPENCODE
    patterns = ("session/*/*.json", "*/storage/session/info/*.json")

    def __init__(self, migrated: Callable[[], set[str]]) -> None:
        self._migrated = migrated

    def session_file(self, file: File) -> SessionFile:
        """Return the session's file, whose name is its id; `folder` is that of its messages."""
        path = Path(file.path)
        root = path.parents[1] if path.parent.name == "info" else path.parents[2]
        messages = str(root / "message" / path.stem)
        return SessionFile(file, path.stem, path.stem, folder=messages, note_status=f"+{status_of(messages)}")

    def parser(self, store: Path) -> ParseFile:
        return lambda file: [self._parse(file)]

    def _parse(self, file: SessionFile) -> FoundSession:
        if file.session_id in self._migrated():  # noted, so that it is not looked at again
            return FoundSession(file.key, file.fingerprint, Session(file.session_id, ()))
        value = read_json(document(file.path))
        if not isinstance(value, dict):
            skipped = (Skipped(file.path, "not a JSON object"),)
            return FoundSession(file.key, file.fingerprint, Session(file.session_id, ()), skipped)
        dialogue, damage = OpenCodeDialogue(described={**value, "id": file.session_id}), Counter[str]()
        messages = _records(file.folder, damage)
        for message in sorted(messages, key=lambda each: number(value_at(each, "time", "created")) or 0):
            dialogue.read(message, _records(_parts_folder(file, string(message["id"])), damage))
        found = found_dialogue(dialogue, file.fingerprint, damage)
        return replace(found, session=drafts.dated(found.session, file.file.modified_at))


def found_dialogue(dialogue: OpenCodeDialogue, fingerprint: str, damage: Counter[str]) -> FoundSession:
    """Return the session of a dialogue with what was passed over in it."""
    session, name = dialogue.session(), f"session {dialogue.session_id}"
    damaged = (Skipped(f"{count} x message or part of {name}", why) for why, count in damage.items() if count)
    return found_session(dialogue.session_id, fingerprint, session, (*damaged, *dialogue.skipped()), name)


def _parts_folder(file: SessionFile, message_id: str) -> str:
    """Return the folder of a message's parts; in the first versions it lies in a folder of the session."""
    root, own = os.path.dirname(os.path.dirname(file.folder)), os.path.basename(file.folder)
    is_first = os.path.basename(os.path.dirname(file.path)) == "info"
    return os.path.join(root, "part", own, message_id) if is_first else os.path.join(root, "part", message_id)


def _records(folder: str, damage: Counter[str]) -> Iterator[Record]:
    """Yield the records in a folder in order: their names begin with a time. Count those that cannot be read by why."""
    for name in sorted(entry.name for entry in entries(folder) if entry.name.endswith(".json")):
        try:
            value = read_json(document(os.path.join(folder, name)))
        except OSError as exc:
            damage[system_reason(exc)] += 1
            continue
        if isinstance(value, dict):
            yield {**value, "id": name.removesuffix(".json")}
        else:
            damage["not a JSON object"] += 1
