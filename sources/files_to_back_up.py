"""List the files that a backup of the clients' conversations needs, without credentials and other files."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from registry.errors import StorageError
from sources.base import Source
from sources.clients import CURSOR
from sources.kit.sqlite_store import ClientDatabase

_ENDS = (".jsonl", ".json", ".txt", ".md", ".yaml", ".db", ".vscdb", ".zst")
_IN_CURSOR = "key LIKE 'cursorAuth/%' OR key LIKE 'secret://%' OR key LIKE '%token%'"
_TABLES_OF_KEYS = ("account", "control_account", "credential", "session_share", "auth_profile_store")
# the rows with credentials in the clients' databases, by table
_SECRETS = {"ItemTable": _IN_CURSOR, **dict.fromkeys(_TABLES_OF_KEYS, "true")}


def files_to_back_up(reader: Source, store: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files of a store in a fixed order, each with its path in the copy. A store may be a single file."""
    if reader.name == CURSOR.source:
        store = store.parents[1]
    if store.is_file():
        yield store, store.name
        return
    found = {path for pattern in reader.backup_patterns() for path in store.glob(pattern)}
    for path in sorted(path for path in found if path.suffix in _ENDS and path.is_file()):
        yield path, path.relative_to(store).as_posix()


def is_database(path: Path) -> bool:
    """Return True for an SQLite database, by its first bytes."""
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def copy_database(path: Path, target: Path) -> None:
    """Copy a consistent snapshot of a client's database, without credentials. Raises StorageError."""
    with ClientDatabase(path) as database:
        tables = _SECRETS.keys() & database.tables()
        database.copy_to(target)
    if not tables:
        return
    try:
        with closing(sqlite3.connect(target)) as copy, copy:
            copy.execute("PRAGMA secure_delete = ON")
            for table in tables:
                copy.execute(f"DELETE FROM {table} WHERE {_SECRETS[table]}")  # noqa: S608 - names of ours
    except sqlite3.Error as exc:
        raise StorageError(f"{path.name} cannot be copied.", f"{path}: {exc}") from exc
