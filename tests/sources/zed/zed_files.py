"""Build Zed's database of threads."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import zstandard

Record = dict[str, Any]

SHOP = "/home/ann/shop"
THREAD = "5f0c3b52-0d9e-4f3a-9d1b-0f2e7c9b8a11"
AT, LATER = "2026-11-03T09:00:00+00:00", "2026-11-03T09:30:00+00:00"
_TABLE = (
    "CREATE TABLE IF NOT EXISTS threads (id TEXT PRIMARY KEY, summary TEXT NOT NULL, updated_at TEXT NOT NULL, "
    "data_type TEXT NOT NULL, data BLOB NOT NULL, parent_id TEXT, folder_paths TEXT, folder_paths_order TEXT, "
    "created_at TEXT)"
)


def user(*blocks: Record, key: str = "u1") -> Record:
    """Return a user message."""
    return {"User": {"id": key, "content": list(blocks)}}


def agent(*blocks: Record, results: Record | None = None) -> Record:
    """Return an answer with the results of its calls."""
    return {"Agent": {"content": list(blocks), "tool_results": results or {}}}


def call(key: str, name: str, **given: Any) -> Record:
    """Return a tool call."""
    return {"ToolUse": {"id": key, "name": name, "raw_input": json.dumps(given), "input": given}}


def result(key: str, content: Any, *, is_error: bool = False) -> Record:
    """Return a call's result."""
    return {key: {"tool_use_id": key, "tool_name": "any", "is_error": is_error, "content": content}}


def working_messages() -> list[Any]:
    """Return a thread with all usual parts."""
    mention = {"Mention": {"uri": {"File": {"abs_path": f"{SHOP}/basket.py"}}, "content": "return []"}}
    return [
        user({"Text": "Why is the basket empty? 안녕"}, mention),
        agent(
            {"Thinking": {"text": "It returns a new list.", "signature": "s"}},
            {"RedactedThinking": "x"},
            {"Text": "I will look."},
            call("c1", "read_file", path=f"{SHOP}/basket.py"),
            call("c2", "terminal", command="pytest"),
            results=result("c1", {"Text": "return []"}) | result("c2", [{"Text": "1 failed"}], is_error=True),
        ),
        "Resume",
        agent({"Text": "It makes a new list."}),
    ]


def thread(messages: list[Any], **more: Any) -> Record:
    """Return a thread as a row contains it."""
    usage = {"u1": {"input_tokens": 90, "output_tokens": 4}}
    model = {"provider": "anthropic", "model": "claude-sonnet-4-6"}
    known = {"version": "0.3.0", "title": "The empty basket", "updated_at": AT, "model": model}
    return {**known, "messages": messages, "request_token_usage": usage, **more}


def write(root: Path, key: str, kept: Record | bytes, *, at: str = AT, kind: str = "zstd", **more: Any) -> Path:
    """Write a row; `more` are its columns."""
    file = root / "threads" / "threads.db"
    file.parent.mkdir(parents=True, exist_ok=True)
    data = kept if isinstance(kept, bytes) else json.dumps(kept).encode()
    if kind == "zstd" and not isinstance(kept, bytes):
        data = zstandard.compress(data)
    row = {"folder_paths": f"/home/ann/api\n{SHOP}", "folder_paths_order": "1,0", "created_at": AT, **more}
    columns = {"id": key, "summary": "The empty basket", "updated_at": at, "data_type": kind, "data": data, **row}
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(_TABLE)
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        database.execute(f"INSERT OR REPLACE INTO threads ({names}) VALUES ({marks})", [*columns.values()])  # noqa: S608
    return file
