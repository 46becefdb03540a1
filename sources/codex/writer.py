"""Write a conversation as a rollout of Codex."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from secrets import token_bytes
from uuid import UUID

from registry.domain import Role, format_time, now
from sources.base import Places
from sources.clients import CODEX
from sources.writing import Json, NewSession, Talk, TalkPart, Tools, Writer, calls_for, json_lines, with_times

_CONTENT = {Role.USER: ("input_text", "user_message"), Role.ASSISTANT: ("output_text", "agent_message")}
_TOOLS = Tools(read=("read_file", "path"), run=("shell_command", "command"))


def _make(talk: Talk, version: str, places: Places, _: Path) -> NewSession:
    """Make `sessions/Y/M/D/rollout-<time>-<id>.jsonl`: meta data, then each message for the model and for the list."""
    session_id, here = str(_uuid7()), now().astimezone()
    folder = CODEX.history_in(places) / "sessions" / f"{here:%Y/%m/%d}"
    path = folder / f"rollout-{here:%Y-%m-%dT%H-%M-%S}-{session_id}.jsonl"
    began = format_time(here)
    meta = {
        "id": session_id,
        "session_id": session_id,
        "timestamp": began,
        "cwd": talk.folder,
        "originator": "context-registry",
        "cli_version": version,
        "source": "cli",
    }
    records = [{"timestamp": began, "type": "session_meta", "payload": meta}]
    for message, at in with_times(talk.messages):
        records += ({"timestamp": at, "type": kind, "payload": payload} for kind, payload in _payloads(message))
    return NewSession(session_id, path, json_lines(records))


def _payloads(message: TalkPart) -> Iterator[tuple[str, Json]]:
    content, event = _CONTENT[message.role]
    if message.text:
        block = {"type": content, "text": message.text}
        yield "response_item", {"type": "message", "role": str(message.role), "content": [block]}
        yield "event_msg", {"type": event, "message": message.text}
    calls = calls_for(message, _TOOLS)
    for id_, call in calls:
        arguments = json.dumps(call.params, ensure_ascii=False)
        yield "response_item", {"type": "function_call", "name": call.name, "arguments": arguments, "call_id": id_}
    for id_, call in calls:
        yield "response_item", {"type": "function_call_output", "call_id": id_, "output": call.result}


def _uuid7() -> UUID:
    """Return 48 bits of time in milliseconds, then random ones: Codex sorts by it. Python has it from 3.14 on."""
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(token_bytes(10))
    return UUID(int=value & ~(0xF << 76) & ~(0x3 << 62) | 0x7 << 76 | 0x2 << 62)


CODEX_WRITER = Writer(CODEX, "codex", "0.169.0", ("resume", "{}"), _make)
