"""The files of Cursor's agent, and the projects that their folders are named after."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import md5
from pathlib import PurePosixPath, PureWindowsPath

from sources.kit.files import small_text
from sources.kit.loose_json import Record, mapping, read_json, string
from sources.kit.reader import SessionFile

DATABASE, DESCRIPTION = "store.db", "meta.json"
_OLD = ("agent-sessions", "conversations", "sessions")
# folders of a conversation in a database of its own; with a description alone it has not begun
_CHATS = ("chats/*", "chats/*/*", "acp-sessions/*", *(f"{old}/{chat}" for old in _OLD for chat in ("*", "*/*")))
CHATS = tuple(f"{folder}/{name}" for folder in _CHATS for name in (DATABASE, DESCRIPTION))
TRANSCRIPTS = tuple(
    f"{folder}/{name}{end}"
    for folder in ("projects/*/agent-transcripts", *_OLD)
    for name in ("*", "*/*", "*/subagents/*")
    for end in (".jsonl", ".txt")
)


def description_in(folder: str) -> Record:
    """Return known fields of a conversation's `meta.json`; empty if it is missing or damaged."""
    given = mapping(read_json(small_text(os.path.join(folder, DESCRIPTION))))
    return {key: given[key] for key in ("createdAtMs", "updatedAtMs", "cwd", "title") if key in given}


@dataclass(slots=True)
class ProjectFolders:
    """Finds a project's folder by what Cursor derives from its path: a hash, or a name of letters and hyphens."""

    chats: list[SessionFile]
    _known: list[str] | None = None

    def named(self, name: str, paths: list[str]) -> str:
        """Return the folder with that hash or name, among the parents of `paths` and other conversations' folders.

        Several paths give one name, so it only confirms a candidate.
        """
        found = (folder for folder in self._candidates(paths) if name in (slug_of(folder), _hash(folder)))
        return next(found, "") if name else ""

    def _candidates(self, paths: list[str]) -> Iterator[str]:
        for path in paths:
            flavour = PureWindowsPath(path) if "\\" in path else PurePosixPath(path)
            if flavour.is_absolute():
                yield from map(str, (flavour, *flavour.parents))
        if self._known is None:
            named = (string(description_in(each.folder).get("cwd")) for each in self.chats)
            self._known = list(dict.fromkeys(filter(None, named)))
        yield from self._known


def slug_of(folder: str) -> str:
    """Return the name that Cursor derives from a folder for `projects`."""
    if re.match(r"[A-Z]:", folder):
        folder = folder[0].lower() + folder[1:]
    return re.sub(r"[^A-Za-z0-9]", "-", folder).removeprefix("-")


def _hash(folder: str) -> str:
    return md5(folder.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
