"""A conversation as a chat of Qwen Code's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

from registry.domain import Role, format_time, now
from sources.base import Places
from sources.qwen.client import QWEN_CODE
from sources.writing import Call, Carried, Said, Toolbox, Written, called, lines, stamped

_TOOLS = Toolbox(read=("read_file", "file_path"), run=("run_shell_command", "command"))


class QwenWriter:
    """Writes `projects/<folder>/chats/<session>.jsonl`."""

    client = QWEN_CODE
    program = "qwen"
    tested = "0.24.4"

    def opens(self, session_id: str) -> tuple[str, ...]:
        """The command that goes on with a session."""
        return (self.program, "--resume", session_id)

    def write(self, talk: Carried, version: str, places: Places, drafts: Path) -> Written:
        """Records in one chain, as the client itself leaves them, and the title."""
        session_id = str(uuid4())
        slot = re.sub("[^a-zA-Z0-9]", "-", talk.folder)
        home = places.folder(("CTXR_QWEN_CODE_DIR", "QWEN_HOME"), ".qwen")
        path = home / "projects" / slot / "chats" / f"{session_id}.jsonl"
        common = {"sessionId": session_id, "cwd": talk.folder, "version": version}
        records = _chained([*_messages(talk), *_title(talk)], common)
        return Written(session_id, path, {path: lines(records)}, self.opens(session_id))


def _messages(talk: Carried) -> Iterator[dict[str, Any]]:
    for message, time in stamped(talk.messages):
        for record in _question(message) if message.role is Role.USER else _answer(message):
            yield {"timestamp": time, **record}


def _question(message: Said) -> Iterator[dict[str, Any]]:
    yield {"type": "user", "message": {"role": "user", "parts": [{"text": message.text}]}}


def _answer(message: Said) -> Iterator[dict[str, Any]]:
    calls = called(message, _TOOLS)
    parts: list[dict[str, Any]] = [{"text": message.text}] if message.text else []
    parts += [{"functionCall": {"id": id_, "name": call.name, "args": call.params}} for id_, call in calls]
    yield {"type": "assistant", "model": "unknown", "message": {"role": "model", "parts": parts}}
    for id_, call in calls:
        yield {"type": "tool_result", **_result(id_, call)}


def _result(id_: str, call: Call) -> dict[str, Any]:
    told = {"error" if call.failed else "output": call.result}
    response = {"id": id_, "name": call.name, "response": told}
    return {
        "message": {"role": "user", "parts": [{"functionResponse": response}]},
        "toolCallResult": {
            "callId": id_,
            "status": "error" if call.failed else "success",
            "resultDisplay": call.result,
        },
    }


def _title(talk: Carried) -> Iterator[dict[str, Any]]:
    if talk.title:
        told = {"customTitle": talk.title, "titleSource": "auto"}
        yield {"timestamp": format_time(now()), "type": "system", "subtype": "custom_title", "systemPayload": told}


def _chained(records: list[dict[str, Any]], common: dict[str, str]) -> Iterator[dict[str, Any]]:
    parent = None
    for record in records:
        uuid = str(uuid4())
        yield {"uuid": uuid, "parentUuid": parent, **common, **record}
        parent = uuid
