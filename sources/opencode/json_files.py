"""Read the sessions of OpenCode before version 1.2: a JSON file for each session, message and part."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from sources.base import FoundSession, Paths, Skipped
from sources.clients import OPENCODE
from sources.kit.files import File, digest, entries, files_below, fingerprint_at, read_document
from sources.kit.loose_json import Record, compact, mapping, read_json, string, value_at
from sources.kit.reader import FileReader, SessionFile
from sources.opencode.reader import DAMAGED, OpenCodeDialogue, roots_of


class OpenCodeFiles(FileReader):
    """Reads `storage/`. Newer versions import it into their database, and leave it behind."""

    client = OPENCODE
    is_rare = True
    patterns = ("storage/session/*/*.json",)
    backup_extras = ("storage/message/*/*.json", "storage/part/*/*.json")

    def roots(self, paths: Paths) -> Iterable[Path]:
        """Return the folders without a database."""
        return [root for root in roots_of(OPENCODE.source, paths) if not any(root.glob(f"{OPENCODE.source}*.db"))]

    def watched(self, store: Path) -> list[Path]:
        return [store / "storage"]

    def session_file(self, file: File) -> SessionFile:
        """Return the session; its messages are part of the fingerprint, of which the last one may still change."""
        path = Path(file.path)
        messages = str(path.parents[2] / "message" / path.stem)
        names = sorted(entry.name for entry in entries(messages))
        last = fingerprint_at(os.path.join(messages, names[-1])) if names else ""
        return SessionFile(file, file.path, path.stem, folder=messages, note_status=f"+{digest(names, last)}")

    def parse(self, file: SessionFile) -> Iterator[FoundSession]:
        session = mapping(read_json(read_document(file.path)))
        row = {  # as in the database of newer versions
            "id": file.session_id,
            "directory": session.get("directory"),
            "title": session.get("title"),
            "parent_id": session.get("parentID"),
            "revert": compact(session.get("revert")),
            "time_created": value_at(session, "time", "created"),
        }
        dialogue = OpenCodeDialogue(described=row)
        for message in _documents(file.folder, dialogue.skips):
            parts = Path(file.folder).parents[1] / "part" / string(message.get("id"))
            dialogue.read(message, _documents(str(parts), dialogue.skips))
        yield file.found(dialogue.session(), dialogue.skipped())


def _documents(folder: str, skips: Counter[Skipped]) -> Iterator[Record]:
    """Yield the messages or parts in a folder in order: their ids are their names, and increase."""
    for file in sorted(files_below(folder, "*.json"), key=lambda each: each.path if isinstance(each, File) else ""):
        record = read_json(read_document(file.path)) if isinstance(file, File) else None
        if isinstance(record, dict):
            yield record
        else:
            skips[Skipped(DAMAGED.what, file.why) if isinstance(file, Skipped) else DAMAGED] += 1
