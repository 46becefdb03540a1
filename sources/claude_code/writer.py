"""Write a conversation as a transcript of Claude Code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from registry.domain import Role
from sources.base import Places
from sources.clients import CLAUDE_CODE
from sources.writing import Json, NewSession, Talk, TalkPart, Tools, Writer, calls_for, chained, json_lines, with_times

_TOOLS = Tools(read=("Read", "file_path"), run=("Bash", "command"))


def _make(talk: Talk, version: str, places: Places, _: Path) -> NewSession:
    """Make `projects/<folder>/<session>.jsonl`: records in one chain, and the title."""
    session_id = str(uuid4())
    folder = CLAUDE_CODE.history_in(places) / "projects" / re.sub("[^a-zA-Z0-9]", "-", talk.folder)
    common = {
        "isSidechain": False,
        "userType": "external",
        "cwd": talk.folder,
        "sessionId": session_id,
        "version": version,
        "gitBranch": "",
    }
    records = (
        {**common, "type": message["role"], "message": message, "timestamp": time}
        for said, time in with_times(talk.messages)
        for message in _messages_of(said)
    )
    title = {"type": "custom-title", "customTitle": talk.title, "sessionId": session_id}
    text = json_lines([*chained(records, "uuid", "parentUuid"), *([title] if talk.title else [])])
    return NewSession(session_id, folder / f"{session_id}.jsonl", text)


def _messages_of(said: TalkPart) -> Iterator[Json]:
    """Yield a message for each block, those of one answer under one id, then one for each result."""
    if said.role is Role.USER:
        yield {"role": "user", "content": said.text}
        return
    calls = calls_for(said, _TOOLS, "toolu_")
    blocks: list[Json] = [{"type": "text", "text": said.text}] if said.text else []
    blocks += [{"type": "tool_use", "id": id_, "name": call.name, "input": call.params} for id_, call in calls]
    answer = {
        "id": f"msg_{uuid4().hex[:24]}",
        "type": "message",
        "role": "assistant",
        "model": "unknown",
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }
    yield from ({**answer, "content": [block]} for block in blocks)
    for id_, call in calls:
        result = {"type": "tool_result", "tool_use_id": id_, "content": call.result, "is_error": call.failed}
        yield {"role": "user", "content": [result]}


CLAUDE_CODE_WRITER = Writer(CLAUDE_CODE, "claude", "2.1.330", ("--resume", "{}"), _make)
