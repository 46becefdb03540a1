"""Write to Cursor's own databases, after recording all steps in a journal, by which they can be undone.

Cursor stores keys in the same rows; they must not get into the journal.
"""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any, Self

from registry.domain import as_json
from registry.errors import InvalidRequest, StorageError
from sources.kit.loose_json import mapping, read_json

Json = dict[str, Any]

# the tables to which we write, with their key columns
_KEYS = {"cursorDiskKV": "key", "ItemTable": "key", "composerHeaders": "composerId"}


@dataclass(frozen=True, slots=True)
class ValueChange:
    """A value of a row before and after. None: the row or the field does not exist.

    `field`: change only this field of the value's JSON, because other fields have keys.
    """

    database: str
    table: str
    key: str
    column: str
    before: str | None
    after: str | None
    field: str = ""

    def do(self, connection: sqlite3.Connection) -> None:
        """Write the value. Raises StorageError if it has changed since the planning."""
        if value_of(connection, self.table, self.key, self.column, self.field) != self.before:
            raise StorageError("Cursor has written meanwhile; nothing was changed.", f"{self.database}: {self.key}")
        connection.execute(*_statement(self))

    def undone(self) -> Self:
        return replace(self, before=self.after, after=self.before)


@dataclass(frozen=True, slots=True)
class RowRemoval:
    """Deletes the row of a copy, if Cursor has not changed it."""

    database: str
    table: str
    key: str
    sha256: str

    def do(self, connection: sqlite3.Connection) -> None:
        """Delete the row. Raises StorageError if Cursor has changed the copy."""
        if digest_of(row_of(connection, self.table, self.key)) != self.sha256:
            raise StorageError("The copy was continued in Cursor; delete it there.", f"{self.database}: {self.key}")
        where = f"{_KEYS[self.table]} = ?"
        connection.execute(f"DELETE FROM {self.table} WHERE {where}", (self.key,))  # noqa: S608, names of ours


@dataclass(frozen=True, slots=True)
class RowCopy:
    """A row of the same table under a new key, changed by `change`; `sha256` is the digest of the new row."""

    database: str
    table: str
    key: str
    to: str
    sha256: str
    change: Callable[[Json], Json] = field(repr=False, compare=False)

    def do(self, connection: sqlite3.Connection) -> None:
        """Insert the row. Raises StorageError if the original has changed since the planning, or the key exists."""
        row = row_of(connection, self.table, self.key)
        new = self.change(row) if row else {}
        if digest_of(new) != self.sha256 or row_of(connection, self.table, self.to):
            raise StorageError("Cursor has written meanwhile; nothing was changed.", f"{self.database}: {self.key}")
        marks = ", ".join("?" * len(new))
        names = ", ".join(f'"{name}"' for name in new)
        connection.execute(f"INSERT INTO {self.table} ({names}) VALUES ({marks})", tuple(new.values()))  # noqa: S608

    def undone(self) -> RowRemoval:
        return RowRemoval(self.database, self.table, self.to, self.sha256)


Step = ValueChange | RowCopy | RowRemoval


def apply(steps: Sequence[Step], journal: Path, about: Mapping[str, Any]) -> None:
    """Record all steps in a new journal, then apply all or none.

    Raises InvalidRequest while Cursor runs; StorageError if a value has changed since the planning, or a write fails.
    """
    refuse_while_running()
    journal.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    changes = [asdict(step.undone() if isinstance(step, RowCopy) else step) for step in steps]
    with open(os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump({**about, "changes": changes}, file, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    _write(steps)


def undo(journal: Path) -> dict[str, Any]:
    """Undo the steps in a journal and return its contents."""
    try:
        noted: dict[str, Any] = json.loads(journal.read_text(encoding="utf-8"))
        changes = noted["changes"]
        steps: list[Step] = [RowRemoval(**one) if "sha256" in one else ValueChange(**one).undone() for one in changes]
    except (OSError, ValueError, KeyError, TypeError) as exc:
        allowed = "allowed: the file that the move named"
        raise InvalidRequest("That is not a journal of a move.", f"undo: given {str(journal)!r}; {allowed}") from exc
    refuse_while_running()
    _write(steps[::-1])
    return noted


def _write(steps: Sequence[Step]) -> None:
    """Apply the steps, one transaction for each database, the global database last; undo all after a failure."""
    done: list[Step] = []
    ordered = sorted(steps, key=lambda step: ("globalStorage" in Path(step.database).parts, step.database))
    try:
        for database, group in groupby(ordered, key=lambda step: step.database):
            batch = list(group)
            _write_into(database, batch)
            done += batch
    except (sqlite3.Error, StorageError) as exc:
        for database, group in groupby(done, key=lambda step: step.database):
            _write_into(database, [step.undone() for step in group if not isinstance(step, RowRemoval)])
        if isinstance(exc, StorageError):
            raise
        raise StorageError("Cursor's database could not be written; nothing was changed.", str(exc)) from exc


def _write_into(database: str, steps: Iterable[Step]) -> None:
    """Apply all steps of one database, or none."""
    with closing(sqlite3.connect(database, timeout=1, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for step in steps:
            step.do(connection)
        connection.execute("COMMIT")  # after an error, closing rolls back


def _statement(one: ValueChange) -> tuple[str, tuple[str | None, ...]]:
    key = _KEYS[one.table]
    if one.field:
        text = f"CAST({one.column} AS TEXT)"
        changed = f"json_remove({text}, '$.{one.field}')"
        if one.after is not None:
            changed = f"json_set({text}, '$.{one.field}', json(?))"
        given = [] if one.after is None else [one.after]
        return f"UPDATE {one.table} SET {one.column} = {changed} WHERE {key} = ?", (*given, one.key)  # noqa: S608
    if one.after is None:
        return f"DELETE FROM {one.table} WHERE {key} = ?", (one.key,)  # noqa: S608, names of ours
    if one.before is None:
        return f"INSERT INTO {one.table} ({key}, {one.column}) VALUES (?, ?)", (one.key, one.after)  # noqa: S608
    return f"UPDATE {one.table} SET {one.column} = ? WHERE {key} = ?", (one.after, one.key)  # noqa: S608


def refuse_while_running() -> None:
    """Raise InvalidRequest while Cursor runs, because it would overwrite our changes with its lists in memory."""
    if any(name.casefold() in ("cursor", "cursor.exe") for name in running_programs()):
        raise InvalidRequest("Cursor is running.", "Quit Cursor, then ask again: it would write over the change")


def running_programs() -> Iterator[str]:
    if sys.platform.startswith("linux"):
        for process in Path("/proc").glob("[0-9]*/comm"):
            with suppress(OSError):
                yield process.read_text(errors="replace").strip()
        return
    command = ["tasklist", "/fo", "csv", "/nh"] if sys.platform == "win32" else ["ps", "-axco", "command"]
    listing = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)  # noqa: S603
    yield from (line.split(",")[0].strip(' "') for line in listing.stdout.splitlines())


def value_of(connection: sqlite3.Connection, table: str, key: str, column: str, field: str = "") -> str | None:
    """Return a value, or one field of its JSON, as text; None if it does not exist."""
    value = row_of(connection, table, key).get(column)
    text = value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
    found = record_of(text).get(field) if field else text
    return as_json(found) if field and found is not None else found


def record_of(value: str | None) -> Json:
    return dict(mapping(read_json(value)))


def open_read_only(database: Path) -> closing[sqlite3.Connection]:
    """Open a database read-only; an empty one in memory if there is no file."""
    where = f"{database.absolute().as_uri()}?mode=ro" if database.exists() else ":memory:"
    return closing(sqlite3.connect(where, uri=True, timeout=1))


def has_table(connection: sqlite3.Connection, table: str) -> bool:
    return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone())


def row_of(connection: sqlite3.Connection, table: str, key: str) -> Json:
    """Return a row by its columns; empty if it does not exist."""
    if not has_table(connection, table):
        return {}
    query = f"SELECT * FROM {table} WHERE {_KEYS[table]} = ?"  # noqa: S608, names of ours
    found = connection.execute(query, (key,))
    row = found.fetchone()
    return dict(zip((column[0] for column in found.description), row, strict=True)) if row else {}


def digest_of(row: Json) -> str:
    """Return a row's SHA-256; empty for an empty row."""
    return sha256(repr(sorted(row.items())).encode("utf-8", "surrogateescape")).hexdigest() if row else ""
