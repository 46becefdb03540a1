"""Copilot CLI: its sessions as event logs, in the three places where it has kept them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sources.base import FoundSession, Places, Skipped
from sources.copilot.client import COPILOT_CLI
from sources.copilot.events import Events
from sources.kit import drafts
from sources.kit.files import (
    File,
    document,
    file_at,
    look_at,
    read_changed,
    small_text,
    status_of,
    store_entries,
)
from sources.kit.jsonl import Damage, Record, items, mapping, read_lines, records_of, string
from sources.kit.loose_json import read_json

_SETTINGS = ("CTXR_COPILOT_CLI_DIR", "COPILOT_HOME")
_FOLDERS = ("session-state", "history-session-state")
_EVENTS, _NOTE = "events.jsonl", "workspace.yaml"
_NOTED = re.compile(r"^(name|cwd|branch):[ \t]*(\S.*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Kept:
    """The log of a session, and where the note about it would be."""

    file: File
    session_id: str
    note: str = ""

    @property
    def fingerprint(self) -> str:
        """Of both: a session may be renamed after it has ended."""
        return f"{self.file.fingerprint}+{status_of(self.note)}"


class CopilotCli:
    """Reads `session-state/` and `history-session-state/`. Opens nothing else: secrets lie beside them."""

    name = COPILOT_CLI.source

    def find(self, places: Places) -> Iterator[Path]:
        """The client's home folder, if it holds sessions."""
        setting = next(filter(places.environment.get, _SETTINGS), _SETTINGS[-1])
        root = places.folder(setting, ".copilot")
        if any(os.path.isdir(root / folder) for folder in _FOLDERS):
            yield root

    def stamp(self, store: Path) -> str:
        """Each file's own state is as cheap to look at: there is no stamp of the whole."""
        return ""

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """The changed sessions, newest first. A file without a conversation is found with no messages, so that
        it is not read again, and says so in its `skipped`. Raises StorageError."""
        found = (kept for folder in _FOLDERS for kept in _walk(store / folder))
        yield from read_changed(found, lambda kept: seen.get(kept.file.path) != kept.fingerprint, _read)


# What is there


def _walk(folder: Path) -> Iterator[_Kept | Skipped]:
    """`<id>/events.jsonl`, before that `<id>.jsonl`, at first `<name>.json`; a new session has no events yet."""
    for entry in store_entries(folder):
        if entry.name.endswith((".json", ".jsonl")):
            file = look_at(entry)
            yield _Kept(file, Path(entry.name).stem) if isinstance(file, File) else file
        elif entry.is_dir():
            yield from _session(entry.path)


def _session(folder: str) -> Iterator[_Kept | Skipped]:
    """By their names: to list thousands of folders takes longer."""
    file = file_at(os.path.join(folder, _EVENTS))
    if isinstance(file, File):
        yield _Kept(file, os.path.basename(folder), os.path.join(folder, _NOTE))
    elif file:
        yield file


# What it says


def _read(kept: _Kept) -> Iterator[FoundSession]:
    """The sessions of one file: sub-agents first, so that the file counts as read when all of it is."""
    damage, path, fingerprint = Damage(), kept.file.path, kept.fingerprint
    reading = Events(kept.session_id, noted(small_text(kept.note)))
    for event in _log(path, damage) if path.endswith(".jsonl") else _history(path, damage):
        reading.read(event)
    session, *agents = (drafts.dated(told, kept.file.modified_at) for told in reading.sessions())
    for agent in agents:
        if agent.messages:
            yield FoundSession(f"{path}#{agent.session_id}", fingerprint, agent)
    skipped = damage.skipped() + reading.skipped()
    if not session.messages:
        skipped += (Skipped(path, "no conversation in it"),)
    yield FoundSession(path, fingerprint, session, skipped)


def noted(text: str) -> dict[str, str]:
    """The name, folder and branch in a `workspace.yaml`, which has one value a line. Pure."""
    return {key: _unquoted(value.strip()) for key, value in _NOTED.findall(text) if value.strip() not in ("", "null")}


def _unquoted(value: str) -> str:
    if value.startswith('"'):
        return string(read_json(value)) or value.strip('"')
    return value[1:-1].replace("''", "'") if value.startswith("'") and value.endswith("'") else value


def _log(path: str, damage: Damage) -> Iterator[Record]:
    with open(path, "rb") as file:
        yield from records_of(read_lines(file), damage)


def _history(path: str, damage: Damage) -> Iterator[Record]:
    value = read_json(document(path))
    if isinstance(value, dict):
        yield from events_of(value)
    else:
        damage.note(0, "not a JSON object")


# What the first versions kept, as events of today


def events_of(history: Record) -> Iterator[Record]:
    """The document of the first versions as events: whole messages of the model's service, without times."""
    yield {"type": "session.start", "data": {key: history.get(key) for key in ("sessionId", "startTime")}}
    for place, message in enumerate(map(mapping, items(history.get("chatMessages")))):
        kind, data = _ROLES.get(string(message.get("role")), _passed_over)(message)
        yield {"type": kind, "id": f"#{place}", "data": data}


def _passed_over(message: Record) -> tuple[str, Record]:
    return "system.message", message


def _answer(message: Record) -> tuple[str, Record]:
    calls = [(mapping(call), mapping(mapping(call).get("function"))) for call in items(message.get("tool_calls"))]
    requests = [{"toolCallId": call.get("id"), **function} for call, function in calls]
    return "assistant.message", {"content": drafts.readable(message.get("content")), "toolRequests": requests}


def _result(message: Record) -> tuple[str, Record]:
    told = {"toolCallId": message.get("tool_call_id"), "success": True}
    return "tool.execution_complete", told | {"result": {"content": message.get("content")}}


_ROLES: dict[str, Callable[[Record], tuple[str, Record]]] = {
    "user": lambda message: ("user.message", {"content": drafts.readable(message.get("content"))}),
    "assistant": _answer,
    "tool": _result,
}
