"""Qwen Code: its chats and those of its sub-agents."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sources.base import FoundSession, Places, Skipped
from sources.kit import drafts
from sources.kit.files import File, entries, folders_in, look_at, read_changed, store_entries, why_not
from sources.kit.jsonl import Damage, read_lines, records_of
from sources.qwen.chat import Chat
from sources.qwen.client import QWEN_CODE

_SETTINGS = ("CTXR_QWEN_CODE_DIR", "QWEN_HOME")
_END = ".jsonl"


@dataclass(frozen=True, slots=True)
class _Kept:
    """A chat in a store; `agent_of` is the session whose folder a sub-agent's chat lies in."""

    file: File
    agent_of: str | None


class QwenCode:
    """Reads `projects/<folder>/chats/` and `projects/<folder>/subagents/`. Secrets lie beside `projects`."""

    name = QWEN_CODE.source

    def find(self, places: Places) -> Iterator[Path]:
        """The client's folder, if it holds chats."""
        root = places.folder(_SETTINGS, ".qwen")
        if os.path.isdir(root / "projects"):
            yield root

    def stamp(self, store: Path) -> str:
        """Each file's own state is as cheap to look at: there is no stamp of the whole."""
        return ""

    def watched(self, store: Path) -> Iterable[Path]:
        """Only the projects; beside them lie logs and extensions."""
        return [store / "projects"]

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """The changed chats, newest first. A file without a conversation is found with no messages, so that
        it is not read again, and says so in its `skipped`. Raises StorageError."""
        yield from read_changed(
            _chats(store_entries(store / "projects")),
            lambda kept: seen.get(kept.file.path) != kept.file.fingerprint,
            lambda kept: [_read(kept)],
        )


def _chats(projects: list[os.DirEntry[str]]) -> Iterator[_Kept | Skipped]:
    for project in folders_in(projects):
        try:
            yield from _in_folder(os.path.join(project, "chats"), None)
            for folder in folders_in(entries(os.path.join(project, "subagents"))):
                yield from _in_folder(folder, os.path.basename(folder))
        except OSError as exc:
            yield Skipped(project, why_not(exc))


def _in_folder(folder: str, agent_of: str | None) -> Iterator[_Kept | Skipped]:
    for entry in entries(folder):
        if entry.name.endswith(_END):
            file = look_at(entry)
            yield _Kept(file, agent_of) if isinstance(file, File) else file


def _read(kept: _Kept) -> FoundSession:
    damage, path = Damage(), kept.file.path
    chat = Chat(os.path.basename(path).removesuffix(_END), kept.agent_of)
    with open(path, "rb") as file:
        for record in records_of(read_lines(file), damage):
            chat.read(record)
    session = drafts.dated(chat.session(), kept.file.modified_at)
    skipped = damage.skipped() + chat.skipped()
    if not session.messages:
        skipped += (Skipped(path, "no conversation in it"),)
    return FoundSession(path, kept.file.fingerprint, session, skipped)
