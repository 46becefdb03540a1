"""A conversation as a session of Copilot CLI's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

from registry.domain import Role, format_time, now
from sources.base import Places
from sources.copilot.client import COPILOT_CLI
from sources.writing import Carried, Said, Toolbox, Written, called, lines, stamped

_TOOLS = Toolbox(read=("view", "path"), run=("bash", "command"))


class CopilotCliWriter:
    """Writes `session-state/<id>/events.jsonl` and the note beside it."""

    client = COPILOT_CLI
    program = "copilot"
    tested = "1.0.102"

    def opens(self, session_id: str) -> tuple[str, ...]:
        """The command that goes on with a session."""
        return (self.program, f"--resume={session_id}")

    def write(self, talk: Carried, version: str, places: Places, drafts: Path) -> Written:
        """The events of a session that has ended, and its title."""
        session_id, began = str(uuid4()), format_time(now())
        home = places.folder(("CTXR_COPILOT_CLI_DIR", "COPILOT_HOME"), ".copilot")
        folder = home / "session-state" / session_id
        path = folder / "events.jsonl"
        note = {
            "id": session_id,
            "cwd": talk.folder,
            "name": talk.title,
            "user_named": bool(talk.title),
            "created_at": began,
            "updated_at": began,
        }
        flat = "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in note.items())
        files = {path: lines(_chained(_events(talk, session_id, version, began))), folder / "workspace.yaml": flat}
        return Written(session_id, path, files, self.opens(session_id))


def _events(talk: Carried, session_id: str, version: str, began: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Type, time and data of each event."""
    context = {"cwd": talk.folder}
    start = {"sessionId": session_id, "version": 1, "producer": "copilot-agent", "copilotVersion": version}
    yield "session.start", began, {**start, "startTime": began, "context": context}
    turn = -1
    for message, at in stamped(talk.messages):
        if message.role is Role.USER:
            turn += 1
            said = {"content": message.text, "transformedContent": message.text, "attachments": []}
            yield "user.message", at, {**said, "messageId": str(uuid4())}
        else:
            yield "assistant.turn_start", at, {"turnId": str(turn)}
            yield from ((kind, at, {**data, "turnId": str(turn)}) for kind, data in _answer(message))
            yield "assistant.turn_end", at, {"turnId": str(turn)}


def _answer(message: Said) -> Iterator[tuple[str, dict[str, Any]]]:
    calls = called(message, _TOOLS)
    asked = [
        {"toolCallId": id_, "name": call.name, "arguments": call.params, "type": "function"} for id_, call in calls
    ]
    yield "assistant.message", {"content": message.text, "toolRequests": asked, "messageId": str(uuid4())}
    for id_, call in calls:
        yield "tool.execution_start", {"toolCallId": id_, "toolName": call.name, "arguments": call.params}
        told = {"error": {"message": call.result}} if call.failed else {"result": {"content": call.result}}
        yield "tool.execution_complete", {"toolCallId": id_, "success": not call.failed, **told}


def _chained(events: Iterator[tuple[str, str, dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    parent = None
    for kind, at, data in events:
        own = str(uuid4())
        yield {"type": kind, "data": data, "id": own, "timestamp": at, "parentId": parent}
        parent = own
