"""Read the chats of Gemini CLI and of its sub-agents, in both forms in which it has written them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

from sources.base import FoundSession
from sources.clients import GEMINI_CLI
from sources.gemini.chat import GeminiChat
from sources.kit import drafts
from sources.kit.files import File, folders_in, small_text, store_entries
from sources.kit.jsonl import Damage
from sources.kit.loose_json import mapping, read_json, string, value_at
from sources.kit.reader import FileReader, ParseFile, SessionFile, json_document, json_lines


class GeminiCli(FileReader):
    """Reads `tmp/<slot>/chats/` and the notes of which project a slot is. Secrets lie beside `tmp`."""

    client = GEMINI_CLI
    patterns = tuple(f"tmp/*/chats/{form}" for form in ("*.json", "*.jsonl", "*/*.json", "*/*.jsonl"))

    def session_file(self, file: File) -> SessionFile:
        """Return the chat, whose key is the same in both forms; that of a sub-agent lies one folder deeper."""
        key = os.path.splitext(file.path)[0]
        *_, slot, chats, folder, session_id = key.split(os.sep)
        if chats == "chats":
            return SessionFile(file, key, session_id, folder, slot)
        return SessionFile(file, key, session_id, None, chats)

    def is_better(self, file: SessionFile, than: SessionFile) -> bool:
        """Return True for the form that was written last; of two written at the same time for the journal."""
        return (file.file.modified, file.path.endswith(".jsonl")) > (than.file.modified, than.path.endswith(".jsonl"))

    def parser(self, store: Path) -> ParseFile:
        projects = cache(lambda: _projects(store))
        return lambda file: [_parse(file, projects())]


def _projects(store: Path) -> dict[str, str]:
    """Return the projects by the names of their slots, as noted in these or in the list, and by their hashes."""
    listed = mapping(value_at(read_json(small_text(store / "projects.json")), "projects"))
    noted = {
        os.path.basename(slot): small_text(os.path.join(slot, ".project_root")).strip()
        for slot in folders_in(store_entries(store / "tmp"))
    }
    by_hash = {sha256(path.encode("utf-8", "replace")).hexdigest(): path for path in (*listed, *noted.values())}
    by_name = {string(name): path for path, name in listed.items()}
    return by_hash | by_name | {slot: path for slot, path in noted.items() if path}


def _parse(file: SessionFile, projects: Mapping[str, str]) -> FoundSession:
    damage, chat = Damage(), GeminiChat(file.session_id, agent_of=file.agent_of)
    is_journal = file.path.endswith(".jsonl")
    for record in json_lines(file.path, damage) if is_journal else filter(None, [json_document(file.path, damage)]):
        chat.read(record)
    chat.project = projects.get(file.folder) or projects.get(string(chat.header.get("projectHash")))
    return file.found(chat.session(), damage.skipped() + chat.skipped(), drafts.moment(chat.header.get("lastUpdated")))
