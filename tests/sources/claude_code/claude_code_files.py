"""Build Claude Code's files record by record, from the description of its format."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Record = dict[str, Any]

BEGIN = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
CWD = "/home/ann/shop"


def session_id(number: int) -> str:
    """Return an id in the client's form."""
    return str(uuid.UUID(int=0x5E55_0000_0000_4000_8000_0000_0000_0000 + number))


def folder_name(cwd: str) -> str:
    """Return the client's folder name of a project."""
    return "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in cwd)


@dataclass
class Dialogue:
    """The records of one transcript; each continues the one before, or `parent`."""

    session_id: str
    cwd: str = CWD
    version: str = "2.1.140"
    common: Record = field(default_factory=dict)
    """Fields that every record carries."""
    records: list[Record] = field(default_factory=list)
    parent: str | None = None
    at: datetime = BEGIN

    def add(self, kind: str, **fields: Any) -> str:
        """Add a record to the chain, and return its uuid."""
        self.at += timedelta(seconds=10)
        here = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.session_id}/{len(self.records)}"))
        envelope = {
            "parentUuid": self.parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": self.cwd,
            "sessionId": self.session_id,
            "version": self.version,
            "gitBranch": "main",
            "type": kind,
            "uuid": here,
            "timestamp": self.at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
        self.records.append(envelope | self.common | fields)
        self.parent = self.records[-1]["uuid"]
        return self.parent

    def aside(self, kind: str, **fields: Any) -> None:
        """Add a record outside the chain."""
        self.records.append({"type": kind, **fields})

    def user(self, content: Any, **fields: Any) -> str:
        """Add a user message, or one of the client in the user's name."""
        return self.add("user", message={"role": "user", "content": content}, **fields)

    def assistant(self, *blocks: Record, message_id: str, usage: Mapping[str, int] | None = None, **fields: Any) -> str:
        """Add one record of an answer."""
        message = {
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "model": fields.pop("model", "claude-opus-4-5"),
            "content": list(blocks),
            "stop_reason": None,
            "usage": {"input_tokens": 12, "output_tokens": 1, **(usage or {})},
        }
        return self.add("assistant", message=message, requestId=f"req_{message_id}", **fields)

    def says(self, text: str, message_id: str, **fields: Any) -> str:
        """Add an answer, or a part of one, with text."""
        return self.assistant({"type": "text", "text": text}, message_id=message_id, **fields)

    def calls(self, name: str, params: Any, call_id: str, message_id: str, **fields: Any) -> str:
        """Add a tool call."""
        block = {"type": "tool_use", "id": call_id, "name": name, "input": params}
        return self.assistant(block, message_id=message_id, **fields)

    def result(self, call_id: str, content: Any, structured: Any = None, *, is_error: bool = False) -> str:
        """Add a tool's result."""
        block = {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": is_error}
        return self.user([block], toolUseResult=structured)

    def lines(self) -> bytes:
        """Return the content of the transcript's file."""
        return b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in self.records)


def write(root: Path, dialogue: Dialogue, *, stem: str | None = None, project: str = CWD) -> Path:
    """Write a transcript to its place below the configuration folder."""
    file = root / "projects" / folder_name(project) / f"{stem or dialogue.session_id}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(dialogue.lines())
    return file


def write_agent(root: Path, dialogue: Dialogue, agent: str, meta: Record | None = None, *, under: str = "") -> Path:
    """Write a sub-agent's transcript where clients since 2.1.2 store it."""
    folder = root / "projects" / folder_name(CWD) / dialogue.session_id / "subagents" / under
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"agent-{agent}.jsonl"
    file.write_bytes(dialogue.lines())
    if meta is not None:
        file.with_name(f"agent-{agent}.meta.json").write_text(json.dumps(meta), encoding="utf-8")
    return file


def working_session(number: int = 1) -> Dialogue:
    """Return a usual session: a question, thoughts, tools, an answer in several records, an error, a second turn."""
    talk = Dialogue(session_id(number))
    talk.aside("file-history-snapshot", messageId="m-1", snapshot={"messageId": "m-1", "trackedFileBackups": {}})
    talk.user("Why does the basket lose its items?", promptSource="typed", permissionMode="default")
    talk.assistant({"type": "thinking", "thinking": "", "signature": "c2lnbmVk"}, message_id="msg_1")
    talk.assistant({"type": "thinking", "thinking": "Look at the store.", "signature": "x"}, message_id="msg_1")
    talk.says("I read the basket first.", "msg_1", usage={"output_tokens": 20})
    talk.calls("Read", {"file_path": f"{CWD}/src/basket.py"}, "toolu_1", "msg_1", usage={"output_tokens": 57})
    talk.add("progress", data={"type": "bash_progress", "output": "…"}, toolUseID="toolu_1")
    talk.result("toolu_1", "1\tdef basket():\n2\t    return []", {"type": "text", "file": {"filePath": "basket.py"}})
    talk.calls("Bash", {"command": "pytest -q"}, "toolu_2", "msg_2")
    talk.result("toolu_2", [{"type": "text", "text": "1 failed"}], "Error: exit 1", is_error=True)
    talk.says("It makes a new list each time.", "msg_3")
    talk.add("system", subtype="turn_duration", durationMs=1200, isMeta=False)
    talk.user("Then fix it, 고쳐 줘")
    talk.says("Done.", "msg_4")
    return talk
