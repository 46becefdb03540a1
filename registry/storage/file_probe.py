"""Read a few columns of an SQLite registry without SQLAlchemy, for commands that must start quickly.

Importing the database layer takes half a second. Most syncs find nothing new in less, and a client waits for the note
that starts a new chat.
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


class RegistryFile:
    """An SQLite registry that `open_registry_file` has opened read-only."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def store(self, source: str, path: str) -> tuple[str, list[dict[str, str]]] | None:
        """Return a store's stamp at its last sync, and what was skipped; None if it was never read."""
        query = "SELECT stamp, skipped FROM store WHERE source = ? AND path = ?"
        row = self._connection.execute(query, (source, path)).fetchone()
        return (row["stamp"], json.loads(row["skipped"])) if row else None

    def seen_sessions(self, source: str, path: str) -> dict[str, str]:
        """Return the fingerprints, as `registry.storage.client_stores.seen_sessions`."""
        query = "SELECT key, fingerprint FROM store_session WHERE source = ? AND path = ?"
        return {key: fingerprint for key, fingerprint in self._connection.execute(query, (source, path))}

    def latest_channels(self, folder: str, repository: str | None, limit: int) -> list[dict[str, Any]]:
        """Return the latest channels of a folder or its repository, with some fields of `channel_item`."""
        query = """
            SELECT number, name AS channel, source, coalesce(session_id, name) AS session_id, title,
            first_message_preview, message_count, updated_at
            FROM channel WHERE deleted = 0 AND project_path IN (
            SELECT ? UNION SELECT project_path FROM channel WHERE repository = ?)
            ORDER BY channel.updated_at DESC, number DESC LIMIT ?"""
        return [dict(row) for row in self._connection.execute(query, (folder, repository, limit))]

    def remembered(self, folder: str, repository: str | None) -> list[str]:
        """Return the remembered sentences for a folder or its repository, and those for all folders, oldest first."""
        query = """
            SELECT text FROM channel CROSS JOIN conversation ON channel.number = channel_number
            WHERE channel.name GLOB ? AND channel.source = ?
            AND (project_path IS NULL OR project_path = ? OR repository = ?)
            AND owner IS NULL AND channel.deleted = 0 AND role = 'user'
            AND conversation.deleted = 0 AND of_other_person = 0
            ORDER BY timestamp, conversation.number"""  # CROSS: makes SQLite start with the channels, which are few
        parameters = (f"{REMEMBERED}*", REMEMBERED, folder, repository)
        return [text for (text,) in self._connection.execute(query, parameters)]

    def last_messages(self, channel_number: int, limit: int) -> list[dict[str, Any]]:
        """Return role, text and payload of a channel's last messages, in order."""
        query = """
            SELECT role, text, payload FROM conversation WHERE channel_number = ? AND deleted = 0
            ORDER BY timestamp DESC, number DESC LIMIT ?"""
        rows = self._connection.execute(query, (channel_number, limit)).fetchall()
        return [{**dict(row), "payload": json.loads(row["payload"])} for row in reversed(rows)]


@contextmanager
def open_registry_file(file: Path) -> Iterator[RegistryFile]:
    """Open a registry's file read-only. StorageError if there is none, or its tables are not up to date."""
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=0.2)) as connection:
            connection.row_factory = sqlite3.Row
            yield RegistryFile(connection)
    except (sqlite3.Error, ValueError) as exc:
        raise StorageError("The registry's file could not be read.", str(exc)) from exc


def embedded_file(home: Path, environment: Mapping[str, str]) -> Path | None:
    """Return the registry's SQLite file by the same rules as `Settings`; None if it uses another database."""
    return None if setting(home, environment, "database_url") else home / "registry.db"


def setting(home: Path, environment: Mapping[str, str], name: str) -> str:
    """Return a setting by the same rules as `Settings`, a list joined by commas; "" if unset. ValueError: bad TOML."""
    env = next((value for key, value in environment.items() if key.upper() == f"CTXR_{name.upper()}" and value), "")
    config: Mapping[str, object] = {}
    with suppress(FileNotFoundError), open(home / "config.toml", "rb") as file:
        config = tomllib.load(file)
    value = config.get(name) or ""
    return env or (",".join(map(str, value)) if isinstance(value, list) else str(value))
