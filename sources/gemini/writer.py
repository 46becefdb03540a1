"""Write a conversation as a chat of Gemini CLI."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

from registry.domain import Role, format_time, now
from registry.errors import InvalidRequest
from sources.base import Places
from sources.clients import GEMINI_CLI
from sources.kit.files import small_text
from sources.kit.loose_json import read_json, text_at
from sources.writing import Call, Json, NewSession, Talk, Tools, Writer, calls_for, json_lines, with_times

_TOOLS = Tools(read=("read_file", "file_path"), run=("run_shell_command", "command"))


def _make(talk: Talk, version: str, places: Places, _: Path) -> NewSession:
    """Make `tmp/<project>/chats/session-<time>-<id>.jsonl`. InvalidRequest if the client does not know the project."""
    session_id, here, home = str(uuid4()), now(), GEMINI_CLI.history_in(places)
    slot = text_at(read_json(small_text(home / "projects.json")), "projects", talk.folder)
    if not slot:
        raise InvalidRequest(
            "Gemini CLI doesn't know this folder yet.", f"Start gemini once in {talk.folder}, then try again"
        )
    # The name does not end in the beginning of the session's id: when a session is resumed, version 0.61 removes every
    # file with such a name at its next start.
    path = home / "tmp" / slot / "chats" / f"session-{here:%Y-%m-%dT%H-%M}-{uuid4().hex[:8]}.jsonl"
    header = {
        "sessionId": session_id,
        "projectHash": sha256(talk.folder.encode()).hexdigest(),
        "startTime": format_time(here),
        "lastUpdated": format_time(here),
        "kind": "main",
    }
    return NewSession(session_id, path, json_lines([header, *_records(talk)]))


def _records(talk: Talk) -> Iterator[Json]:
    for message, at in with_times(talk.messages):
        is_question = message.role is Role.USER
        content: Any = [{"text": message.text}] if is_question else message.text
        record = {"id": str(uuid4()), "timestamp": at, "type": "user" if is_question else "gemini", "content": content}
        calls = [_tool_call(id_, call, at) for id_, call in calls_for(message, _TOOLS)]
        yield {**record, "toolCalls": calls} if calls else record


def _tool_call(id_: str, call: Call, at: str) -> Json:
    response = {"error" if call.failed else "output": call.result}
    return {
        "id": id_,
        "name": call.name,
        "args": call.params,
        "result": [{"functionResponse": {"id": id_, "name": call.name, "response": response}}],
        "status": "error" if call.failed else "success",
        "timestamp": at,
        "resultDisplay": call.result,
        "displayName": call.name,
        "description": "",
    }


GEMINI_WRITER = Writer(GEMINI_CLI, "gemini", "0.61.0", ("--resume", "{}"), _make)
