"""Build the files of Cline and Roo Code: tasks of their extensions, sessions of the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Record = dict[str, Any]

BEGIN = 1_795_331_194_000
SHOP = "/home/ann/shop"
TASK = "1795331194000"
SESSION = "1795331193027_f6538"


def shown(kind: str, text: str = "", seconds: int = 0, *, ask: bool = False, **more: Any) -> Record:
    """Return a message as the task's view shows it."""
    key = "ask" if ask else "say"
    return {"ts": BEGIN + 1000 * seconds, "type": key, key: kind, "text": text, **more}


def working_view() -> list[Record]:
    """Return a task with all usual parts, as its user saw it."""
    request = json.dumps({"request": "…", "tokensIn": 90, "tokensOut": 4, "cacheReads": 3, "cacheWrites": 2})
    return [
        shown("task", "Why is the basket empty? 안녕", 0, images=["data:image/png;base64,AA"]),
        shown("api_req_started", request, 1),
        shown("reasoning", "It returns a new list.", 2),
        shown("text", "I will look.", 3, modelInfo={"modelId": "claude-sonnet-4-6", "providerId": "anthropic"}),
        shown("tool", json.dumps({"tool": "readFile", "path": "basket.py", "content": "return []"}), 4),
        shown("command", "pytest", 5, ask=True),
        shown("command", "pytest", 5),
        shown("command_output", "1 failed", 6),
        shown("command_output", "in 0.1 s", 7),
        shown("text", "half", 8, partial=True),
        shown("followup", json.dumps({"question": "Shall I mend it?", "options": ["Yes"]}), 9, ask=True),
        shown("user_feedback", "Yes", 10),
        shown("error", "quota", 11),
        shown("completion_result", "It makes a new list.HAS_CHANGES", 12),
        shown("completion_result", "", 13, ask=True),
    ]


def message(role: str, *content: Record, seconds: int = 0, **more: Any) -> Record:
    """Return a message as the model got it."""
    at = BEGIN + 1000 * seconds
    return {"id": f"m{seconds}", "role": role, "content": list(content), "ts": at, **more}


def text(words: str) -> Record:
    """Return a text block."""
    return {"type": "text", "text": words}


def working_session() -> list[Record]:
    """Return a session with all usual parts, as the model got it."""
    model = {"modelInfo": {"id": "fake", "provider": "any"}, "metrics": {"inputTokens": 90, "outputTokens": 4}}
    return [
        message("user", text('<user_input mode="act">Why is the basket empty? 안녕</user_input>')),
        message(
            "assistant",
            {"type": "thinking", "thinking": "It returns a new list."},
            text("I will look."),
            {"type": "tool_use", "id": "c1", "name": "read_files", "input": {"path": f"{SHOP}/basket.py"}},
            seconds=1,
            **model,
        ),
        message("user", {"type": "tool_result", "tool_use_id": "c1", "content": [text("return []")]}, seconds=2),
        message(
            "assistant", {"type": "tool_use", "id": "c2", "name": "run", "input": {"command": "pytest"}}, seconds=3
        ),
        message(
            "user",
            {"type": "tool_result", "tool_use_id": "c2", "content": "1 failed", "is_error": True},
            seconds=4,
        ),
        message("assistant", text("It makes a new list."), seconds=5, **model),
    ]


def write_task(store: Path, view: list[Record], *, task: str = TASK) -> Path:
    """Write a task into its folder and into the list of tasks."""
    folder = store / "tasks" / task
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ui_messages.json").write_text(json.dumps(view), encoding="utf-8")
    (store / "state").mkdir(exist_ok=True)
    listed = [{"id": task, "ts": BEGIN, "task": "Why?", "cwdOnTaskInitialization": SHOP}]
    (store / "state" / "taskHistory.json").write_text(json.dumps(listed), encoding="utf-8")
    return folder


def write_session(store: Path, messages: list[Record], *, agent: str = "", **described: Any) -> Path:
    """Write a session of the command line; an agent's is written next to its caller's."""
    folder = store / "sessions" / SESSION
    folder.mkdir(parents=True, exist_ok=True)
    name = agent or SESSION
    description = {"version": 1, "session_id": name, "cwd": SHOP, "started_at": "2026-11-22T07:06:33.074Z", **described}
    (folder / f"{name}.json").write_text(json.dumps(description), encoding="utf-8")
    content = {"version": 1, "sessionId": name, "messages": messages}
    (folder / f"{name}.messages.json").write_text(json.dumps(content), encoding="utf-8")
    return folder
