"""Write a conversation as a session of Copilot CLI."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

from registry.domain import Role, format_time, now
from sources.base import Places
from sources.clients import COPILOT_CLI
from sources.writing import Json, NewSession, Talk, TalkPart, Tools, Writer, calls_for, chained, json_lines, with_times

_TOOLS = Tools(read=("view", "path"), run=("bash", "command"))


def _make(talk: Talk, version: str, places: Places, _: Path) -> NewSession:
    """Make `session-state/<id>/events.jsonl`, the events of a session that has ended, and the note beside it."""
    session_id, began = str(uuid4()), format_time(now())
    folder = COPILOT_CLI.history_in(places) / "session-state" / session_id
    note: Json = {
        "id": session_id,
        "cwd": talk.folder,
        "name": talk.title,
        "user_named": bool(talk.title),
        "created_at": began,
        "updated_at": began,
    }
    flat = "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in note.items())
    start = {"sessionId": session_id, "version": 1, "producer": "copilot-agent", "copilotVersion": version}
    events = [_event("session.start", began, startTime=began, context={"cwd": talk.folder}, **start), *_events(talk)]
    text = json_lines(chained(events, "id", "parentId"))
    return NewSession(session_id, folder / "events.jsonl", text, {folder / "workspace.yaml": flat})


def _event(kind: str, at: str, **data: Any) -> Json:
    return {"type": kind, "data": data, "timestamp": at}


def _events(talk: Talk) -> Iterator[Json]:
    turn = -1
    for message, at in with_times(talk.messages):
        if message.role is Role.USER:
            turn += 1
            text = {"content": message.text, "transformedContent": message.text}
            yield _event("user.message", at, **text, attachments=[], messageId=str(uuid4()))
        else:
            yield _event("assistant.turn_start", at, turnId=str(turn))
            yield from (_event(kind, at, **data, turnId=str(turn)) for kind, data in _answer(message))
            yield _event("assistant.turn_end", at, turnId=str(turn))


def _answer(message: TalkPart) -> Iterator[tuple[str, Json]]:
    calls = calls_for(message, _TOOLS)
    requests = [
        {"toolCallId": id_, "name": call.name, "arguments": call.params, "type": "function"} for id_, call in calls
    ]
    yield "assistant.message", {"content": message.text, "toolRequests": requests, "messageId": str(uuid4())}
    for id_, call in calls:
        yield "tool.execution_start", {"toolCallId": id_, "toolName": call.name, "arguments": call.params}
        result = {"error": {"message": call.result}} if call.failed else {"result": {"content": call.result}}
        yield "tool.execution_complete", {"toolCallId": id_, "success": not call.failed, **result}


COPILOT_CLI_WRITER = Writer(COPILOT_CLI, "copilot", "1.0.102", ("--resume={}",), _make)
