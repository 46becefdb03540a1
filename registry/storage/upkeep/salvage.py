"""All that can still be read of a damaged SQLite registry, in a new one.

The damaged file is only copied. Rows are read by their numbers, in ever smaller parts around what cannot be read.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import JSON, LargeBinary, select
from sqlalchemy.types import TypeEngine

from registry.domain import format_time, now
from registry.errors import InvalidRequest, StorageError
from registry.storage.connections import create_database_engine
from registry.storage.conversations.channels import recount_channel
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.migrate import migrate
from registry.storage.tables import UtcTime, channel, metadata

MOST_NUMBERS = 2**40
"""Where not even the largest number of a table can be read, rows are looked for up to here."""
_FIRST = ("channel", "conversation")
"""What others refer to."""


@dataclass(slots=True)
class Salvaged:
    """How many rows of each table were saved, and how many places of it could not be read."""

    rows: dict[str, int] = field(default_factory=dict)
    unreadable: dict[str, int] = field(default_factory=dict)


def salvage(damaged: Path, new: Path) -> Salvaged:
    """Write what can be read into a new registry, without its index. InvalidRequest if there is a file already."""
    if new.exists():
        raise InvalidRequest("There is a file of that name already.", f"given {new}; allowed: a new one")
    if not damaged.exists():
        raise InvalidRequest("There is no registry to save.", f"{damaged}; a registry on SQLite is expected there")
    migrate(f"sqlite:///{new}")
    with TemporaryDirectory(dir=new.parent, prefix="salvage-") as folder:
        copy = Path(folder) / "registry.db"
        for end in ("", "-wal"):
            if Path(f"{damaged}{end}").exists():
                shutil.copyfile(f"{damaged}{end}", f"{copy}{end}")
        with closing(sqlite3.connect(copy)) as old, closing(sqlite3.connect(new)) as into:
            old.text_factory = lambda raw: raw.decode(errors="replace")
            old.execute("PRAGMA writable_schema = ON")  # else one damaged line of the schema hides all tables
            done = _copy_all(old, into)
    _recount(new)
    return done


def _copy_all(old: sqlite3.Connection, into: sqlite3.Connection) -> Salvaged:
    done = Salvaged()
    names = [*_FIRST, *(name for name in metadata.tables if name not in _FIRST)]
    for name in names:
        columns = _columns(into, name)
        try:
            known = _columns(old, name)
        except sqlite3.DatabaseError as exc:
            raise StorageError("Nothing of the registry can be read.", f"{type(exc).__name__}: {exc}") from exc
        shared = [column for column in columns if column in known]
        if not shared:
            continue
        done.rows[name] = done.unreadable[name] = 0
        marks = ", ".join("?" * len(shared))
        listed = ", ".join(shared)
        insert = f"INSERT OR IGNORE INTO {name} ({listed}) VALUES ({marks})"  # noqa: S608, names of ours
        types = {column.name: column.type for column in metadata.tables[name].columns}
        kinds = [types[column] for column in shared]
        for row in _rows(old, name, listed, done):
            try:
                done.rows[name] += into.execute(insert, _legible(row, kinds)).rowcount
            except sqlite3.Error:  # what was read is no row any more
                done.unreadable[name] += 1
    into.execute(_ORPHANS, (_now(), _now()))
    into.execute("DELETE FROM tag WHERE channel_number NOT IN (SELECT number FROM channel)")
    into.commit()
    return done


def _legible(row: Sequence[Any], kinds: Sequence[TypeEngine[Any]]) -> list[Any]:
    """The row with times and details that can be read; what is damaged in it is another time of it, or empty."""
    times = [value for value, kind in zip(row, kinds, strict=True) if isinstance(kind, UtcTime) and _is_time(value)]
    other = times[0] if times else _now()
    return [_mended(value, kind, other) for value, kind in zip(row, kinds, strict=True)]


def _mended(value: Any, kind: TypeEngine[Any], other: str) -> Any:
    match kind:
        case UtcTime() if value is not None and not _is_time(value):
            return other
        case JSON() if value is not None and not _is_json(value):
            return "{}"
        case LargeBinary() if isinstance(value, str):
            return value.encode()
    return value


def _is_time(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(datetime.fromisoformat(value))
    except ValueError:
        return False


def _is_json(value: object) -> bool:
    try:
        return isinstance(value, str) and isinstance(json.loads(value), dict | list)
    except ValueError:
        return False


def _now() -> str:
    return format_time(now()).replace("T", " ").rstrip("Z")


_ORPHANS = """
INSERT OR IGNORE INTO channel
    (number, name, source, meta, message_count, seq_count, token_count, created_at, updated_at, deleted)
SELECT channel_number, min(channel), min(source), '{}', 0, max(seq) + 1, 0, ?, ?, 0
FROM conversation WHERE channel_number NOT IN (SELECT number FROM channel) GROUP BY channel_number
"""


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def _rows(old: sqlite3.Connection, table: str, listed: str, done: Salvaged) -> Iterator[tuple[object, ...]]:
    """The rows of a table; a table without numbers as far as it can be read in its own order."""
    if "number" not in listed.split(", "):
        yield from _until_damage(old, f"SELECT {listed} FROM {table}", done, table)  # noqa: S608, names of ours
        return
    query = f"SELECT {listed} FROM {table} WHERE number BETWEEN ? AND ?"  # noqa: S608, names of ours
    waiting = [(1, _last_number(old, table))]
    while waiting:
        first, last = waiting.pop()
        try:
            found = old.execute(query, (first, last)).fetchall()
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            if first == last:
                done.unreadable[table] += 1
            else:
                middle = (first + last) // 2
                waiting += [(middle + 1, last), (first, middle)]
            continue
        yield from found


def _until_damage(old: sqlite3.Connection, query: str, done: Salvaged, table: str) -> Iterator[tuple[object, ...]]:
    rows = old.execute(query)
    while True:
        try:
            row = rows.fetchone()
        except sqlite3.DatabaseError:
            done.unreadable[table] += 1
            return
        if row is None:
            return
        yield row


def _last_number(old: sqlite3.Connection, table: str) -> int:
    for query in (
        f"SELECT seq FROM sqlite_sequence WHERE name = '{table}'",  # noqa: S608, names of ours
        f"SELECT max(number) FROM {table}",  # noqa: S608, names of ours
    ):
        try:
            row = old.execute(query).fetchone()
        except sqlite3.DatabaseError:
            continue
        if row and isinstance(row[0], int) and 0 < row[0] < MOST_NUMBERS:
            return row[0]
    return 1


def _recount(new: Path) -> None:
    engine = create_database_engine(f"sqlite:///{new}")
    try:
        with engine.execution_options(write=True).begin() as connection:
            tx = WriteTransaction(ReadTransaction(connection))
            for number in tx.execute(select(channel.c.number)).scalars().all():
                recount_channel(tx, number)
    finally:
        engine.dispose()
