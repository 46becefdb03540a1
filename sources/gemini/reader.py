"""Gemini CLI: its chats, those of its sub-agents, and the two ways it has written them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from sources.base import FoundSession, Places, Skipped
from sources.gemini.chat import Chat
from sources.gemini.client import GEMINI_CLI
from sources.kit import drafts
from sources.kit.files import File, document, entries, folders_in, look_at, small_text, store_entries, why_not
from sources.kit.jsonl import Damage, Record, mapping, string
from sources.kit.loose_json import read_json
from sources.kit.reader import FileReader, ParseFile, SessionFile, json_lines

_DOCUMENT, _JOURNAL = ".json", ".jsonl"


class GeminiCli(FileReader):
    """Reads `tmp/<slot>/chats/` and the notes of which project a slot is. Secrets lie beside `tmp`."""

    name = GEMINI_CLI.source
    folders = ("tmp",)

    def find(self, places: Places) -> Iterator[Path]:
        """Yield the client's folder if it holds chats."""
        named = places.environment.get("CTXR_GEMINI_CLI_DIR")
        yield from self.with_sessions(
            [Path(named).expanduser() if named else places.folder("GEMINI_CLI_HOME") / ".gemini"]
        )

    def files(self, store: Path) -> Iterator[SessionFile | Skipped]:
        """List the chats, each in its newest form."""
        return _newest_forms(list(folders_in(store_entries(store / "tmp"))))

    def parser(self, store: Path) -> ParseFile:
        """Return the parser of one chat."""
        projects = cache(lambda: _Projects(store, list(folders_in(store_entries(store / "tmp")))))
        return lambda file: [_parse(file, projects())]


# What is there


def _newest_forms(slots: Sequence[str]) -> Iterator[SessionFile | Skipped]:
    newest: dict[str, SessionFile] = {}
    for kept in (kept for slot in slots for kept in _guarded(slot)):
        if isinstance(kept, Skipped):
            yield kept
        elif kept.key not in newest or _rank(kept) > _rank(newest[kept.key]):
            newest[kept.key] = kept
    yield from newest.values()


def _guarded(slot: str) -> Iterator[SessionFile | Skipped]:
    try:
        yield from _chats(slot, os.path.join(slot, "chats"))
    except OSError as exc:
        yield Skipped(slot, why_not(exc))


def _chats(slot: str, folder: str, agent_of: str | None = None) -> Iterator[SessionFile | Skipped]:
    for entry in entries(folder):
        if entry.name.endswith((_DOCUMENT, _JOURNAL)):
            file = look_at(entry)
            key = entry.path.rpartition(".")[0]  # the same for both forms: one may follow the other
            session_id = os.path.basename(key)
            yield SessionFile(file, key, session_id, agent_of, slot) if isinstance(file, File) else file
        elif agent_of is None and entry.is_dir():
            yield from _chats(slot, entry.path, entry.name)


def _rank(kept: SessionFile) -> tuple[int, bool]:
    """If both the old document and the newer journal exist, use the more recent one."""
    return kept.file.modified, kept.file.path.endswith(_JOURNAL)


class _Projects:
    """The projects of the slots: what their notes say, else what the hash in their names is of."""

    def __init__(self, store: Path, slots: list[str]) -> None:
        listed = mapping(mapping(read_json(small_text(store / "projects.json"))).get("projects"))
        self._by_slot = {
            os.path.basename(slot): small_text(os.path.join(slot, ".project_root")).strip() for slot in slots
        }
        self._by_name = {string(name): path for path, name in listed.items()}
        self._by_hash = {
            sha256(path.encode("utf-8", "replace")).hexdigest(): path for path in [*listed, *self._by_slot.values()]
        }

    def of(self, slot: str, project_hash: str) -> str | None:
        """The path of a slot's project, if anything tells it."""
        noted = self._by_slot.get(slot) or self._by_name.get(slot)
        return noted or self._by_hash.get(slot) or self._by_hash.get(project_hash) or None


# What it says


def _parse(file: SessionFile, projects: _Projects) -> FoundSession:
    damage, path = Damage(), file.file.path
    chat = Chat(file.session_id, file.agent_of)
    for record in json_lines(path, damage) if path.endswith(_JOURNAL) else _document(path, damage):
        chat.read(record)
    chat.project = projects.of(os.path.basename(file.folder), string(chat.header.get("projectHash")))
    return file.found(chat.session(), damage.skipped() + chat.skipped(), drafts.moment(chat.header.get("lastUpdated")))


def _document(path: str, damage: Damage) -> Iterator[Record]:
    content = document(path)
    value = read_json(content)
    if isinstance(value, dict):
        yield value
    elif content:
        damage.note(0, "not a JSON object")
