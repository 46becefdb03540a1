"""List the files in which clients keep conversations, for a backup, and nothing that lies beside them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from registry.errors import StorageError
from sources.cursor_agent.files import FOLDERS
from sources.kit.sqlite_store import ClientDatabase

# by client, below its store; a store that is a file stands for itself
_PATTERNS: dict[str, tuple[str, ...]] = {
    "claude-code": ("projects/**/*", "*/**/projects/**/*"),
    "cursor": ("globalStorage/state.vscdb", "workspaceStorage/*/state.vscdb", "workspaceStorage/*/workspace.json"),
    "cursor-agent": tuple(f"{folder}/**/*" for folder in FOLDERS),
    "codex": ("sessions/**/*", "archived_sessions/**/*"),
    "gemini-cli": ("tmp/**/*",),
    "copilot-cli": ("session-state/**/*", "history-session-state/**/*"),
    "copilot-vscode": (
        "workspaceStorage/*/chatSessions/*",
        "workspaceStorage/*/workspace.json",
        "workspaceStorage/*/GitHub.copilot-chat/transcripts/**/*",
        "globalStorage/emptyWindowChatSessions/*",
    ),
    "qwen-code": ("projects/*/chats/*", "projects/*/subagents/**/*"),
    "grok-cli": ("sessions/*/*/*.jsonl", "sessions/*/*/summary.json"),
    "pi": ("sessions/*/*.jsonl",),
    "cline": ("tasks/*/*", "sessions/*/*", "state/taskHistory.json"),
    "roo-code": ("tasks/*/*",),
    "continue": ("sessions/*",),
    "goose": ("*",),
    "opencode": ("session/**/*", "message/**/*", "part/**/*", "*/storage/**/*"),
}

_ENDS = (".jsonl", ".json", ".txt", ".md", ".yaml", ".db", ".vscdb", ".zst")
# the credentials in a database of Cursor
_SECRETS = "DELETE FROM ItemTable WHERE key LIKE 'cursorAuth/%' OR key LIKE 'secret://%' OR key LIKE '%token%'"


class StoreFile(NamedTuple):
    """A file of a store, and its path below the folder that the store's files are copied to."""

    path: Path
    name: str


def files_to_back_up(source: str, store: Path) -> Iterator[StoreFile]:
    """Yield the files of a store in a fixed order; none for a client whose files are not known."""
    if source == "cursor":
        store = store.parents[1]
    if store.is_file():
        yield StoreFile(store, store.name)
        return
    found = {path for pattern in _PATTERNS.get(source, ()) for path in store.glob(pattern)}
    for path in sorted(path for path in found if path.suffix in _ENDS and path.is_file()):
        yield StoreFile(path, path.relative_to(store).as_posix())


def is_database(path: Path) -> bool:
    """Return True for an SQLite database, whatever its name."""
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def copy_database(path: Path, target: Path) -> None:
    """Copy a client's database as it is at one moment, without credentials. Raises StorageError."""
    with ClientDatabase(path) as database:
        has_secrets = "ItemTable" in database.tables()
        database.copy_to(target)
    if not has_secrets:
        return
    try:
        with closing(sqlite3.connect(target)) as copy, copy:
            copy.execute("PRAGMA secure_delete = ON")
            copy.execute(_SECRETS)
    except sqlite3.Error as exc:
        raise StorageError(f"{path.name} cannot be copied.", f"{path}: {exc}") from exc
