"""Cursor's configuration folder as its agent writes it, for every generation of its storage."""

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
    """An id that looks like the client's."""
    return str(uuid.UUID(int=0xAC43_7FDF_3E7E_4A54_98A4_0000_0000_0000 + number))


# Protocol buffers


def varint(value: int) -> bytes:
    """A number on the wire."""
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def field(tag: int, value: int | str | bytes) -> bytes:
    """One field on the wire: a number, text, or the bytes of a message."""
    if isinstance(value, int):
        return varint(tag << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(tag << 3 | 2) + varint(len(data)) + data


def root(prompt: list[bytes], *more: bytes) -> bytes:
    """A state of a conversation: ids of messages in order, and other fields."""
    meter = field(5, field(1, 1200) + field(2, 200_000))
    return b"".join(field(1, each) for each in prompt) + meter + field(10, 1) + b"".join(more)


def hash_of(data: bytes) -> bytes:
    """The id of a blob as it stands in other blobs."""
    return sha256(data).digest()


# Messages


def system(text: str = "You are an AI coding assistant.") -> Json:
    """What the client tells the model."""
    return {"role": "system", "content": text}


def environment(cwd: str = CWD) -> Json:
    """The first message in the user's name: what the client tells of the machine."""
    text = f"<user_info>\nOS Version: linux 6.1\n\nWorkspace Path: {cwd}\n\nShell: bash\n</user_info>"
    return {"role": "user", "content": text}


def asked(text: str, at: str = "", *parts: Json, around: str = "") -> Json:
    """A question as it is wrapped today; `at` such as `9:53 PM`, on the day of START over there."""
    stamp = f"<timestamp>Sunday, Apr 26, 2026, {at} (UTC-4)</timestamp>\n" if at else ""
    wrapped = f"{stamp}{around}<user_query>\n{text}\n</user_query>"
    return {"role": "user", "content": [{"type": "text", "text": wrapped}, *parts] if parts else wrapped}


def answered(*parts: Json, **fields: Any) -> Json:
    """A message of the model; the client gives all of them the same id."""
    return {"id": "1", "role": "assistant", "content": list(parts), **fields}


def text(words: str) -> Json:
    """Part of an answer: words."""
    return {"type": "text", "text": words}


def thought(words: str) -> Json:
    """Part of an answer: thinking."""
    own = {"cursor": {"modelName": MODEL}}
    return {"type": "reasoning", "text": words, "providerOptions": own, "signature": SECRET}


def call(call_id: str, name: str, **args: Any) -> Json:
    """Part of an answer: a tool call."""
    return {"type": "tool-call", "toolCallId": call_id, "toolName": name, "args": args}


def result(call_id: str, name: str, output: Any, told: Json | None = None, **fields: Any) -> Json:
    """What a tool gave back, and what the client itself saw of it."""
    own = {"providerOptions": {"cursor": {"highLevelToolCallResult": told}}} if told else {}
    part = {"type": "tool-result", "toolCallId": call_id, "toolName": name, "result": output, **fields}
    return {"id": call_id, "role": "tool", "content": [part], **own}


def working_session() -> list[Json]:
    """A conversation with everything that usually occurs in one."""
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
    """Writes into `~/.cursor`. Every method closes what it opened, as the client does when it quits."""

    root: Path

    def chat(self, number: int, *messages: Json, more: tuple[bytes, ...] = (), **options: Any) -> Path:
        """A conversation of the command line: the messages, and a root that names them. Returns its database."""
        folder = self.root / "chats" / md5(options.pop("cwd", CWD).encode()).hexdigest() / agent_id(number)  # noqa: S324
        return self.store(folder, [encoded(each) for each in messages], *more, **options)

    def acp(self, number: int, *messages: Json, **description: Any) -> Path:
        """A conversation of another editor."""
        folder = self.root / "acp-sessions" / agent_id(number)
        self.describe(folder, **{"schemaVersion": 1, "cwd": CWD, "title": "From Zed"} | description)
        return self.store(folder, [encoded(each) for each in messages])

    def store(self, folder: Path, blobs: list[bytes], *more: bytes, wal: bool = False, **meta: Any) -> Path:
        """A database whose newest state has these blobs as its prompt; with `wal`, as it stands in mid-turn."""
        state = root([hash_of(blob) for blob in blobs], *more)
        about: Json = {"agentId": folder.name, "latestRootBlobId": sha256(state).hexdigest(), "name": "New Agent"}
        about |= {"mode": "auto-run", "createdAt": START_MS, "lastUsedModel": MODEL, "blobEncryptionKey": SECRET}
        rows = {sha256(blob).hexdigest(): blob for blob in (*blobs, state)}
        self.rows(folder / "store.db", rows, {"0": json.dumps(about | meta).encode().hex()}, wal=wal)
        return folder / "store.db"

    def rows(self, store: Path, blobs: Mapping[str, Any], meta: Mapping[str, Any], *, wal: bool = False) -> None:
        """Any rows; with `wal` they are only in the WAL, and nobody has the database open."""
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
        """A `meta.json`."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "meta.json").write_text(json.dumps(description), encoding="utf-8")

    def transcript(self, number: int, *records: Json | str, parent: int | None = None, **place: str) -> Path:
        """A transcript as lines of JSON, in the folder of its own or, as a sub-agent's, in that of its parent."""
        folder = self.root / "projects" / place.get("slug", "home-ann-shop") / "agent-transcripts"
        own = folder / agent_id(number) if parent is None else folder / agent_id(parent) / "subagents"
        own.mkdir(parents=True, exist_ok=True)
        file = own / f"{agent_id(number)}.jsonl"
        lines = (each if isinstance(each, str) else json.dumps(each) for each in records)
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return file

    def text(self, number: int, content: str) -> Path:
        """A transcript of the oldest kind."""
        folder = self.root / "projects" / "home-ann-shop" / "agent-transcripts"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{agent_id(number)}.txt"
        file.write_text(content, encoding="utf-8")
        return file

    def read(self, seen: Mapping[str, str] | None = None) -> list[FoundSession | Skipped]:
        """What the reader answers."""
        return list(CursorAgent(clock=lambda: NOW).sessions(self.root, seen or {}))

    def sessions(self) -> dict[str, Session]:
        """The sessions found, by id."""
        return {found.session.session_id: found.session for found in self.read() if isinstance(found, FoundSession)}

    def only_session(self) -> Session:
        """The one session there is."""
        [session] = self.sessions().values()
        return session


def encoded(message: Json) -> bytes:
    """A message as it stands in its blob."""
    return json.dumps(message, ensure_ascii=False).encode()


def said(role: str, *content: Json) -> Json:
    """A line of a transcript."""
    return {"role": role, "message": {"content": list(content)}}


def used(name: str, **given: Any) -> Json:
    """A tool call in a transcript."""
    return {"type": "tool_use", "name": name, "input": given}


def mirror() -> list[Json]:
    """What a transcript has of `working_session`."""
    question = asked("Why does the basket lose its items?", "9:05 PM")["content"]
    return [
        said("user", text(question)),
        said("assistant", text("[REDACTED]"), text("I will read it."), used("Read", path=f"{CWD}/basket.py")),
        said("assistant", used("Shell", command="pytest")),
        said("assistant", text("It makes a new list.")),
        {"type": "turn_ended", "status": "success"},
    ]
