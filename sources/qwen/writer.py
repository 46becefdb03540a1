"""Write a conversation as a chat of Qwen Code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from registry.domain import Role, format_time, now
from sources.base import Places
from sources.clients import QWEN_CODE
from sources.writing import Json, NewSession, Talk, TalkPart, Tools, Writer, calls_for, chained, json_lines, with_times

_TOOLS = Tools(read=("read_file", "file_path"), run=("run_shell_command", "command"))


def _make(talk: Talk, version: str, places: Places, _: Path) -> NewSession:
    """Make `projects/<folder>/chats/<session>.jsonl`: records in one chain, and the title."""
    session_id = str(uuid4())
    folder = QWEN_CODE.history_in(places) / "projects" / re.sub("[^a-zA-Z0-9]", "-", talk.folder)
    path = folder / "chats" / f"{session_id}.jsonl"
    common = {"sessionId": session_id, "cwd": talk.folder, "version": version}
    records = [
        {"timestamp": time, **record} for message, time in with_times(talk.messages) for record in _records_of(message)
    ]
    if talk.title:
        title = {"subtype": "custom_title", "systemPayload": {"customTitle": talk.title, "titleSource": "auto"}}
        records.append({"timestamp": format_time(now()), "type": "system", **title})
    linked = chained(({**common, **record} for record in records), "uuid", "parentUuid")
    return NewSession(session_id, path, json_lines(linked))


def _records_of(message: TalkPart) -> Iterator[Json]:
    if message.role is Role.USER:
        yield {"type": "user", "message": {"role": "user", "parts": [{"text": message.text}]}}
        return
    calls = calls_for(message, _TOOLS)
    parts: list[Json] = [{"text": message.text}] if message.text else []
    parts += [{"functionCall": {"id": id_, "name": call.name, "args": call.params}} for id_, call in calls]
    yield {"type": "assistant", "model": "unknown", "message": {"role": "model", "parts": parts}}
    for id_, call in calls:
        response = {"id": id_, "name": call.name, "response": {"error" if call.failed else "output": call.result}}
        status = {"callId": id_, "status": "error" if call.failed else "success", "resultDisplay": call.result}
        content = {"role": "user", "parts": [{"functionResponse": response}]}
        yield {"type": "tool_result", "message": content, "toolCallResult": status}


QWEN_WRITER = Writer(QWEN_CODE, "qwen", "0.24.4", ("--resume", "{}"), _make)
