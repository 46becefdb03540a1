"""Build Cursor's `User` folder, for every generation of its storage."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from registry.domain import Session
from sources.base import FoundSession, Paths, Skipped
from sources.cursor.reader import CursorIde

Json = dict[str, Any]

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
NOW = datetime(2026, 3, 9, 9, 0, tzinfo=UTC)
START_MS = int(START.timestamp() * 1000)
SECRET = "sk-never-to-be-seen"

_TABLES = """
CREATE TABLE IF NOT EXISTS ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
CREATE TABLE IF NOT EXISTS cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
"""
_HEADER_TABLE = """
CREATE TABLE IF NOT EXISTS composerHeaders (
  composerId TEXT PRIMARY KEY, workspaceId TEXT, createdAt INTEGER, lastUpdatedAt INTEGER, isArchived INTEGER,
  isSubagent INTEGER, recency INTEGER, checkpointAt INTEGER, value TEXT)
"""


def iso(minute: float) -> str:
    """Return a bubble's time, in minutes after START."""
    moment = datetime.fromtimestamp(START.timestamp() + 60 * minute, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def asked(bubble_id: str, text: str, **fields: Any) -> Json:
    """Return a user's bubble."""
    return _bubble(bubble_id, 1, text, fields)


def answered(bubble_id: str, text: str, **fields: Any) -> Json:
    """Return an assistant's bubble."""
    return _bubble(bubble_id, 2, text, fields)


def thought(bubble_id: str, text: str, **fields: Any) -> Json:
    """Return a bubble with thoughts."""
    own = {"capabilityType": 30, "thinking": {"text": text, "signature": SECRET}, "thinkingDurationMs": 1234}
    return _bubble(bubble_id, 2, "", own | fields)


def called(bubble_id: str, name: str, params: Any, result: Any, /, **fields: Any) -> Json:
    """Return a bubble with a tool call and its result, both as JSON strings."""
    call = {"tool": 15, "name": name, "params": json.dumps(params), "status": "completed", "toolCallId": "call_1\nfc_1"}
    tool = call | {"result": None if result is None else json.dumps(result)} | fields
    return _bubble(bubble_id, 2, "", {"capabilityType": 15, "toolFormerData": tool})


def _bubble(bubble_id: str, kind: int, text: str, fields: Json) -> Json:
    empty: Json = {key: [] for key in ("codeBlocks", "images", "relevantFiles", "attachedFolders", "attachedFiles")}
    return {"_v": 3, "type": kind, "bubbleId": bubble_id, "text": text, "tokenCount": {}, **empty, **fields}


def record(composer_id: str, *bubbles: Json, **fields: Any) -> Json:
    """Return a conversation's record, which lists its bubbles in order."""
    headers = [{"bubbleId": bubble["bubbleId"], "type": bubble["type"]} for bubble in bubbles]
    times = {"createdAt": START_MS, "lastUpdatedAt": START_MS + 600_000}
    secrets = {"blobEncryptionKey": SECRET, "speculativeSummarizationEncryptionKey": SECRET}
    known = {"_v": 16, "composerId": composer_id, "status": "completed", "text": "unsent draft", **times, **secrets}
    return known | {"fullConversationHeadersOnly": headers} | fields


@dataclass(frozen=True, slots=True)
class CursorFiles:
    """Writes into a `User` folder. Every method closes its files, like Cursor when it quits."""

    user: Path

    @property
    def store(self) -> Path:
        """Return the path of the global database."""
        return self.user / "globalStorage" / "state.vscdb"

    def conversation(self, composer_id: str, *bubbles: Json, **fields: Any) -> None:
        """Write a conversation of 2025 or later: a record and a row for each bubble."""
        rows = {f"bubbleId:{composer_id}:{bubble['bubbleId']}": json.dumps(bubble) for bubble in bubbles}
        self.rows({f"composerData:{composer_id}": json.dumps(record(composer_id, *bubbles, **fields)), **rows})

    def rows(self, rows: Mapping[str, str | bytes | None]) -> None:
        """Write rows of `cursorDiskKV`."""
        with writing(self.store) as connection:
            connection.executemany("INSERT INTO cursorDiskKV VALUES (?, ?)", rows.items())

    def items(self, items: Mapping[str, Any], database: Path | None = None) -> None:
        """Write rows of `ItemTable` with JSON values."""
        with writing(database or self.store) as connection:
            rows = [(key, json.dumps(value)) for key, value in items.items()]
            connection.executemany("INSERT INTO ItemTable VALUES (?, ?)", rows)

    def header_row(self, composer_id: str, header: Json, **columns: Any) -> None:
        """Write a row of the table `composerHeaders` (3.12 and later)."""
        with writing(self.store) as connection:
            connection.execute(_HEADER_TABLE)
            columns = {"composerId": composer_id, "value": json.dumps(header), **columns}
            names, marks = ", ".join(columns), ", ".join("?" * len(columns))
            statement = f"INSERT OR REPLACE INTO composerHeaders ({names}) VALUES ({marks})"  # noqa: S608
            connection.execute(statement, tuple(columns.values()))

    def workspace(self, workspace_id: str, opened: Json, items: Mapping[str, Any] | None = None) -> Path:
        """Write a workspace: its `workspace.json` and, if it has items, its database."""
        folder = self.user / "workspaceStorage" / workspace_id
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "workspace.json").write_text(json.dumps(opened), encoding="utf-8")
        if items:
            self.items(items, folder / "state.vscdb")
        return folder / "state.vscdb"

    def read(self, seen: Mapping[str, str] | None = None, now: datetime = NOW) -> list[FoundSession | Skipped]:
        """Return all results of the reader."""
        return list(CursorIde(clock=lambda: now).sessions(self.store, seen or {}))

    def sessions(self) -> dict[str, Session]:
        """Return the sessions by id."""
        return {found.session.session_id: found.session for found in self.read() if isinstance(found, FoundSession)}

    def only_session(self) -> Session:
        """Return the only session."""
        [session] = self.sessions().values()
        return session


@contextmanager
def writing(database: Path, journal: str = "wal") -> Iterator[sqlite3.Connection]:
    """Yield a connection to a database with Cursor's tables, and close it cleanly."""
    database.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(f"PRAGMA journal_mode={journal}")
        connection.executescript(_TABLES)
        yield connection


def crash(database: Path, unsaved: Mapping[str, str]) -> None:
    """Write rows that stay in the WAL, as if Cursor was killed."""
    scratch = database.with_name("scratch")
    scratch.mkdir()
    shutil.copyfile(database, scratch / database.name)
    with closing(sqlite3.connect(scratch / database.name, isolation_level=None)) as connection:
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.executemany("INSERT INTO cursorDiskKV VALUES (?, ?)", unsaved.items())
        for file in scratch.iterdir():
            shutil.copyfile(file, database.parent / file.name)
    shutil.rmtree(scratch)


def paths(home: Path, **environment: str) -> Paths:
    """Return the paths of a home folder and an environment."""
    return Paths(home, environment)
