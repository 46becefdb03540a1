"""Build Qwen Code's files: chats as lines that are linked by their ids."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Record = dict[str, Any]

BEGIN = datetime(2026, 11, 3, 9, 0, tzinfo=UTC)
SHOP = "/home/ann/shop"
SESSION = "f3f75e95-30cf-4460-bc93-399752a18743"


@dataclass
class Chat:
    """The records of one chat."""

    session: str = SESSION
    lines: list[Record] = field(default_factory=list)
    parent: str | None = None

    def add(self, kind: str, **more: Any) -> Record:
        """Add a record of any type that follows the last."""
        uuid = f"r{len(self.lines)}"
        at = (BEGIN + timedelta(seconds=10 * len(self.lines))).isoformat(timespec="milliseconds")
        common = {"sessionId": self.session, "timestamp": at.replace("+00:00", "Z"), "cwd": SHOP, "version": "0.24.4"}
        record = {"uuid": uuid, "parentUuid": self.parent, **common, "type": kind, **more}
        self.lines.append(record)
        self.parent = uuid
        return record

    def user(self, *texts: str, **more: Any) -> Record:
        """Add a user message."""
        parts = [{"text": text} for text in texts]
        return self.add("user", **{"provenance": "real_user", "message": {"role": "user", "parts": parts}, **more})

    def assistant(self, *parts: Record, **more: Any) -> Record:
        """Add an answer of thoughts, texts and calls."""
        usage = {"promptTokenCount": 90, "candidatesTokenCount": 4, "totalTokenCount": 94}
        content = {"role": "model", "parts": list(parts)}
        return self.add("assistant", model="qwen3-coder", message=content, usageMetadata=usage, **more)

    def result(self, call: str, output: str, status: str = "success") -> Record:
        """Add the result of a call."""
        response = {"error" if status == "error" else "output": output}
        part = {"functionResponse": {"id": call, "name": "any", "response": response}}
        result = {"callId": call, "status": status, "resultDisplay": output}
        return self.add("tool_result", message={"role": "user", "parts": [part]}, toolCallResult=result)

    def noted(self, subtype: str, **payload: Any) -> Record:
        """Add an internal record of the client."""
        return self.add("system", subtype=subtype, systemPayload=payload)


def call(key: str, name: str, **args: Any) -> Record:
    """Return a part with a tool call."""
    return {"functionCall": {"id": key, "name": name, "args": args}}


def working_chat() -> Chat:
    """Return a chat with all usual parts."""
    chat = Chat()
    chat.noted("at_command", filesRead=["basket.py"], status="success", userText="Why is @basket.py empty? 안녕")
    chat.user(
        "Why is @basket.py empty? 안녕",
        "\n--- Content from referenced files ---",
        "\nContent from basket.py:\n",
        "return []",
        "\n--- End of content ---",
    )
    chat.noted("ui_telemetry", uiEvent={"event.name": "qwen-code.api_response"})
    chat.assistant(
        {"text": "It returns a new list.", "thought": True},
        {"text": "I will look."},
        call("c1", "read_file", file_path=f"{SHOP}/basket.py"),
    )
    chat.result("c1", "return []")
    chat.assistant(call("c2", "run_shell_command", command="pytest"))
    chat.result("c2", "1 failed", "error")
    chat.assistant({"text": "It makes a new list."})
    return chat


def write(root: Path, chat: Chat, *, agent_of: str = "") -> Path:
    """Write a chat into its folder, a sub-agent's into its session's folder."""
    project = root / "projects" / "-home-ann-shop"
    folder = project / "subagents" / agent_of if agent_of else project / "chats"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{chat.session}.jsonl"
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in chat.lines), encoding="utf-8")
    return file
