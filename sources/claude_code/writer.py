"""A conversation as a transcript of Claude Code's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

from registry.domain import Message, Role
from sources.base import Places
from sources.claude_code.client import CLAUDE_CODE
from sources.writing import Carried, Written, lines, stamped


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
    for message, time in stamped(talk.messages):
        uuid = str(uuid4())
        yield {
            "parentUuid": parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": talk.folder,
            "sessionId": session_id,
            "version": version,
            "gitBranch": "",
            "type": str(message.role),
            "message": _said(message),
            "uuid": uuid,
            "timestamp": time,
        }
        parent = uuid


def _said(message: Message) -> dict[str, Any]:
    if message.role is Role.USER:
        return {"role": "user", "content": message.text}
    return {
        "id": f"msg_{uuid4().hex[:24]}",
        "type": "message",
        "role": "assistant",
        "model": message.more.get("model") or "unknown",
        "content": [{"type": "text", "text": message.text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }
