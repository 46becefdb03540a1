"""Build the configuration folder of Cursor's agent, for every generation of its storage."""

from __future__ import annotations

import json
import shutil
import sqlite3
import uuid
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import md5, sha256
from pathlib import Path
from typing import Any

from registry.domain import Session
from sources.base import FoundSession, Skipped
from sources.cursor_agent.reader import CursorAgent

Json = dict[str, Any]

CWD = "/home/ann/shop"
START = datetime(2026, 4, 27, 1, 0, tzinfo=UTC)
START_MS = int(START.timestamp() * 1000)
NOW = datetime(2026, 5, 9, 9, 0, tzinfo=UTC)
MODEL = "claude-4.5-opus-high-thinking"
SECRET = "never-to-be-seen"

_TABLES = """
CREATE TABLE IF NOT EXISTS blobs (id TEXT PRIMARY KEY, data BLOB);
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT);
"""


def agent_id(number: int) -> str:
    """Return an id in the client's form."""
    return str(uuid.UUID(int=0xAC43_7FDF_3E7E_4A54_98A4_0000_0000_0000 + number))


# Protocol buffers


def varint(value: int) -> bytes:
    """Encode a number."""
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def field(tag: int, value: int | str | bytes) -> bytes:
    """Encode a field: a number, text, or the bytes of a message."""
    if isinstance(value, int):
        return varint(tag << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(tag << 3 | 2) + varint(len(data)) + data


def root(prompt: list[bytes], *more: bytes) -> bytes:
    """Encode a state of a conversation: ids of messages in order, and other fields."""
    meter = field(5, field(1, 1200) + field(2, 200_000))
    return b"".join(field(1, each) for each in prompt) + meter + field(10, 1) + b"".join(more)


def hash_of(data: bytes) -> bytes:
    """Return a blob's id as other blobs contain it."""
    return sha256(data).digest()


# Messages


def system(text: str = "You are an AI coding assistant.") -> Json:
    """Return the client's system prompt."""
    return {"role": "system", "content": text}


def environment(cwd: str = CWD) -> Json:
    """Return the first message in the user's name, in which the client describes the machine."""
    text = f"<user_info>\nOS Version: linux 6.1\n\nWorkspace Path: {cwd}\n\nShell: bash\n</user_info>"
    return {"role": "user", "content": text}


def asked(text: str, at: str = "", *parts: Json, around: str = "") -> Json:
    """Return a question as wrapped by current versions; `at` is a local time such as `9:53 PM` on START's day."""
    stamp = f"<timestamp>Sunday, Apr 26, 2026, {at} (UTC-4)</timestamp>\n" if at else ""
    wrapped = f"{stamp}{around}<user_query>\n{text}\n</user_query>"
    return {"role": "user", "content": [{"type": "text", "text": wrapped}, *parts] if parts else wrapped}


def answered(*parts: Json, **fields: Any) -> Json:
    """Return a message of the model; the client gives all of them the same id."""
    return {"id": "1", "role": "assistant", "content": list(parts), **fields}


def text(words: str) -> Json:
    """Return a text part of an answer."""
    return {"type": "text", "text": words}


def thought(words: str) -> Json:
    """Return a part of an answer with thoughts."""
    own = {"cursor": {"modelName": MODEL}}
    return {"type": "reasoning", "text": words, "providerOptions": own, "signature": SECRET}


def call(call_id: str, name: str, **args: Any) -> Json:
    """Return a part of an answer with a tool call."""
    return {"type": "tool-call", "toolCallId": call_id, "toolName": name, "args": args}


def result(call_id: str, name: str, output: Any, seen: Json | None = None, **fields: Any) -> Json:
    """Return a tool's result, and the client's own record of it."""
    own = {"providerOptions": {"cursor": {"highLevelToolCallResult": seen}}} if seen else {}
    part = {"type": "tool-result", "toolCallId": call_id, "toolName": name, "result": output, **fields}
    return {"id": call_id, "role": "tool", "content": [part], **own}


def working_session() -> list[Json]:
    """Return a conversation with all usual parts."""
    return [
        system(),
        environment(),
        asked("Why does the basket lose its items?", "9:05 PM"),
        answered(thought("Let me look."), text("I will read it."), call("t1\nfc_1", "Read", path=f"{CWD}/basket.py")),
        result("t1\nfc_1", "Read", "     1|return []"),
        answered(call("t2", "Shell", command="pytest")),
        result("t2", "Shell", "1 failed", {"output": {"success": {"exitCode": 1}}}),
        answered(text("It makes a new list.")),
    ]


@dataclass(frozen=True, slots=True)
class AgentFiles:
    """Writes into `~/.cursor`. Every method closes its files, like the client when it quits."""

    root: Path

    def chat(self, number: int, *messages: Json, more: tuple[bytes, ...] = (), **options: Any) -> Path:
        """Write a conversation of the command line (messages, and a root that lists them), and return its database."""
        folder = self.root / "chats" / md5(options.pop("cwd", CWD).encode()).hexdigest() / agent_id(number)  # noqa: S324
        return self.store(folder, [encoded(each) for each in messages], *more, **options)

    def acp(self, number: int, *messages: Json, **description: Any) -> Path:
        """Write a conversation of another editor."""
        folder = self.root / "acp-sessions" / agent_id(number)
        self.describe(folder, **{"schemaVersion": 1, "cwd": CWD, "title": "From Zed"} | description)
        return self.store(folder, [encoded(each) for each in messages])

    def store(self, folder: Path, blobs: list[bytes], *more: bytes, wal: bool = False, **meta: Any) -> Path:
        """Write a database whose newest state has these blobs as its prompt; with `wal`, as during a turn."""
        state = root([hash_of(blob) for blob in blobs], *more)
        about: Json = {"agentId": folder.name, "latestRootBlobId": sha256(state).hexdigest(), "name": "New Agent"}
        about |= {"mode": "auto-run", "createdAt": START_MS, "lastUsedModel": MODEL, "blobEncryptionKey": SECRET}
        rows = {sha256(blob).hexdigest(): blob for blob in (*blobs, state)}
        self.rows(folder / "store.db", rows, {"0": json.dumps(about | meta).encode().hex()}, wal=wal)
        return folder / "store.db"

    def rows(self, store: Path, blobs: Mapping[str, Any], meta: Mapping[str, Any], *, wal: bool = False) -> None:
        """Write rows; with `wal` only into the WAL of a database that no process has open."""
        store.parent.mkdir(parents=True, exist_ok=True)
        scratch = store.parent / "scratch"
        scratch.mkdir()
        if store.exists():
            shutil.copyfile(store, scratch / store.name)
        with closing(sqlite3.connect(scratch / store.name, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode=wal")
            connection.execute("PRAGMA wal_autocheckpoint=0")
            connection.executescript(_TABLES)
            if wal:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.executemany("INSERT OR REPLACE INTO blobs VALUES (?, ?)", blobs.items())
            connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", meta.items())
            if wal:
                for file in (store.name, store.name + "-wal"):
                    shutil.copyfile(scratch / file, store.parent / file)
        if not wal:
            shutil.copyfile(scratch / store.name, store)
        shutil.rmtree(scratch)

    def describe(self, folder: Path, **description: Any) -> None:
        """Write a `meta.json`."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "meta.json").write_text(json.dumps(description), encoding="utf-8")

    def transcript(self, number: int, *records: Json | str, parent: int | None = None, **place: str) -> Path:
        """Write a transcript as JSON lines into its own folder or, for a sub-agent, into its parent's."""
        folder = self.root / "projects" / place.get("slug", "home-ann-shop") / "agent-transcripts"
        own = folder / agent_id(number) if parent is None else folder / agent_id(parent) / "subagents"
        own.mkdir(parents=True, exist_ok=True)
        file = own / f"{agent_id(number)}.jsonl"
        lines = (each if isinstance(each, str) else json.dumps(each) for each in records)
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return file

    def text(self, number: int, content: str) -> Path:
        """Write a transcript of the oldest format."""
        folder = self.root / "projects" / "home-ann-shop" / "agent-transcripts"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{agent_id(number)}.txt"
        file.write_text(content, encoding="utf-8")
        return file

    def read(self, seen: Mapping[str, str] | None = None) -> list[FoundSession | Skipped]:
        """Return all results of the reader."""
        return list(CursorAgent(clock=lambda: NOW).sessions(self.root, seen or {}))

    def sessions(self) -> dict[str, Session]:
        """Return the sessions by id."""
        return {found.session.session_id: found.session for found in self.read() if isinstance(found, FoundSession)}

    def only_session(self) -> Session:
        """Return the only session."""
        [session] = self.sessions().values()
        return session


def encoded(message: Json) -> bytes:
    """Return a message as its blob contains it."""
    return json.dumps(message, ensure_ascii=False).encode()


def entry(role: str, *content: Json) -> Json:
    """Return a line of a transcript."""
    return {"role": role, "message": {"content": list(content)}}


def used(name: str, **given: Any) -> Json:
    """Return a tool call in a transcript."""
    return {"type": "tool_use", "name": name, "input": given}


def mirror() -> list[Json]:
    """Return the transcript of `working_session`."""
    question = asked("Why does the basket lose its items?", "9:05 PM")["content"]
    return [
        entry("user", text(question)),
        entry("assistant", text("[REDACTED]"), text("I will read it."), used("Read", path=f"{CWD}/basket.py")),
        entry("assistant", used("Shell", command="pytest")),
        entry("assistant", text("It makes a new list.")),
        {"type": "turn_ended", "status": "success"},
    ]
