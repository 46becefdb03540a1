"""Read a few columns of an SQLite registry without SQLAlchemy, for commands that must start quickly.

Importing the database layer takes half a second. Most syncs find nothing new in less, and a client waits for the note
of its new chat.
"""

import json
import sqlite3
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from registry.errors import StorageError
from registry.project import REMEMBERED


class QuickLook:
    """Reads a registry's file, opened by `quick_look`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def store(self, source: str, path: str) -> tuple[str, list[dict[str, str]]] | None:
        """Return a store's stamp at its last sync, and what was skipped; None if it was never read."""
        query = "SELECT stamp, skipped FROM store WHERE source = ? AND path = ?"
        row = self._connection.execute(query, (source, path)).fetchone()
        return (row["stamp"], json.loads(row["skipped"])) if row else None

    def seen_sessions(self, source: str, path: str) -> dict[str, str]:
        """Return the same as `registry.storage.client_stores.seen_sessions`."""
        query = "SELECT key, fingerprint FROM store_session WHERE source = ? AND path = ?"
        return {key: fingerprint for key, fingerprint in self._connection.execute(query, (source, path))}

    def latest_channels(self, folder: str, repository: str | None, most: int) -> list[dict[str, Any]]:
        """Return the latest channels of a folder or its repository, with some fields of `channel_item`."""
        query = """
            SELECT number, name AS channel, source, coalesce(session_id, name) AS session_id, title,
            first_message_preview, message_count, updated_at
            FROM channel WHERE deleted = 0 AND project_path IN (
            SELECT ? UNION SELECT project_path FROM channel WHERE repository = ?)
            ORDER BY channel.updated_at DESC, number DESC LIMIT ?"""
        return [dict(row) for row in self._connection.execute(query, (folder, repository, most))]

    def remembered(self, folder: str, repository: str | None) -> list[str]:
        """Return the sentences that hold in a folder or its repository and everywhere, the oldest first."""
        query = """
            SELECT text FROM channel CROSS JOIN conversation ON channel.number = channel_number
            WHERE channel.name GLOB ? AND channel.source = ?
            AND (project_path IS NULL OR project_path = ? OR repository = ?)
            AND owner IS NULL AND channel.deleted = 0 AND role = 'user' AND conversation.deleted = 0
            ORDER BY timestamp, conversation.number"""  # CROSS: from the few channels to their messages
        asked = (f"{REMEMBERED}*", REMEMBERED, folder, repository)
        return [text for (text,) in self._connection.execute(query, asked)]

    def end_of(self, channel_number: int, most: int) -> list[dict[str, Any]]:
        """Return role, text and payload of a channel's last messages, in order."""
        query = """
            SELECT role, text, payload FROM conversation WHERE channel_number = ? AND deleted = 0
            ORDER BY timestamp DESC, number DESC LIMIT ?"""
        rows = self._connection.execute(query, (channel_number, most)).fetchall()
        return [{**dict(row), "payload": json.loads(row["payload"])} for row in reversed(rows)]


@contextmanager
def quick_look(file: Path) -> Iterator[QuickLook]:
    """Open a registry's file read-only. StorageError if there is none, or its tables are not up to date."""
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=0.2)) as connection:
            connection.row_factory = sqlite3.Row
            yield QuickLook(connection)
    except (sqlite3.Error, ValueError) as exc:
        raise StorageError("Could not look into the registry.", str(exc)) from exc


def embedded_file(home: Path, environment: Mapping[str, str]) -> Path | None:
    """Return the file of an SQLite registry, as `Settings` finds it; None if the settings name another database."""
    return None if setting(home, environment, "database_url") else home / "registry.db"


def setting(home: Path, environment: Mapping[str, str], name: str) -> str:
    """Return a setting as `Settings` would find it, a list with commas; "" if it is not set. ValueError: bad TOML."""
    said = next((value for key, value in environment.items() if key.upper() == f"CTXR_{name.upper()}" and value), "")
    config: Mapping[str, object] = {}
    with suppress(FileNotFoundError), open(home / "config.toml", "rb") as file:
        config = tomllib.load(file)
    value = config.get(name) or ""
    return said or (",".join(map(str, value)) if isinstance(value, list) else str(value))
