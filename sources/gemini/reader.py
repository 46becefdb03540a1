"""Read the chats of Gemini CLI and of its sub-agents, in both forms in which it has written them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

from sources.base import FoundSession, Skipped
from sources.gemini.chat import GeminiChat
from sources.gemini.client import GEMINI_CLI
from sources.kit import drafts
from sources.kit.files import File, document, folders_in, small_text, store_entries
from sources.kit.jsonl import Damage
from sources.kit.loose_json import Record, mapping, read_json, string
from sources.kit.reader import FileReader, ParseFile, SessionFile, json_lines


class GeminiCli(FileReader):
    """Reads `tmp/<slot>/chats/` and the notes of which project a slot is. Secrets lie beside `tmp`."""

    client = GEMINI_CLI
    patterns = tuple(f"tmp/*/chats/{form}" for form in ("*.json", "*.jsonl", "*/*.json", "*/*.jsonl"))

    def files(self, store: Path) -> Iterator[SessionFile | Skipped]:
        """List the chats, each in its newest form."""
        newest: dict[str, SessionFile] = {}
        for file in FileReader.files(self, store):
            if isinstance(file, Skipped):
                yield file
            elif file.key not in newest or _rank(file) > _rank(newest[file.key]):
                newest[file.key] = file
        yield from newest.values()

    def session_file(self, file: File) -> SessionFile:
        """Return the chat, whose key is the same in both forms; that of a sub-agent lies one folder deeper."""
        key = os.path.splitext(file.path)[0]
        *_, slot, chats, folder, session_id = key.split(os.sep)
        if chats == "chats":
            return SessionFile(file, key, session_id, folder, slot)
        return SessionFile(file, key, session_id, None, chats)

    def parser(self, store: Path) -> ParseFile:
        projects = cache(lambda: _Projects(store))
        return lambda file: [_parse(file, projects())]


def _rank(file: SessionFile) -> tuple[int, bool]:
    """Rank the forms of a chat: the most recent first, of two written at the same time the journal."""
    return file.file.modified, file.path.endswith(".jsonl")


class _Projects:
    """The projects of the slots, by their notes or by the hash in their names."""

    def __init__(self, store: Path) -> None:
        slots = [*folders_in(store_entries(store / "tmp"))]
        listed = mapping(mapping(read_json(small_text(store / "projects.json"))).get("projects"))
        self._by_slot = {
            os.path.basename(slot): small_text(os.path.join(slot, ".project_root")).strip() for slot in slots
        }
        self._by_name = {string(name): path for path, name in listed.items()}
        self._by_hash = {
            sha256(path.encode("utf-8", "replace")).hexdigest(): path for path in [*listed, *self._by_slot.values()]
        }

    def of(self, slot: str, project_hash: str) -> str | None:
        """Return the path of a slot's project, if anything tells it."""
        noted = self._by_slot.get(slot) or self._by_name.get(slot)
        return noted or self._by_hash.get(slot) or self._by_hash.get(project_hash) or None


def _parse(file: SessionFile, projects: _Projects) -> FoundSession:
    damage, chat = Damage(), GeminiChat(file.session_id, agent_of=file.agent_of)
    for record in json_lines(file.path, damage) if file.path.endswith(".jsonl") else _document(file.path, damage):
        chat.read(record)
    chat.project = projects.of(file.folder, string(chat.header.get("projectHash")))
    return file.found(chat.session(), damage.skipped() + chat.skipped(), drafts.moment(chat.header.get("lastUpdated")))


def _document(path: str, damage: Damage) -> Iterator[Record]:
    content = document(path)
    value = read_json(content)
    if isinstance(value, dict):
        yield value
    elif content:
        damage.note(0, "not a JSON object")
