"""Qwen Code: its chats and those of its sub-agents."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from sources.base import FoundSession, Skipped
from sources.kit.files import File, entries, folders_in, look_at, store_entries, why_not
from sources.kit.jsonl import Damage
from sources.kit.reader import FileReader, ParseFile, SessionFile, json_lines
from sources.qwen.chat import Chat
from sources.qwen.client import QWEN_CODE


class QwenCode(FileReader):
    """Reads `projects/<folder>/chats/` and `projects/<folder>/subagents/`. Secrets lie beside `projects`."""

    name = QWEN_CODE.source
    variables = ("CTXR_QWEN_CODE_DIR", "QWEN_HOME")
    home = (".qwen",)
    folders = ("projects",)

    def files(self, store: Path) -> Iterator[SessionFile | Skipped]:
        """List the chats, and those of sub-agents, whose folder is named after their session."""
        for project in folders_in(store_entries(store / "projects")):
            try:
                yield from _chats_in(os.path.join(project, "chats"), None)
                for folder in folders_in(entries(os.path.join(project, "subagents"))):
                    yield from _chats_in(folder, os.path.basename(folder))
            except OSError as exc:
                yield Skipped(project, why_not(exc))

    def parser(self, store: Path) -> ParseFile:
        """Return the parser of one chat."""
        return _parse


def _chats_in(folder: str, agent_of: str | None) -> Iterator[SessionFile | Skipped]:
    for entry in entries(folder):
        if entry.name.endswith(".jsonl"):
            file, session_id = look_at(entry), entry.name.removesuffix(".jsonl")
            yield SessionFile(file, file.path, session_id, agent_of) if isinstance(file, File) else file


def _parse(file: SessionFile) -> Iterator[FoundSession]:
    damage, chat = Damage(), Chat(file.session_id, file.agent_of)
    for record in json_lines(file.file.path, damage):
        chat.read(record)
    yield file.found(chat.session(), damage.skipped() + chat.skipped())
