"""A conversation as a transcript of Claude Code's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

from registry.domain import Role
from sources.base import Places
from sources.claude_code.client import CLAUDE_CODE
from sources.writing import Call, Carried, Said, Toolbox, Written, called, lines, stamped

_TOOLS = Toolbox(read=("Read", "file_path"), run=("Bash", "command"))


class ClaudeCodeWriter:
    """Writes `projects/<folder>/<session>.jsonl`."""

    client = CLAUDE_CODE
    program = "claude"
    tested = "2.1.330"

    def opens(self, session_id: str) -> tuple[str, ...]:
        """The command that goes on with a session."""
        return (self.program, "--resume", session_id)

    def write(self, talk: Carried, version: str, places: Places, drafts: Path) -> Written:
        """Records in one chain, as the client itself leaves them, and the title."""
        session_id = str(uuid4())
        slot = re.sub("[^a-zA-Z0-9]", "-", talk.folder)
        home = places.folder(("CTXR_CLAUDE_CODE_DIR", "CLAUDE_CONFIG_DIR"), ".claude")
        path = home / "projects" / slot / f"{session_id}.jsonl"
        title = {"type": "custom-title", "customTitle": talk.title, "sessionId": session_id}
        records = [*_records(talk, session_id, version), *([title] if talk.title else [])]
        return Written(session_id, path, {path: lines(records)}, self.opens(session_id))


def _records(talk: Carried, session_id: str, version: str) -> Iterator[dict[str, Any]]:
    parent = None
    for said, time in stamped(talk.messages):
        for message in _records_of(said):
            uuid = str(uuid4())
            yield {
                "parentUuid": parent,
                "isSidechain": False,
                "userType": "external",
                "cwd": talk.folder,
                "sessionId": session_id,
                "version": version,
                "gitBranch": "",
                "type": message["role"],
                "message": message,
                "uuid": uuid,
                "timestamp": time,
            }
            parent = uuid


def _records_of(said: Said) -> Iterator[dict[str, Any]]:
    """A record for each block, those of one answer under one id, then one for each result."""
    if said.role is Role.USER:
        yield {"role": "user", "content": said.text}
        return
    calls = called(said, _TOOLS, "toolu_")
    blocks: list[dict[str, Any]] = [{"type": "text", "text": said.text}] if said.text else []
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
    yield from ({"role": "user", "content": [_result(id_, call)]} for id_, call in calls)


def _result(id_: str, call: Call) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, "content": call.result, "is_error": call.failed}
