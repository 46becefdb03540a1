"""Write client histories of any size: python -m benchmarks.setup.stores HOME [--client CLIENT] [--sessions N]

All formats hold the same conversations, with thinking, tool calls and their results.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import md5, sha256
from pathlib import Path
from typing import Any

from benchmarks.setup.conversations import START, conversation

Json = dict[str, Any]

CALLS_EACH_TURN = 2
MODEL = "claude-4.5-sonnet"


@dataclass(frozen=True)
class Size:
    """Number of sessions, messages in each (a tool call counts as one), and characters of a call's result."""

    sessions: int = 3000
    messages: int = 20
    result: int = 600


@dataclass(frozen=True)
class Said:
    """A message; `role` is user, assistant, thinking or tool. Only a tool has a `result`."""

    role: str
    text: str
    at: datetime
    result: str = ""

    @property
    def milliseconds(self) -> int:
        return int(self.at.timestamp() * 1000)

    @property
    def iso(self) -> str:
        return self.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def session_id(number: int) -> str:
    return str(uuid.UUID(int=0x0197_0000_0000_7000_8000_0000_0000_0000 + number))


def folder(number: int) -> str:
    """Return the project folder of a session; there are 30."""
    return f"/home/ann/shop-{number % 30}"


def said(number: int, size: Size) -> Iterator[Said]:
    """Yield the messages of one session in turns: a question, a thought, calls, an answer."""
    dice = random.Random(number)
    at = START + timedelta(minutes=number)
    words = iter(conversation(number, size.messages))
    count = 0
    while count < size.messages:
        for role in ("user", "thinking", *["tool"] * CALLS_EACH_TURN, "assistant")[: size.messages - count]:
            at += timedelta(seconds=7)
            count += 1
            text = next(words)["text"] if role != "tool" else f"src/part_{dice.randrange(400)}.py"
            yield Said(role, text, at, _output(dice, size.result) if role == "tool" else "")


def _output(dice: random.Random, length: int) -> str:
    lines = []
    while length > 0:
        lines.append(
            f"{dice.randrange(10**6):6}|    total += items[{dice.randrange(999)}].price  # part {dice.random()}"
        )
        length -= len(lines[-1]) + 1
    return "\n".join(lines)


# Claude Code


def claude_code(home: Path, size: Size) -> None:
    """Write `~/.claude/projects/<folder>/<session>.jsonl`."""
    for number in range(size.sessions):
        name = folder(number).replace("/", "-")
        _lines(home / ".claude" / "projects" / name / f"{session_id(number)}.jsonl", _claude_records(number, size))


def _claude_records(number: int, size: Size) -> Iterator[Json]:
    parent = None
    for place, one in enumerate(said(number, size)):
        call = f"toolu_{number}_{place}"
        for part, (kind, message) in enumerate(_claude_messages(one, call)):
            own = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{number}/{place}/{part}"))
            yield {
                "type": kind,
                "uuid": own,
                "parentUuid": parent,
                "sessionId": session_id(number),
                "cwd": folder(number),
                "version": "2.1.0",
                "timestamp": one.iso,
                "message": {"id": f"msg_{number}_{place}", "role": kind, "model": MODEL, **message},
            }
            parent = own


def _claude_messages(one: Said, call: str) -> Iterator[tuple[str, Json]]:
    if one.role == "user":
        yield "user", {"content": one.text}
    elif one.role == "tool":
        use = {"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": one.text}}
        yield "assistant", {"content": [use]}
        yield "user", {"content": [{"type": "tool_result", "tool_use_id": call, "content": one.result}]}
    else:
        kind = "thinking" if one.role == "thinking" else "text"
        yield "assistant", {"content": [{"type": kind, kind: one.text}]}


# Codex


def codex(home: Path, size: Size) -> None:
    """Write `~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl`."""
    for number in range(size.sessions):
        began = START + timedelta(minutes=number)
        name = f"rollout-{began:%Y-%m-%dT%H-%M-%S}-{session_id(number)}.jsonl"
        _lines(home / ".codex" / "sessions" / f"{began:%Y/%m/%d}" / name, _codex_records(number, size))


def _codex_records(number: int, size: Size) -> Iterator[Json]:
    head = {"id": session_id(number), "cwd": folder(number), "cli_version": "0.118.0", "source": "cli"}
    yield {"timestamp": START.isoformat(), "type": "session_meta", "payload": head}
    for place, one in enumerate(said(number, size)):
        for kind, payload in _codex_payloads(one, f"call_{number}_{place}"):
            yield {"timestamp": one.iso, "type": kind, "payload": payload}


def _codex_payloads(one: Said, call: str) -> Iterator[tuple[str, Json]]:
    if one.role == "tool":
        arguments = json.dumps({"command": ["cat", one.text]})
        yield "response_item", {"type": "function_call", "name": "shell", "arguments": arguments, "call_id": call}
        output = json.dumps({"output": one.result, "metadata": {"exit_code": 0}})
        yield "response_item", {"type": "function_call_output", "call_id": call, "output": output}
    elif one.role == "thinking":
        yield "response_item", {"type": "reasoning", "summary": [{"type": "summary_text", "text": one.text}]}
    else:
        kind = "output_text" if one.role == "assistant" else "input_text"
        content = [{"type": kind, "text": one.text}]
        yield "response_item", {"type": "message", "role": one.role, "content": content}


# Cursor's IDE

_CURSOR_TABLES = """
CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
"""


def cursor(home: Path, size: Size) -> None:
    """Write all sessions into one database, `~/.config/Cursor/User/globalStorage/state.vscdb`."""
    store = home / ".config" / "Cursor" / "User" / "globalStorage" / "state.vscdb"
    store.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.executescript("PRAGMA journal_mode=wal;" + _CURSOR_TABLES)
        for number in range(size.sessions):
            connection.executemany("INSERT INTO cursorDiskKV VALUES (?, ?)", _cursor_rows(number, size))


def _cursor_rows(number: int, size: Size) -> Iterator[tuple[str, str]]:
    composer, messages = session_id(number), list(said(number, size))
    bubbles = [_bubble(f"b{place}", one) for place, one in enumerate(messages)]
    record = {
        "composerId": composer,
        "createdAt": messages[0].milliseconds,
        "lastUpdatedAt": messages[-1].milliseconds,
        "status": "completed",
        "workspaceIdentifier": {"id": "w", "uri": {"fsPath": folder(number)}},
        "fullConversationHeadersOnly": [{"bubbleId": bubble["bubbleId"], "type": bubble["type"]} for bubble in bubbles],
    }
    for bubble in bubbles:
        yield f"bubbleId:{composer}:{bubble['bubbleId']}", json.dumps(bubble, ensure_ascii=False)
    yield f"composerData:{composer}", json.dumps(record)


def _bubble(bubble_id: str, one: Said) -> Json:
    bubble: Json = {"_v": 3, "bubbleId": bubble_id, "type": 1 if one.role == "user" else 2, "createdAt": one.iso}
    if one.role == "thinking":
        return bubble | {"text": "", "capabilityType": 30, "thinking": {"text": one.text}}
    if one.role == "tool":
        call = {"name": "read_file_v2", "toolCallId": bubble_id, "status": "completed"}
        call |= {"params": json.dumps({"path": one.text}), "result": json.dumps({"contents": one.result})}
        return bubble | {"text": "", "capabilityType": 15, "toolFormerData": call}
    return bubble | {"text": one.text}


# Cursor's agent

_AGENT_TABLES = """
CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB);
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT);
"""


def cursor_agent(home: Path, size: Size) -> None:
    """Write a database for each session: `~/.cursor/chats/<hash of the folder>/<agent>/store.db`."""
    for number in range(size.sessions):
        hashed = md5(folder(number).encode(), usedforsecurity=False).hexdigest()
        own = home / ".cursor" / "chats" / hashed / session_id(number)
        own.mkdir(parents=True, exist_ok=True)
        began = int((START + timedelta(minutes=number)).timestamp() * 1000)
        about = {"schemaVersion": 1, "createdAtMs": began, "cwd": folder(number), "hasConversation": True}
        (own / "meta.json").write_text(json.dumps(about), encoding="utf-8")
        with closing(sqlite3.connect(own / "store.db")) as connection, connection:
            connection.executescript("PRAGMA journal_mode=wal; PRAGMA synchronous=off;" + _AGENT_TABLES)
            _agent_rows(connection, number, size, began)


def _agent_rows(connection: sqlite3.Connection, number: int, size: Size, began: int) -> None:
    """Add, after each turn, a state that lists all messages so far; older states stay, as in real stores."""
    prompt, latest = bytearray(), ""
    for place, one in enumerate(said(number, size)):
        for message in _agent_messages(one, f"toolu_{number}_{place}"):
            data = json.dumps(message, ensure_ascii=False).encode()
            prompt += b"\x0a\x20" + sha256(data).digest()
            connection.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?)", (sha256(data).hexdigest(), data))
        if one.role == "assistant":
            latest = _state(connection, bytes(prompt))
    about = {"agentId": session_id(number), "latestRootBlobId": latest or _state(connection, bytes(prompt))}
    about |= {"name": "New Agent", "mode": "auto-run", "createdAt": str(began), "lastUsedModel": MODEL}
    connection.execute("INSERT INTO meta VALUES ('0', ?)", (json.dumps(about).encode().hex(),))


def _state(connection: sqlite3.Connection, root: bytes) -> str:
    name = sha256(root).hexdigest()
    connection.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?)", (name, root))
    return name


def _agent_messages(one: Said, call: str) -> Iterator[Json]:
    if one.role == "user":
        stamp = f"<timestamp>{one.at:%A, %b %d, %Y, %I:%M %p} (UTC)</timestamp>"
        yield {"role": "user", "content": f"{stamp}\n<user_query>\n{one.text}\n</user_query>"}
    elif one.role == "tool":
        use = {"type": "tool-call", "toolCallId": call, "toolName": "Read", "args": {"path": one.text}}
        yield {"id": "1", "role": "assistant", "content": [use]}
        done = {"type": "tool-result", "toolCallId": call, "toolName": "Read", "result": one.result}
        yield {"id": call, "role": "tool", "content": [done]}
    else:
        kind = "reasoning" if one.role == "thinking" else "text"
        yield {"id": "1", "role": "assistant", "content": [{"type": kind, "text": one.text}]}


def _lines(file: Path, records: Iterator[Json]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as lines:
        for record in records:
            lines.write(json.dumps(record, ensure_ascii=False) + "\n")


CLIENTS: dict[str, Callable[[Path, Size], None]] = {
    "claude-code": claude_code,
    "codex": codex,
    "cursor": cursor,
    "cursor-agent": cursor_agent,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.setup.stores", description=__doc__)
    parser.add_argument("home", type=Path, help="folder to fill; created if missing")
    parser.add_argument("--client", action="append", choices=CLIENTS, help="one client; may be repeated")
    parser.add_argument("--sessions", type=int, default=Size.sessions)
    parser.add_argument("--messages", type=int, default=Size.messages, help="in each session")
    parser.add_argument("--result", type=int, default=Size.result, help="characters of a tool call's result")
    options = parser.parse_args()
    for client in options.client or CLIENTS:
        CLIENTS[client](options.home, Size(options.sessions, options.messages, options.result))


if __name__ == "__main__":
    main()
