"""Build Goose's database."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

Record = dict[str, Any]

BEGAN = 1_795_331_194
SHOP = "/home/ann/shop"
SESSION = "20261122_1"
_TABLES = (
    "CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', description TEXT NOT "
    "NULL DEFAULT '', session_type TEXT NOT NULL DEFAULT 'user', working_dir TEXT NOT NULL, created_at TIMESTAMP "
    "DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, model_config_json TEXT, "
    "parent_session_id TEXT, total_tokens INTEGER, input_tokens INTEGER, output_tokens INTEGER, "
    "accumulated_total_tokens INTEGER, accumulated_input_tokens INTEGER, accumulated_output_tokens INTEGER, "
    "provider_name TEXT)",
    "CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT NOT "
    "NULL, role TEXT NOT NULL, content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL, metadata_json TEXT)",
)


def message(role: str, *parts: Record, seconds: int = 0, **more: Any) -> Record:
    """Return a message."""
    return {"id": f"m{seconds}", "role": role, "created": BEGAN + seconds, "content": list(parts), **more}


def text(words: str) -> Record:
    """Return a text part."""
    return {"type": "text", "text": words}


def call(key: str, name: str, **given: Any) -> Record:
    """Return a part with a tool call."""
    value = {"name": name, "arguments": given}
    return {"type": "toolRequest", "id": key, "toolCall": {"status": "success", "value": value}}


def result(key: str, words: str, *, is_error: bool = False) -> Record:
    """Return a part with a call's result."""
    value = {"content": [text(words)], "isError": is_error}
    return {"type": "toolResponse", "id": key, "toolResult": {"status": "success", "value": value}}


def working_messages() -> list[Record]:
    """Return a session with all usual parts."""
    return [
        message(
            "user", text("Why is the basket empty? 안녕"), {"type": "image", "data": "AA", "mimeType": "image/png"}
        ),
        message(
            "assistant",
            {"type": "thinking", "thinking": "It returns a new list.", "signature": ""},
            text("I will look."),
            call("c1", "developer__text_editor", path=f"{SHOP}/basket.py", command="view"),
            seconds=1,
        ),
        message("user", result("c1", "return []"), seconds=2),
        message("assistant", call("c2", "developer__shell", command="pytest"), seconds=3),
        message("user", result("c2", "1 failed", is_error=True), seconds=4),
        message("user", text("A summary"), seconds=5, metadata={"userVisible": False, "agentVisible": True}),
        message("assistant", text("It makes a new list."), seconds=6),
    ]


def write(folder: Path, messages: list[Record], *, session: str = SESSION, **described: Any) -> Path:
    """Write a session into the database, replacing its old version."""
    file = folder / "sessions.db"
    session_row = {
        "id": session,
        "working_dir": SHOP,
        "created_at": "2026-11-22 07:06:34",
        "model_config_json": '{"model_name": "fake"}',
        **described,
    }
    with closing(sqlite3.connect(file)) as database, database:
        for table in _TABLES:
            database.execute(table)
        database.execute("DELETE FROM messages WHERE session_id = ?", (session,))
        names, marks = ", ".join(session_row), ", ".join("?" * len(session_row))
        database.execute(f"INSERT OR REPLACE INTO sessions ({names}) VALUES ({marks})", [*session_row.values()])  # noqa: S608
        for each in messages:
            held = each["content"] if isinstance(each["content"], str) else json.dumps(each["content"])
            meta = json.dumps(each["metadata"]) if "metadata" in each else None
            row = (each["id"], session, each["role"], held, each["created"], meta)
            database.execute(
                "INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, metadata_json) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                row,
            )
    return file
