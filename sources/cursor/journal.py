"""What is written to Cursor's own databases: each step noted in a journal before, done, looked at, and taken back.

Cursor's keys stand in the same rows, and go into no journal.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

from registry.errors import InvalidRequest, StorageError

Json = dict[str, Any]

_KEYS = {"cursorDiskKV": "key", "ItemTable": "key", "composerHeaders": "composerId"}
"""The tables that are written, and what their rows are found by."""


class Step(Protocol):
    """Something that is written to one of Cursor's databases, and can be taken back."""

    @property
    def database(self) -> str:
        """The file."""

    @property
    def table(self) -> str:
        """Where in it."""

    @property
    def key(self) -> str:
        """The row."""

    def do(self, connection: sqlite3.Connection) -> None:
        """Write it; StorageError where what stands there is not what was planned with."""

    def stands(self, connection: sqlite3.Connection) -> bool:
        """Whether it is there now."""

    def undone(self) -> Step:
        """The step back."""

    def noted(self) -> Json:
        """What the journal tells of it."""


@dataclass(frozen=True, slots=True)
class Change:
    """One value of one row, as it was and as it will be. None: there is no such row, or no such field.

    `field`: only that field of the JSON that the value is: keys stand beside it, which go into no journal.
    """

    database: str
    table: str
    key: str
    column: str
    before: str | None
    after: str | None
    field: str = ""

    def do(self, connection: sqlite3.Connection) -> None:
        """Write it; StorageError where the value is another one by now."""
        if value_of(connection, self.table, self.key, self.column, self.field) != self.before:
            raise StorageError("Cursor has written meanwhile; nothing was changed.", f"{self.database}: {self.key}")
        connection.execute(*_statement(self))

    def stands(self, connection: sqlite3.Connection) -> bool:
        """Whether the value is what it should be."""
        return value_of(connection, self.table, self.key, self.column, self.field) == self.after

    def undone(self) -> Change:
        """The change back."""
        return Change(self.database, self.table, self.key, self.column, self.after, self.before, self.field)

    def noted(self) -> Json:
        """What the journal tells of it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Removal:
    """A row of a copy that goes again, if nobody has written to it."""

    database: str
    table: str
    key: str
    sha256: str

    def do(self, connection: sqlite3.Connection) -> None:
        """Remove it; StorageError where Cursor has written to the copy."""
        if digest_of(row_of(connection, self.table, self.key)) != self.sha256:
            raise StorageError("The copy went on in Cursor; delete it there.", f"{self.database}: {self.key}")
        where = f"{_KEYS[self.table]} = ?"
        connection.execute(f"DELETE FROM {self.table} WHERE {where}", (self.key,))  # noqa: S608, names of ours

    def stands(self, connection: sqlite3.Connection) -> bool:
        """Whether the row is gone."""
        return not row_of(connection, self.table, self.key)

    def undone(self) -> Step:
        """There is none: removals come last."""
        return self

    def noted(self) -> Json:
        """What the journal tells of it."""
        return {"database": self.database, "table": self.table, "key": self.key, "sha256": self.sha256}


def apply(steps: Sequence[Step], journal: Path, about: Mapping[str, Any]) -> None:
    """Note all of it in a new journal, do it, and look whether it stands. After a failure all is as it was before.

    InvalidRequest while Cursor runs; StorageError where a value is another one by now, or cannot be written.
    """
    refuse_while_running()
    journal.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    noted = {**about, "changes": [step.noted() for step in steps]}
    with open(os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(noted, file, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    _write(steps)


def undo(journal: Path) -> dict[str, Any]:
    """Put back what a journal tells of; what it tells."""
    try:
        noted: dict[str, Any] = json.loads(journal.read_text(encoding="utf-8"))
        steps: list[Step] = [Removal(**one) if "sha256" in one else Change(**one).undone() for one in noted["changes"]]
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise InvalidRequest("That is no journal of a move.", f"undo: given {str(journal)!r}; {exc}") from exc
    refuse_while_running()
    _write(steps[::-1])
    return noted


def _write(steps: Sequence[Step]) -> None:
    """Workspaces first: what is written in the global database with them cannot fail half way any more."""
    done: list[Step] = []
    ordered = sorted(steps, key=lambda step: ("globalStorage" in Path(step.database).parts, step.database))
    try:
        for database, of_one in groupby(ordered, key=lambda step: step.database):
            held = list(of_one)
            _write_into(database, held)
            done += held
            _look(held)
    except (sqlite3.Error, StorageError) as exc:
        for database, of_one in groupby(done, key=lambda step: step.database):
            _write_into(database, [step.undone() for step in of_one])
        if isinstance(exc, StorageError):
            raise
        raise StorageError("Cursor's database could not be written; it is as it was.", str(exc)) from exc


def _write_into(database: str, steps: Iterable[Step]) -> None:
    """All steps of one database, or none."""
    with closing(sqlite3.connect(database, timeout=1, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        try:
            for step in steps:
                step.do(connection)
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


def _statement(one: Change) -> tuple[str, tuple[str | None, ...]]:
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


def _look(steps: Iterable[Step]) -> None:
    for step in steps:
        with reading(Path(step.database)) as connection:
            if not step.stands(connection):
                raise StorageError("The move did not stand in Cursor's database.", f"{step.database}: {step.key}")


def refuse_while_running() -> None:
    """InvalidRequest while Cursor runs: it keeps its lists in memory and would write them over ours."""
    if any(name.casefold() in ("cursor", "cursor.exe") for name in running_programs()):
        raise InvalidRequest("Cursor is running.", "Quit Cursor, then ask again: it would write over the change")


def running_programs() -> Iterator[str]:
    """The names of the programs that run on this machine."""
    if sys.platform.startswith("linux"):
        for process in Path("/proc").glob("[0-9]*/comm"):
            with suppress(OSError):
                yield process.read_text(errors="replace").strip()
        return
    command = ["tasklist", "/fo", "csv", "/nh"] if sys.platform == "win32" else ["ps", "-axco", "command"]
    told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)  # noqa: S603
    yield from (line.split(",")[0].strip(' "') for line in told.stdout.splitlines())


def value_of(connection: sqlite3.Connection, table: str, key: str, column: str, field: str = "") -> str | None:
    """A value, or a field of it, as text, whether it is kept as one or as bytes; None where there is none."""
    text = f"CAST({column} AS TEXT)"
    text = f"json_extract({text}, '$.{field}')" if field else text
    query = f"SELECT {text} FROM {table} WHERE {_KEYS[table]} = ?"  # noqa: S608, names of ours
    with suppress(sqlite3.OperationalError):
        row = connection.execute(query, (key,)).fetchone()
        return str(row[0]) if row and row[0] is not None else None
    return None


def reading(database: Path) -> closing[sqlite3.Connection]:
    """An open database, read-only; an empty one where there is none."""
    where = f"{database.absolute().as_uri()}?mode=ro" if database.exists() else ":memory:"
    return closing(sqlite3.connect(where, uri=True, timeout=1))


def has_table(connection: sqlite3.Connection, table: str) -> bool:
    """Whether there is such a table."""
    return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone())


def row_of(connection: sqlite3.Connection, table: str, key: str) -> Json:
    """A whole row by its columns; empty where there is none."""
    if not has_table(connection, table):
        return {}
    query = f"SELECT * FROM {table} WHERE {_KEYS[table]} = ?"  # noqa: S608, names of ours
    found = connection.execute(query, (key,))
    row = found.fetchone()
    return dict(zip((column[0] for column in found.description), row, strict=True)) if row else {}


def digest_of(row: Json) -> str:
    """A row's SHA-256; none where there is no row."""
    return sha256(repr(sorted(row.items())).encode("utf-8", "surrogateescape")).hexdigest() if row else ""
