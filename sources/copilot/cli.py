"""Copilot CLI: its sessions as event logs, in the three places where it has kept them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from sources.base import FoundSession, Skipped
from sources.copilot.client import COPILOT_CLI
from sources.copilot.events import Events
from sources.kit import drafts
from sources.kit.files import File, file_at, look_at, small_text, status_of, store_entries
from sources.kit.jsonl import Damage, Record, items, mapping, string
from sources.kit.loose_json import read_json
from sources.kit.reader import FileReader, ParseFile, SessionFile, json_document, json_lines

_FOLDERS = ("session-state", "history-session-state")
_EVENTS, _NOTE = "events.jsonl", "workspace.yaml"
_NOTED = re.compile(r"^(name|cwd|branch):[ \t]*(\S.*)?$", re.MULTILINE)


class CopilotCli(FileReader):
    """Reads `session-state/` and `history-session-state/`. Opens nothing else: secrets lie beside them."""

    name = COPILOT_CLI.source
    variables = ("CTXR_COPILOT_CLI_DIR", "COPILOT_HOME")
    home = (".copilot",)
    folders = _FOLDERS

    def files(self, store: Path) -> Iterator[SessionFile | Skipped]:
        """List the logs of both folders."""
        return (file for folder in _FOLDERS for file in _walk(store / folder))

    def parser(self, store: Path) -> ParseFile:
        """Return the parser of one log."""
        return _parse


# What is there


def _walk(folder: Path) -> Iterator[SessionFile | Skipped]:
    """`<id>/events.jsonl`, before that `<id>.jsonl`, at first `<name>.json`; a new session has no events yet."""
    for entry in store_entries(folder):
        if entry.name.endswith((".json", ".jsonl")):
            file, session_id = look_at(entry), Path(entry.name).stem
            yield SessionFile(file, file.path, session_id) if isinstance(file, File) else file
        elif entry.is_dir():
            yield from _session_folder(entry.path)


def _session_folder(folder: str) -> Iterator[SessionFile | Skipped]:
    """By their names: to list thousands of folders takes longer."""
    file = file_at(os.path.join(folder, _EVENTS))
    if isinstance(file, File):  # a session may be renamed in its note after it has ended
        note_status = "+" + status_of(os.path.join(folder, _NOTE))
        yield SessionFile(file, file.path, os.path.basename(folder), folder=folder, note_status=note_status)
    elif file:
        yield file


# What it says


def _parse(file: SessionFile) -> Iterator[FoundSession]:
    """The sessions of one file: sub-agents first, so that the file counts as read when all of it is."""
    damage, path = Damage(), file.file.path
    note = small_text(os.path.join(file.folder, _NOTE)) if file.folder else ""
    reading = Events(file.session_id, noted(note))
    for event in json_lines(path, damage) if path.endswith(".jsonl") else events_of(json_document(path, damage)):
        reading.read(event)
    session, *agents = reading.sessions()
    for agent in agents:
        if agent.messages:
            dated = drafts.dated(agent, file.file.modified_at)
            yield FoundSession(f"{path}#{agent.session_id}", file.fingerprint, dated)
    yield file.found(session, damage.skipped() + reading.skipped())


def noted(text: str) -> dict[str, str]:
    """The name, folder and branch in a `workspace.yaml`, which has one value a line. Pure."""
    return {key: _unquoted(value.strip()) for key, value in _NOTED.findall(text) if value.strip() not in ("", "null")}


def _unquoted(value: str) -> str:
    if value.startswith('"'):
        return string(read_json(value)) or value.strip('"')
    return value[1:-1].replace("''", "'") if value.startswith("'") and value.endswith("'") else value


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
