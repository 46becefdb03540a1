"""Gemini CLI: its chats, those of its sub-agents, and the two ways it has written them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from sources.base import FoundSession, Places, Skipped
from sources.gemini.chat import Chat
from sources.gemini.client import GEMINI_CLI
from sources.kit import drafts
from sources.kit.files import (
    File,
    document,
    entries,
    folders_in,
    look_at,
    read_changed,
    small_text,
    store_entries,
    why_not,
)
from sources.kit.jsonl import Damage, Record, mapping, read_lines, records_of, string
from sources.kit.loose_json import read_json

_SETTING = "CTXR_GEMINI_CLI_DIR"
_DOCUMENT, _JOURNAL = ".json", ".jsonl"


@dataclass(frozen=True, slots=True)
class _Kept:
    """A chat in a store; `agent_of` is the session whose folder a sub-agent's chat lies in."""

    file: File
    slot: str
    agent_of: str | None

    @property
    def key(self) -> str:
        """The same for both forms: one may follow the other."""
        return self.file.path.rpartition(".")[0]


class GeminiCli:
    """Reads `tmp/<slot>/chats/` and the notes of which project a slot is. Secrets lie beside `tmp`."""

    name = GEMINI_CLI.source

    def find(self, places: Places) -> Iterator[Path]:
        """The client's folder, if it holds chats."""
        root = places.folder("GEMINI_CLI_HOME") / ".gemini"
        if named := places.environment.get(_SETTING):
            root = Path(named).expanduser()
        if os.path.isdir(root / "tmp"):
            yield root

    def stamp(self, store: Path) -> str:
        """Each file's own state is as cheap to look at: there is no stamp of the whole."""
        return ""

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """The changed chats, newest first. A file without a conversation is found with no messages, so that
        it is not read again, and says so in its `skipped`. Raises StorageError."""
        slots = list(folders_in(store_entries(store / "tmp")))
        projects = cache(lambda: _Projects(store, slots))
        yield from read_changed(
            _newest_forms(slots),
            lambda kept: seen.get(kept.key) != kept.file.fingerprint,
            lambda kept: [_read(kept, projects())],
        )


# What is there


def _newest_forms(slots: Sequence[str]) -> Iterator[_Kept | Skipped]:
    newest: dict[str, _Kept] = {}
    for kept in (kept for slot in slots for kept in _guarded(slot)):
        if isinstance(kept, Skipped):
            yield kept
        elif kept.key not in newest or _rank(kept) > _rank(newest[kept.key]):
            newest[kept.key] = kept
    yield from newest.values()


def _guarded(slot: str) -> Iterator[_Kept | Skipped]:
    try:
        yield from _chats(slot, os.path.join(slot, "chats"))
    except OSError as exc:
        yield Skipped(slot, why_not(exc))


def _chats(slot: str, folder: str, agent_of: str | None = None) -> Iterator[_Kept | Skipped]:
    for entry in entries(folder):
        if entry.name.endswith((_DOCUMENT, _JOURNAL)):
            file = look_at(entry)
            yield _Kept(file, slot, agent_of) if isinstance(file, File) else file
        elif agent_of is None and entry.is_dir():
            yield from _chats(slot, entry.path, entry.name)


def _rank(kept: _Kept) -> tuple[int, bool]:
    """Of a document and the journal that took its place, the newer counts."""
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


def _read(kept: _Kept, projects: _Projects) -> FoundSession:
    damage = Damage()
    path = kept.file.path
    chat = Chat(os.path.basename(kept.key), kept.agent_of)
    for record in _journal(path, damage) if path.endswith(_JOURNAL) else _document(path, damage):
        chat.read(record)
    chat.project = projects.of(os.path.basename(kept.slot), string(chat.header.get("projectHash")))
    updated = drafts.moment(chat.header.get("lastUpdated"))
    session = drafts.dated(chat.session(), updated, kept.file.modified_at)
    skipped = damage.skipped() + chat.skipped()
    if not session.messages:
        skipped += (Skipped(path, "no conversation in it"),)
    return FoundSession(kept.key, kept.file.fingerprint, session, skipped)


def _journal(path: str, damage: Damage) -> Iterator[Record]:
    with open(path, "rb") as file:
        yield from records_of(read_lines(file), damage)


def _document(path: str, damage: Damage) -> Iterator[Record]:
    content = document(path)
    value = read_json(content)
    if isinstance(value, dict):
        yield value
    elif content:
        damage.note(0, "not a JSON object")
