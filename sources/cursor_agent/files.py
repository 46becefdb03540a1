"""Where Cursor's agent keeps its conversations, looked at from outside."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import md5
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import NamedTuple

from sources.base import Skipped
from sources.kit.files import File, entries, folders_in, look_at, store_entries, why_not
from sources.kit.jsonl import Record, mapping, string
from sources.kit.loose_json import read_json
from sources.kit.sqlite_files import stamp

DATABASE, DESCRIPTION = "store.db", "meta.json"
_LAYOUTS = {"chats": 2, "acp-sessions": 1, "agent-sessions": 2, "conversations": 2, "sessions": 2}
"""The folders that hold conversations, and how deep the folder of one lies at most."""
_PROJECTS, _TRANSCRIPTS, _SUBAGENTS = "projects", "agent-transcripts", "subagents"
FOLDERS = (*_LAYOUTS, _PROJECTS)
_ENDS = (".jsonl", ".txt")
_LONGEST_DESCRIPTION = 2**20


class Stored(NamedTuple):
    """A conversation in a database of its own. `key`: its folder below the store."""

    key: str
    folder: str
    fingerprint: str
    modified: float
    """Seconds since 1970; 0 if there is no database: nothing was said yet."""

    @property
    def session_id(self) -> str:
        return os.path.basename(self.folder)


class Written(NamedTuple):
    """A transcript. `slug`: the name of the project's folder; `parent`: whose sub-agent it is."""

    session_id: str
    file: File
    slug: str
    parent: str | None

    @property
    def rank(self) -> tuple[bool, int]:
        """Of two transcripts of one conversation the higher one is read."""
        return self.file.path.endswith(".jsonl"), self.file.modified


@dataclass(slots=True)
class Kept:
    """What a store holds: conversations in databases, transcripts by their ids, and what could not be looked at."""

    stored: list[Stored] = field(default_factory=list)
    written: dict[str, Written] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)

    def add(self, found: Written) -> None:
        """A transcript; the same conversation may have several."""
        known = self.written.get(found.session_id)
        if known is None or known.rank < found.rank:
            self.written[found.session_id] = found


def walk(store: Path) -> Kept:
    """Everything below the store, by status alone; no file is opened. Raises StorageError."""
    kept = Kept()
    for layout, depth in _LAYOUTS.items():
        root = os.path.join(store, layout)
        for folder in folders_in(store_entries(root)):
            _conversations(kept, str(store), folder, depth - 1)
        if layout not in ("chats", "acp-sessions"):
            _transcripts(kept, root, "")
    for project in folders_in(store_entries(os.path.join(store, _PROJECTS))):
        _transcripts(kept, os.path.join(project, _TRANSCRIPTS), os.path.basename(project))
    return kept


def _conversations(kept: Kept, store: str, folder: str, deeper: int) -> None:
    found = _stored(store, folder)
    if found:
        kept.stored.append(found)
    elif deeper:
        for inner in folders_in(_listed(kept, folder)):
            _conversations(kept, store, inner, deeper - 1)


def _stored(store: str, folder: str) -> Stored | None:
    base = os.path.join(folder, DATABASE)
    database, wal, description = map(_status, (base, base + "-wal", os.path.join(folder, DESCRIPTION)))
    if not database and not description:
        return None
    salts = stamp(Path(base)) if wal else ""
    modified = max((seen.st_mtime for seen in (database, wal) if seen), default=0) if database else 0
    key = folder[len(store) + 1 :].replace(os.sep, "/")
    return Stored(key, folder, f"{_told(database)}+{salts}+{_told(description)}", modified)


def _status(file: str) -> os.stat_result | None:
    try:
        return os.stat(file)
    except OSError:
        return None


def _told(seen: os.stat_result | None) -> str:
    return f"{seen.st_ino}-{seen.st_size}-{seen.st_mtime_ns}" if seen else ""


def _transcripts(kept: Kept, folder: str, slug: str) -> None:
    """`<id>.jsonl`, `<id>.txt`, or `<id>/<id>.jsonl` with those of sub-agents in a folder beside it."""
    listing = _listed(kept, folder)
    _files(kept, listing, slug, None)
    for own in folders_in(listing):
        _files(kept, _listed(kept, own), slug, None)
        _files(kept, _listed(kept, os.path.join(own, _SUBAGENTS)), slug, os.path.basename(own))


def _files(kept: Kept, listing: list[os.DirEntry[str]], slug: str, parent: str | None) -> None:
    for entry in listing:
        name, end = os.path.splitext(entry.name)
        if end not in _ENDS:
            continue
        file = look_at(entry)
        if isinstance(file, File):
            kept.add(Written(name, file, slug, parent))
        else:
            kept.skipped.append(file)


def _listed(kept: Kept, folder: str) -> list[os.DirEntry[str]]:
    try:
        return entries(folder)
    except OSError as exc:
        kept.skipped.append(Skipped(folder, why_not(exc)))
        return []


def description_in(folder: str) -> Record:
    """What `meta.json` says of a conversation; empty if it is not there or damaged. Only named fields are taken."""
    try:
        with open(os.path.join(folder, DESCRIPTION), "rb") as file:
            given = mapping(read_json(file.read(_LONGEST_DESCRIPTION)))
    except OSError:
        return {}
    return {key: given[key] for key in ("createdAtMs", "updatedAtMs", "cwd", "title") if key in given}


@dataclass(slots=True)
class Workspaces:
    """The folders of projects, found again by what Cursor makes of their paths: a hash, or a name without signs."""

    stored: list[Stored]
    _known: list[str] | None = None

    def by_hash(self, hashed: str, paths: list[str]) -> str:
        """The one whose path has that hash: among the folders above some paths, or those of other conversations."""
        return next((folder for folder in self._candidates(paths) if _hash(folder) == hashed), "")

    def by_slug(self, slug: str, paths: list[str]) -> str:
        """The one that gives that name; a name says less than a path, so it only confirms what is known."""
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
    """The name that Cursor gives the folder of a project under `projects`."""
    if re.match(r"[A-Z]:", folder):
        folder = folder[0].lower() + folder[1:]
    return re.sub(r"[^A-Za-z0-9]", "-", folder).removeprefix("-")


def _hash(folder: str) -> str:
    return md5(folder.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
