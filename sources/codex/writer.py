"""A conversation as a rollout of Codex's."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from secrets import token_bytes
from typing import Any
from uuid import UUID

from registry.domain import Role, format_time, now
from sources.base import Places
from sources.codex.client import CODEX
from sources.writing import Carried, Said, Toolbox, Written, called, lines, stamped

_CONTENT = {Role.USER: ("input_text", "user_message"), Role.ASSISTANT: ("output_text", "agent_message")}
_TOOLS = Toolbox(read=("read_file", "path"), run=("shell_command", "command"))


class CodexWriter:
    """Writes `sessions/Y/M/D/rollout-<time>-<id>.jsonl`."""

    client = CODEX
    program = "codex"
    tested = "0.169.0"

    def opens(self, session_id: str) -> tuple[str, ...]:
        """The command that goes on with a session."""
        return (self.program, "resume", session_id)

    def write(self, talk: Carried, version: str, places: Places, drafts: Path) -> Written:
        """The description of the session, then each message for the model and for the list of sessions."""
        session_id, here = str(_uuid7()), now().astimezone()
        home = places.folder(("CTXR_CODEX_DIR", "CODEX_HOME"), ".codex")
        path = home / "sessions" / f"{here:%Y/%m/%d}" / f"rollout-{here:%Y-%m-%dT%H-%M-%S}-{session_id}.jsonl"
        began = format_time(here)
        about = {
            "id": session_id,
            "session_id": session_id,
            "timestamp": began,
            "cwd": talk.folder,
            "originator": "context-registry",
            "cli_version": version,
            "source": "cli",
        }
        records = [{"timestamp": began, "type": "session_meta", "payload": about}]
        records += [record for message, at in stamped(talk.messages) for record in _records(message, at)]
        return Written(session_id, path, {path: lines(records)}, self.opens(session_id))


def _records(message: Said, at: str) -> Iterator[dict[str, Any]]:
    content, event = _CONTENT[message.role]
    if message.text:
        said = {"type": "message", "role": str(message.role), "content": [{"type": content, "text": message.text}]}
        yield {"timestamp": at, "type": "response_item", "payload": said}
        yield {"timestamp": at, "type": "event_msg", "payload": {"type": event, "message": message.text}}
    calls = called(message, _TOOLS)
    for id_, call in calls:
        arguments = json.dumps(call.params, ensure_ascii=False)
        asked = {"type": "function_call", "name": call.name, "arguments": arguments, "call_id": id_}
        yield {"timestamp": at, "type": "response_item", "payload": asked}
    for id_, call in calls:
        told = {"type": "function_call_output", "call_id": id_, "output": call.result}
        yield {"timestamp": at, "type": "response_item", "payload": told}


def _uuid7() -> UUID:
    """48 bits of time in milliseconds, then random ones: Codex sorts by it. Python has it from 3.14 on."""
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(token_bytes(10))
    return UUID(int=value & ~(0xF << 76) & ~(0x3 << 62) | 0x7 << 76 | 0x2 << 62)
