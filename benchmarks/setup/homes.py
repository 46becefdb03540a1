"""Write home folders with large, reproducible histories of several clients."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.setup.conversations import Message, conversation

MESSAGES_EACH = 20
LENGTHS = range(500, 701)
"""Characters of a message, 600 on average."""
CALLS_TOOL_EVERY = 5
OUTPUT = "basket.py  orders.py  test_orders.py  " * 20
PROJECTS = 30

Record = dict[str, Any]


def write_home(home: Path, sessions: Mapping[str, int]) -> None:
    """Write each client's store with a number of sessions, each of `MESSAGES_EACH` texts and some tool calls."""
    for client, count in sessions.items():
        WRITERS[client](home, count)


def _write_claude_code(home: Path, count: int) -> None:
    for number in range(count):
        session_id = str(uuid.UUID(int=number))
        file = home / ".claude" / "projects" / f"-home-ann-shop-{number % PROJECTS}" / f"{session_id}.jsonl"
        _write_lines(file, _claude_code_records(session_id, number))


def _claude_code_records(session_id: str, number: int) -> Iterator[Record]:
    parent = None
    for place, (role, content, moment) in enumerate(_claude_code_contents(number)):
        here = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{session_id}/{place}"))
        yield {
            "type": role,
            "uuid": here,
            "parentUuid": parent,
            "sessionId": session_id,
            "cwd": _cwd(number),
            "version": "2.1.140",
            "timestamp": moment,
            "message": {"id": f"msg_{number}_{place}", "role": role, "content": content},
        }
        parent = here


def _claude_code_contents(number: int) -> Iterator[tuple[str, Any, str]]:
    for place, message in enumerate(_messages(number)):
        text, moment = message["text"], message["timestamp"]
        if message["role"] == "user":
            yield "user", text, moment
            continue
        yield "assistant", [{"type": "text", "text": text}], moment
        if place % CALLS_TOOL_EVERY == 0:
            call = {"type": "tool_use", "id": f"toolu_{place}", "name": "Bash", "input": {"command": "ls"}}
            yield "assistant", [call], moment
            yield "user", [{"type": "tool_result", "tool_use_id": f"toolu_{place}", "content": OUTPUT}], moment


def _write_codex(home: Path, count: int) -> None:
    for number in range(count):
        thread = str(uuid.UUID(int=0x0197_0000_0000_7000_8000_0000_0000_0000 + number))
        day = home / ".codex" / "sessions" / "2026" / f"{number % 12 + 1:02}" / f"{number % 28 + 1:02}"
        _write_lines(day / f"rollout-2026-05-04T09-00-00-{thread}.jsonl", _codex_records(thread, number))


def _codex_records(thread: str, number: int) -> Iterator[Record]:
    messages = _messages(number)
    meta = {"id": thread, "cwd": _cwd(number), "originator": "codex_cli_rs", "cli_version": "0.118.0", "source": "cli"}
    yield {"timestamp": messages[0]["timestamp"], "type": "session_meta", "payload": meta}
    for place, message in enumerate(messages):
        for kind, payload in _codex_payloads(message, place):
            yield {"timestamp": message["timestamp"], "type": kind, "payload": payload}


def _codex_payloads(message: Message, place: int) -> Iterator[tuple[str, Record]]:
    """Yield each text twice, as Codex does: as the event shown and as the model's traffic."""
    is_user = message["role"] == "user"
    content = [{"type": "input_text" if is_user else "output_text", "text": message["text"]}]
    yield "response_item", {"type": "message", "role": message["role"], "content": content}
    yield "event_msg", {"type": "user_message" if is_user else "agent_message", "message": message["text"]}
    if not is_user and place % CALLS_TOOL_EVERY == 0:
        call = {"type": "function_call", "name": "shell", "arguments": '{"command": ["ls"]}', "call_id": f"c{place}"}
        yield "response_item", call
        yield "response_item", {"type": "function_call_output", "call_id": f"c{place}", "output": OUTPUT}


def _write_cursor(home: Path, count: int) -> None:
    database = home / ".config" / "Cursor" / "User" / "globalStorage" / "state.vscdb"
    database.parent.mkdir(parents=True)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("PRAGMA journal_mode=wal")
        for table in ("ItemTable", "cursorDiskKV"):
            connection.execute(f"CREATE TABLE {table} (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        for number in range(count):
            connection.executemany("INSERT INTO cursorDiskKV VALUES (?, ?)", _cursor_rows(number))


def _cursor_rows(number: int) -> Iterator[tuple[str, str]]:
    composer_id, headers = str(uuid.uuid5(uuid.NAMESPACE_URL, f"composer/{number}")), []
    for place, message in enumerate(_messages(number)):
        bubble = {"_v": 3, "type": 1 if message["role"] == "user" else 2, "bubbleId": f"{composer_id}-{place}"}
        headers.append({"bubbleId": bubble["bubbleId"], "type": bubble["type"]})
        value = json.dumps({**bubble, "text": message["text"], "createdAt": message["timestamp"]})
        yield f"bubbleId:{composer_id}:{bubble['bubbleId']}", value
    created = int(datetime.fromisoformat(_messages(number)[0]["timestamp"]).timestamp() * 1000)
    times = {"createdAt": created, "lastUpdatedAt": created + 600_000}
    record = {"_v": 16, "composerId": composer_id, "name": f"Work {number}", "status": "completed", **times}
    yield f"composerData:{composer_id}", json.dumps({**record, "fullConversationHeadersOnly": headers})


WRITERS: dict[str, Callable[[Path, int], None]] = {
    "claude-code": _write_claude_code,
    "codex": _write_codex,
    "cursor": _write_cursor,
}


def _messages(number: int) -> list[Message]:
    return conversation(number, MESSAGES_EACH, LENGTHS)


def _cwd(number: int) -> str:
    return f"/home/ann/shop-{number % PROJECTS}"


def _write_lines(file: Path, records: Iterator[Record]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as lines:
        lines.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
