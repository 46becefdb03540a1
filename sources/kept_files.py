"""The files in which clients keep conversations, for a backup: these and nothing that lies beside them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from registry.errors import StorageError
from sources.cursor_agent.files import FOLDERS
from sources.kit.sqlite_store import ClientDatabase

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
    "cline": ("tasks/*/*", "sessions/*/*", "state/taskHistory.json"),
    "roo-code": ("tasks/*/*",),
    "continue": ("sessions/*",),
    "goose": ("*",),
    "opencode": ("session/**/*", "message/**/*", "part/**/*", "*/storage/**/*"),
}
"""Of each client, below its store; a store that is a file stands for itself."""

_ENDS = frozenset({".jsonl", ".json", ".txt", ".md", ".yaml", ".db", ".vscdb", ".zst"})
_DATABASE = b"SQLite format 3\0"
_SECRETS = "DELETE FROM ItemTable WHERE key LIKE 'cursorAuth/%' OR key LIKE 'secret://%' OR key LIKE '%token%'"
"""What a Cursor database holds besides conversations, and nobody should find in a backup."""


class KeptFile(NamedTuple):
    """A file of a store, and its path below the folder that the store's files are copied to."""

    path: Path
    name: str


def kept_files(source: str, store: Path) -> Iterator[KeptFile]:
    """The files of a store in a settled order. A client of whose files nothing is known has none."""
    if source == "cursor":
        store = store.parents[1]
    if store.is_file():
        yield KeptFile(store, store.name)
        return
    found = {path for pattern in _PATTERNS.get(source, ()) for path in store.glob(pattern)}
    for path in sorted(path for path in found if path.suffix in _ENDS and path.is_file()):
        yield KeptFile(path, path.relative_to(store).as_posix())


def is_database(path: Path) -> bool:
    """Whether a file is SQLite's, whatever it is called."""
    with path.open("rb") as file:
        return file.read(len(_DATABASE)) == _DATABASE


def copy_database(path: Path, target: Path) -> None:
    """A client's database as it is at one moment, without what logs its user in. Raises StorageError."""
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
