"""Aider: the histories that lie in the projects it was used in."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from registry.domain import Role, Session, preview_of
from registry.errors import StorageError
from sources.aider.client import AIDER
from sources.aider.history import Chat, chats_of, drafts_of
from sources.base import FoundSession, Places, Skipped
from sources.kit import drafts
from sources.kit.files import File, entries, file_at, folders_in, why_not
from sources.kit.jsonl import LONGEST_LINE, read_lines

TITLE_WIDTH = 80
NAME = ".aider.chat.history.md"
_LEVELS = 2
"""Below the home folder, where projects mostly lie: `~/shop`, `~/src/shop`."""
_MOST_FOLDERS = 2000
_AGAIN_S = 60.0
"""How long what was found holds: projects are few, folders are many, and every question asks."""


@dataclass(slots=True)
class Aider:
    """Reads the histories, each a store. A project that lies deeper is found by its variable."""

    name: str = AIDER.source
    _found: dict[tuple[Path, ...], tuple[float, list[Path]]] = field(default_factory=dict)

    def find(self, places: Places) -> Iterator[Path]:
        """The histories below the home folder, or below the folders that were named."""
        named = places.environment.get("CTXR_AIDER_DIRS", "")
        roots = tuple(Path(root).expanduser() for root in named.split(os.pathsep) if root) or (places.home,)
        found = [*self._histories(roots)]
        if own := places.environment.get("AIDER_CHAT_HISTORY_FILE"):
            found.append(Path(own).expanduser())
        yield from (path for path in dict.fromkeys(found) if path.is_file())

    def _histories(self, roots: tuple[Path, ...]) -> list[Path]:
        at, found = self._found.get(roots, (float("-inf"), []))
        if time.monotonic() - at > _AGAIN_S:
            found = [file for root in roots for folder in _folders(root) if (file := folder / NAME).is_file()]
            self._found[roots] = time.monotonic(), found
        return found

    def stamp(self, store: Path) -> str:
        """The file's own state."""
        file = file_at(str(store))
        return file.fingerprint if isinstance(file, File) else ""

    def watched(self, store: Path) -> Iterable[Path]:
        """Nothing: around it lies all of a project. The regular look finds what is new."""
        return ()

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """The chats that are new or went on, one at a time in memory. Raises StorageError."""
        same_second, too_long = Counter[str](), Counter[str]()
        try:
            with store.open("rb") as file:
                lines = read_lines(file)
                for chat in chats_of(_texts(lines, too_long)):
                    key = f"{chat.began:%Y-%m-%dT%H:%M:%S}"
                    same_second[key] += 1
                    key += f"-{same_second[key]}" if same_second[key] > 1 else ""
                    if seen.get(key) != chat.fingerprint:
                        yield _found(store, key, chat)
        except OSError as exc:
            raise StorageError(f"Could not read {store}.", why_not(exc)) from exc
        if too_long.total():
            yield Skipped(f"{too_long.total()} lines", f"longer than {LONGEST_LINE // 2**20} MB")


def _folders(root: Path) -> Iterator[Path]:
    level = [str(root)]
    found = 0
    for _ in range(_LEVELS + 1):
        yield from map(Path, level[: _MOST_FOLDERS - found])
        found += len(level)
        if found >= _MOST_FOLDERS:
            return
        level = [inner for folder in level for inner in _inside(folder)]


def _inside(folder: str) -> list[str]:
    try:
        return [path for path in folders_in(entries(folder)) if not os.path.basename(path).startswith((".", "node_"))]
    except OSError:
        return []


def _texts(lines: Iterable[bytes | None], too_long: Counter[str]) -> Iterator[str]:
    for line in lines:
        if line is None:
            too_long["line"] += 1
        else:
            yield line.decode("utf-8", "replace")


def _found(store: Path, key: str, chat: Chat) -> FoundSession:
    """A chat has no id: its place and its beginning make one."""
    found = drafts_of(chat)
    place = sha256(os.fsencode(store)).hexdigest()[:8]
    asked = next((draft.parts[0] for draft in found if draft.role is Role.USER), "")
    is_talk = any(draft.role in (Role.USER, Role.ASSISTANT) for draft in found)
    session = Session(
        session_id=f"{place}-{key}",
        messages=drafts.messages_of(found, chat.began) if is_talk else (),
        title=preview_of(asked, TITLE_WIDTH) or None,
        project=drafts.project_of([str(store.parent)]),
        meta={"title_from": "first words"} if asked else {},
    )
    skipped = () if is_talk else (Skipped(f"chat of {key}", "no conversation in it"),)
    return FoundSession(key, chat.fingerprint, session, skipped)
