"""What the registry's file says of the clients' stores, read without the database layer.

Half a second of imports stands between a command and `client_stores`; most syncs find nothing new and are over in
less. Only reading, only these two tables, and only an embedded registry: for the rest there is `client_stores`.
"""

from __future__ import annotations

import json
import sqlite3
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from registry.errors import StorageError

_WAIT_S = 0.2


class StoreAsRead(NamedTuple):
    """A store as its last sync left it; `skipped` as {what, why}."""

    stamp: str
    skipped: list[dict[str, str]]


class QuickLook:
    """An open look into a registry's file. StorageError where there is none, or not one of ours and up to date."""

    def __init__(self, file: Path) -> None:
        with _errors():
            self._connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=_WAIT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def store(self, source: str, path: str) -> StoreAsRead | None:
        """How a store was left; None if it was never read."""
        query = "SELECT stamp, skipped FROM store WHERE source = ? AND path = ?"
        with _errors():
            row = self._connection.execute(query, (source, path)).fetchone()
            return StoreAsRead(row[0], json.loads(row[1])) if row else None

    def seen_sessions(self, source: str, path: str) -> dict[str, str]:
        """As `registry.storage.client_stores.seen_sessions`."""
        query = "SELECT key, fingerprint FROM store_session WHERE source = ? AND path = ?"
        with _errors():
            return dict(self._connection.execute(query, (source, path)))


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, ValueError) as exc:
        raise StorageError("Could not look into the registry.", str(exc)) from exc


def embedded_file(home: Path, environment: Mapping[str, str]) -> Path | None:
    """The file of an embedded registry, as `Settings` would find it; None where the settings name another database."""
    named = any(name.upper() == "CTXR_DATABASE_URL" and value for name, value in environment.items())
    config: Mapping[str, object] = {}
    with suppress(FileNotFoundError), open(home / "config.toml", "rb") as file:
        config = tomllib.load(file)
    return None if named or config.get("database_url") else home / "registry.db"
