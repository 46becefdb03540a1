"""Find the files of Cursor's agent by their status alone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import md5
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import NamedTuple

from sources.base import Skipped
from sources.kit.files import File, file_at, files_below, small_text, store_entries
from sources.kit.loose_json import Record, mapping, read_json, string
from sources.kit.sqlite_store import stamp

DATABASE, DESCRIPTION = "store.db", "meta.json"
FOLDERS = ("chats", "acp-sessions", "agent-sessions", "conversations", "sessions", "projects")
_CHATS = (
    *("chats/*", "chats/*/*", "acp-sessions/*"),
    *(f"{old}/{chat}" for old in ("agent-sessions", "conversations", "sessions") for chat in ("*", "*/*")),
)
_TRANSCRIPTS = tuple(
    f"{folder}/{name}{end}"
    for folder in ("projects/*/agent-transcripts", "agent-sessions", "conversations", "sessions")
    for name in ("*", "*/*", "*/subagents/*")
    for end in (".jsonl", ".txt")
)


class StoredChat(NamedTuple):
    """A conversation in a database of its own. `key`: its folder, relative to the store."""

    key: str
    folder: str
    fingerprint: str
    modified: float  # seconds since 1970; 0 without a database: nothing was said yet

    @property
    def session_id(self) -> str:
        return os.path.basename(self.folder)


class TranscriptFile(NamedTuple):
    """A transcript. `slug`: the name of the project's folder; `parent`: the session whose sub-agent it is."""

    session_id: str
    file: File
    slug: str
    parent: str | None

    @property
    def rank(self) -> tuple[bool, int]:
        """Rank the transcripts of one conversation: JSON lines before text, then the newest."""
        return self.file.path.endswith(".jsonl"), self.file.modified


@dataclass(slots=True)
class StoreFiles:
    """The conversations in databases, the transcripts by session id, and what could not be listed."""

    stored: list[StoredChat] = field(default_factory=list)
    written: dict[str, TranscriptFile] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)

    def add(self, file: File) -> None:
        """Add a transcript, unless the conversation has a better one."""
        folders, name = Path(file.path).parent.parts, Path(file.path).stem
        slug = folders[folders.index("agent-transcripts") - 1] if "agent-transcripts" in folders else ""
        found = TranscriptFile(name, file, slug, folders[-2] if folders[-1] == "subagents" else None)
        known = self.written.get(name)
        if known is None or known.rank < found.rank:
            self.written[name] = found


def walk(store: Path) -> StoreFiles:
    """List all conversations of a store without opening a file. Raises StorageError."""
    files, folders, refused = StoreFiles(), dict[str, None](), dict[Skipped, None]()
    for folder in FOLDERS:
        store_entries(store / folder)
    for pattern in (f"{chat}/{name}" for chat in _CHATS for name in (DATABASE, DESCRIPTION)):
        for file in files_below(str(store), pattern):
            if isinstance(file, File):
                folders[os.path.dirname(file.path)] = None
            else:
                refused[file] = None
    files.stored = [_stored(str(store), folder) for folder in folders]
    for pattern in _TRANSCRIPTS:
        for file in files_below(str(store), pattern):
            if isinstance(file, File):
                files.add(file)
            else:
                refused[file] = None
    files.skipped = list(refused)
    return files


def _stored(store: str, folder: str) -> StoredChat:
    base = os.path.join(folder, DATABASE)
    looked_at = map(file_at, (base, base + "-wal", os.path.join(folder, DESCRIPTION)))
    database, wal, description = (file if isinstance(file, File) else None for file in looked_at)
    prints = [file.fingerprint if file else "" for file in (database, description)]
    prints.insert(1, stamp(Path(base)) if wal else "")
    modified = max(file.modified for file in (database, wal) if file) / 1e9 if database else 0
    key = folder[len(store) + 1 :].replace(os.sep, "/")
    return StoredChat(key, folder, "+".join(prints), modified)


def description_in(folder: str) -> Record:
    """Return known fields of a conversation's `meta.json`; empty if it is missing or damaged."""
    given = mapping(read_json(small_text(os.path.join(folder, DESCRIPTION))))
    return {key: given[key] for key in ("createdAtMs", "updatedAtMs", "cwd", "title") if key in given}


@dataclass(slots=True)
class ProjectFolders:
    """Finds a project's folder by what Cursor derives from its path: a hash, or a name of letters and hyphens."""

    stored: list[StoredChat]
    _known: list[str] | None = None

    def by_hash(self, hashed: str, paths: list[str]) -> str:
        """Return the folder with that hash, among the parents of `paths` and the folders of other conversations."""
        return next((folder for folder in self._candidates(paths) if _hash(folder) == hashed), "")

    def by_slug(self, slug: str, paths: list[str]) -> str:
        """Return the folder with that name. Several paths give one name, so it only confirms a candidate."""
        return next((folder for folder in self._candidates(paths) if slug_of(folder) == slug), "") if slug else ""

    def _candidates(self, paths: list[str]) -> Iterator[str]:
        for path in paths:
            flavour = PureWindowsPath(path) if "\\" in path else PurePosixPath(path)
            if flavour.is_absolute():
                yield from map(str, (flavour, *flavour.parents))
        if self._known is None:
            named = (string(description_in(each.folder).get("cwd")) for each in self.stored)
            self._known = list(dict.fromkeys(filter(None, named)))
        yield from self._known


def slug_of(folder: str) -> str:
    """Return the name that Cursor derives from a folder for `projects`."""
    if re.match(r"[A-Z]:", folder):
        folder = folder[0].lower() + folder[1:]
    return re.sub(r"[^A-Za-z0-9]", "-", folder).removeprefix("-")


def _hash(folder: str) -> str:
    return md5(folder.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
