"""Build Codex's files in the formats of its three generations."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Record = dict[str, Any]

BEGIN = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
CWD = "/home/ann/shop"


def thread_id(number: int) -> str:
    """Return an id in the client's form."""
    return str(uuid.UUID(int=0x0197_0000_0000_7000_8000_0000_0000_0000 + number))


@dataclass
class Rollout:
    """The lines of one rollout file."""

    thread: str
    records: list[Record] = field(default_factory=list)
    at: datetime = BEGIN
    ordinals: bool = False

    def add(self, kind: str, **payload: Any) -> None:
        """Add a line in its envelope."""
        self.at += timedelta(seconds=10)
        record = {"timestamp": self.at.isoformat().replace("+00:00", "Z"), "type": kind, "payload": payload}
        self.records.append(record | ({"ordinal": len(self.records)} if self.ordinals else {}))

    def meta(self, **more: Any) -> None:
        """Add the first line."""
        given = {"id": self.thread, "cwd": CWD, "originator": "codex_cli_rs", "cli_version": "0.118.0", "source": "cli"}
        self.add("session_meta", **(given | {"git": {"branch": "main"}} | more))

    def turn(self, turn_id: str, **more: Any) -> None:
        """Add the beginning of a turn."""
        self.add("turn_context", **({"turn_id": turn_id, "cwd": CWD, "model": "gpt-5.2-codex"} | more))

    def event(self, kind: str, **payload: Any) -> None:
        """Add an event of the user interface."""
        self.add("event_msg", type=kind, **payload)

    def item(self, kind: str, item_id: str, turn_id: str = "t1", **fields: Any) -> None:
        """Add a completed item of paginated history."""
        item = {"type": kind, "id": item_id, **fields}
        self.event("item_completed", thread_id=self.thread, turn_id=turn_id, item=item, completed_at_ms=1)

    def message(self, role: str, text: str, **more: Any) -> None:
        """Add a message of the model traffic."""
        kind = "output_text" if role == "assistant" else "input_text"
        self.add("response_item", type="message", role=role, content=[{"type": kind, "text": text}], **more)

    def call(self, name: str, arguments: Any, call_id: str, output: Any = None) -> None:
        """Add a call of the model traffic, and its output if given."""
        given = json.dumps(arguments)
        self.add("response_item", type="function_call", name=name, arguments=given, call_id=call_id)
        if output is not None:
            self.add("response_item", type="function_call_output", call_id=call_id, output=output)

    def lines(self) -> bytes:
        """Return the content of the rollout's file."""
        return b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in self.records)


def write(root: Path, rollout: Rollout, *, day: str = "2026/05/04", suffix: str = "", segment: str = "") -> Path:
    """Write a rollout into its dated folder, or with `day=""` to the archive."""
    folder = root / "sessions" / day if day else root / "archived_sessions"
    folder.mkdir(parents=True, exist_ok=True)
    time = rollout.at.strftime("%Y-%m-%dT%H-%M-%S")
    file = folder / f"rollout-{time}-{rollout.thread}{segment}.jsonl{suffix}"
    file.write_bytes(rollout.lines())
    return file


def legacy(number: int = 1) -> Rollout:
    """Return a thread with its texts in events and again in the model traffic."""
    rollout = Rollout(thread_id(number))
    rollout.meta()
    rollout.message("developer", "<permissions instructions>Ask first</permissions instructions>")
    rollout.message("user", f"# AGENTS.md instructions for {CWD}\n\nUse tabs")
    rollout.message("user", f"<environment_context>\n  <cwd>{CWD}</cwd>\n</environment_context>")
    rollout.event("task_started", turn_id="t1")
    rollout.turn("t1")
    rollout.message("user", "Why does the basket lose its items?")
    rollout.event("user_message", message="Why does the basket lose its items?", images=[])
    rollout.event("agent_reasoning", text="**Reading** the basket")
    rollout.add("response_item", type="reasoning", summary=[{"type": "summary_text", "text": "**Reading** the basket"}],
                content=None, encrypted_content="gAAA")  # fmt: skip
    rollout.call("shell", {"command": ["bash", "-lc", "cat basket.py"]}, "call_1",
                 json.dumps({"output": "return []", "metadata": {"exit_code": 0}}))  # fmt: skip
    rollout.call("shell", {"command": ["pytest"]}, "call_2",
                 json.dumps({"output": "1 failed", "metadata": {"exit_code": 1}}))  # fmt: skip
    rollout.event("token_count", info=None)
    rollout.event("agent_message", message="It makes a new list.", phase="final_answer")
    rollout.message("assistant", "It makes a new list.")
    return rollout


def flat(number: int = 2) -> Rollout:
    """Return a thread of before mid-2025: no envelopes, and a header line."""
    rollout = Rollout(thread_id(number))
    content = [{"type": "input_text", "text": "Hello, 안녕"}]
    rollout.records = [
        {"id": rollout.thread, "timestamp": "2025-05-04T09:00:00Z", "instructions": None, "git": {"branch": "old"}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": content},
        {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "call_1"},
        {"type": "function_call_output", "call_id": "call_1", "output": "basket.py"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One file."}]},
    ]
    return rollout


def paginated(number: int = 3) -> Rollout:
    """Return a thread of a version that writes items and the older events."""
    rollout = Rollout(thread_id(number), ordinals=True)
    rollout.meta(history_mode="paginated", cli_version="0.153.0")
    rollout.turn("t1")
    picture = {"type": "local_image", "path": "basket.png"}
    rollout.item("UserMessage", "i1", content=[picture, {"type": "text", "text": "Fix the basket"}])
    rollout.event("user_message", message="Fix the basket", images=[])
    rollout.message("user", "Fix the basket")
    rollout.item("Reasoning", "i2", summary_text=["Thinking about lists"], raw_content=[])
    rollout.add(
        "response_item", type="custom_tool_call", name="exec", input="run('ls'); run('pytest')", call_id="call_1"
    )
    rollout.item("commandExecution", "i3", command="ls", cwd=CWD, exit_code=0, aggregated_output="basket.py")
    rollout.item("CommandExecution", "i4", command="pytest", cwd=CWD, exit_code=1, aggregated_output="1 failed")
    rollout.add("response_item", type="custom_tool_call_output", call_id="call_1", output="basket.py 1 failed")
    rollout.item("FileChange", "i5", changes={f"{CWD}/basket.py": {"type": "update"}}, status="completed")
    rollout.item("McpToolCall", "i6", server="registry", tool="extract", arguments={"text": "basket"},
                 result={"content": [{"type": "text", "text": "nothing"}]})  # fmt: skip
    rollout.call("update_plan", {"plan": []}, "call_2", "Plan updated")
    rollout.item("AgentMessage", "i7", content=[{"type": "Text", "text": "Fixed."}], phase="final_answer")
    rollout.event("agent_message", message="Fixed.")
    return rollout
