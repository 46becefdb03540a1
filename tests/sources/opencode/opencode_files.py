"""Build OpenCode's database."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Record = dict[str, Any]

BEGIN_MS = int(datetime(2026, 5, 5, 19, 54, tzinfo=UTC).timestamp() * 1000)
SHOP = "/home/ann/shop"

_TABLES = """
CREATE TABLE IF NOT EXISTS session (
  id text PRIMARY KEY, project_id text NOT NULL, workspace_id text, parent_id text, slug text NOT NULL,
  directory text NOT NULL, title text NOT NULL, version text NOT NULL, share_url text, revert text, permission text,
  time_created integer NOT NULL, time_updated integer NOT NULL, time_compacting integer, time_archived integer);
CREATE TABLE IF NOT EXISTS message (
  id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL,
  data text NOT NULL);
CREATE TABLE IF NOT EXISTS part (
  id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, data text NOT NULL);
CREATE INDEX IF NOT EXISTS part_message_id_id_idx ON part (message_id, id);
CREATE INDEX IF NOT EXISTS part_session_idx ON part (session_id);
CREATE INDEX IF NOT EXISTS message_session_idx ON message (session_id, time_created, id);
CREATE TABLE IF NOT EXISTS event (
  id text PRIMARY KEY, aggregate_id text NOT NULL, seq integer NOT NULL, type text NOT NULL, data text NOT NULL);
CREATE TABLE IF NOT EXISTS account (id text PRIMARY KEY, access_token text);
INSERT OR IGNORE INTO account VALUES ('a', 'sk-secret');
"""


@dataclass
class Dialogue:
    """A session with its messages, each with its parts."""

    number: int = 1
    more: Record = field(default_factory=dict)
    messages: list[tuple[Record, list[Record]]] = field(default_factory=list)
    at: int = BEGIN_MS
    changes: list[tuple[str, Record]] = field(default_factory=list)

    @property
    def session(self) -> str:
        """Return an id in the client's form."""
        return f"ses_20649cb74ffe{self.number:03}"

    def info(self) -> Record:
        """Return the session's record."""
        time = {"created": BEGIN_MS, "updated": self.at}
        known = {
            "id": self.session,
            "projectID": "global",
            "directory": SHOP,
            "title": "Basket bug",
            "version": "1.3.10",
        }
        return known | {"time": time} | self.more

    def later(self) -> int:
        """Return the next time, in milliseconds."""
        self.at += 10_000
        return self.at

    def message(self, role: str, *parts: Record, **more: Any) -> str:
        """Add a message with its parts, and return its id."""
        message_id = f"msg_{self.number:03}_{len(self.changes):03}"
        known: Record = {"id": message_id, "sessionID": self.session, "role": role, "time": {"created": self.later()}}
        named = [{"id": f"prt_{message_id}_{place:03}"} | self._timed(part) for place, part in enumerate(parts)]
        self.messages.append((known | more, named))
        self.changes.append(("message.updated.1", {"sessionID": self.session, "info": known | more}))
        return message_id

    def remove(self, *ids: str) -> None:
        """Delete messages, as the client does at the next prompt after `/undo`."""
        self.messages = [one for one in self.messages if one[0]["id"] not in ids]
        self.changes += [("message.removed.1", {"sessionID": self.session, "messageID": id_}) for id_ in ids]

    def _timed(self, part: Record) -> Record:
        time = {"time": {"start": self.later()}}
        return part | ({"state": part["state"] | time} if "state" in part else time)

    def user(self, text: str, *parts: Record, **more: Any) -> str:
        """Add a user message."""
        model = {"providerID": "anthropic", "modelID": "claude-sonnet-4-6"}
        return self.message("user", {"type": "text", "text": text}, *parts, agent="build", model=model, **more)

    def answer(self, *parts: Record, **more: Any) -> str:
        """Add a finished answer."""
        tokens = {"input": 90, "output": 4, "reasoning": 0, "cache": {"read": 7, "write": 0}}
        known = {"modelID": "claude-sonnet-4-6", "providerID": "anthropic", "tokens": tokens, "mode": "build"}
        time = {"created": self.later(), "completed": self.later()}
        return self.message("assistant", *parts, **(known | {"time": time, "finish": "stop"} | more))


def text(words: str, **more: Any) -> Record:
    """Return a text part."""
    return {"type": "text", "text": words, **more}


def tool(name: str, given: Record, output: Any = "", status: str = "completed", **more: Any) -> Record:
    """Return a tool call with its result."""
    key = "error" if status == "error" else "output"
    state = {"status": status, "input": given, key: output, "title": name, "metadata": {}}
    return {"type": "tool", "tool": name, "callID": "call_0", "state": state | more}


def working_dialogue(number: int = 1) -> Dialogue:
    """Return a session with all usual parts."""
    dialogue = Dialogue(number)
    picture = {"type": "file", "mime": "image/png", "filename": "shot.png", "url": "data:image/png;base64,AAAA"}
    dialogue.user("Why does the basket lose its items? 안녕", text("Called the Read tool", synthetic=True), picture)
    dialogue.answer(
        {"type": "step-start", "snapshot": "f12e"},
        {"type": "reasoning", "text": "The basket first."},
        {"type": "reasoning", "text": "", "metadata": {"anthropic": {"redactedData": "x"}}},
        text("I will look."),
        tool("read", {"filePath": f"{SHOP}/basket.py"}, "return []"),
        {"type": "step-finish", "reason": "tool-calls", "cost": 0},
    )
    dialogue.answer(
        tool("bash", {"command": "pytest"}, "1 failed", metadata={"exit": 1}),
        tool("edit", {"filePath": "a"}, "The user rejected permission to use this specific tool call.", "error"),
        tool("task", {"description": "Find baskets"}, "Three.", metadata={"sessionId": "ses_agent"}),
        text("It makes a new list.\n\n```python\nreturn items\n```"),
        {"type": "patch", "hash": "a1", "files": ["basket.py"]},
    )
    return dialogue


def write_database(root: Path, *dialogues: Dialogue, name: str = "opencode.db", is_crashed: bool = False) -> Path:
    """Write sessions into the database, replacing their old versions; if crashed, changes stay in the WAL."""
    root.mkdir(parents=True, exist_ok=True)
    file = root / name
    working = root / "scratch" / name if is_crashed else file
    if is_crashed:
        working.parent.mkdir()
        shutil.copyfile(file, working)
    with closing(sqlite3.connect(working)) as connection:
        connection.execute("PRAGMA journal_mode=wal")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("PRAGMA synchronous=off")
        with connection:
            connection.executescript(_TABLES)
            for dialogue in dialogues:
                _insert(connection, dialogue)
        if is_crashed:
            for each in working.parent.iterdir():
                shutil.copyfile(each, root / each.name)
    shutil.rmtree(root / "scratch", ignore_errors=True)
    return file


def write_files(root: Path, *dialogues: Dialogue) -> Path:
    """Write sessions as versions before 1.2 did: a file for each session, message and part."""
    for dialogue in dialogues:
        documents: dict[str, Record] = {f"session/global/{dialogue.session}": dialogue.info()}
        for message, parts in dialogue.messages:
            documents[f"message/{dialogue.session}/{message['id']}"] = message
            documents |= {f"part/{message['id']}/{part['id']}": part for part in parts}
        for name, document in documents.items():
            file = root / "storage" / f"{name}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(document), encoding="utf-8")
    return root


def row_of(dialogue: Dialogue) -> Record:
    """Return a session's row."""
    info = dialogue.info()
    return {
        **{"id": info["id"], "project_id": "global", "slug": "shiny-meadow", "parent_id": info.get("parentID")},
        **{key: info[key] for key in ("directory", "title", "version")},
        **{f"time_{key}": value for key, value in info["time"].items()},
        "revert": json.dumps(info["revert"]) if "revert" in info else None,
    }


def _insert(connection: sqlite3.Connection, dialogue: Dialogue) -> None:
    _replace(connection, "session", row_of(dialogue))
    for table in ("message", "part"):
        connection.execute(f"DELETE FROM {table} WHERE session_id = ?", (dialogue.session,))  # noqa: S608
    for seq, (kind, data) in enumerate(dialogue.changes):
        event = {"id": f"evt_{dialogue.number}_{seq}", "aggregate_id": dialogue.session, "seq": seq, "type": kind}
        _replace(connection, "event", event | {"data": json.dumps(data)})
    for message, parts in dialogue.messages:
        common = {
            "session_id": dialogue.session,
            "time_created": message["time"]["created"],
            "time_updated": dialogue.at,
        }
        data = {key: value for key, value in message.items() if key not in ("id", "sessionID")}
        _replace(connection, "message", {"id": message["id"], **common, "data": json.dumps(data)})
        for part in parts:
            data = {key: value for key, value in part.items() if key != "id"}
            ids = {"id": part["id"], "message_id": message["id"]}
            _replace(connection, "part", {**ids, **common, "data": json.dumps(data)})


def _replace(connection: sqlite3.Connection, table: str, row: Record) -> None:
    names, marks = ", ".join(row), ", ".join("?" * len(row))
    statement = f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({marks})"  # noqa: S608
    connection.execute(statement, tuple(row.values()))
