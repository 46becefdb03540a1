"""Copy all readable rows of a damaged SQLite registry into a new one.

The damaged file is not changed. Rows are read by number ranges, which are halved around unreadable rows, and imported
like a backup: as lines of JSON into new tables.
"""

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import JSON, LargeBinary, Table

from registry.domain import now
from registry.errors import InvalidRequest, StorageError
from registry.storage.column_types import UtcTime
from registry.storage.migrations import HEAD
from registry.storage.tables import metadata
from registry.storage.upkeep.table_export import import_into_file, row_line
from registry.temporary_folder import new_file

Row = Sequence[Any]


def salvage(damaged: Path, new: Path, build_index: Callable[[Path], object]) -> dict[str, tuple[int, int]]:
    """Write what can be read into a new registry. InvalidRequest if there is a file already.

    Returns by table the numbers of saved and of unreadable rows. The file gets its name when it is complete.
    """
    if new.exists():
        raise InvalidRequest("There is a file of that name already.", f"given {new}; allowed: a new one")
    if not damaged.exists():
        raise InvalidRequest("There is no registry to salvage.", f"{damaged}; a registry on SQLite is expected there")
    lost = Counter[str]()
    with new_file(new) as made:
        copy = made.with_name(f"damaged-{made.name}")
        for end in ("", "-wal"):
            if Path(f"{damaged}{end}").exists():
                shutil.copyfile(f"{damaged}{end}", f"{copy}{end}")
        with closing(sqlite3.connect(copy)) as old:
            old.text_factory = lambda raw: raw.decode(errors="replace")
            old.execute("PRAGMA writable_schema = ON")  # otherwise one damaged row of the schema hides all tables
            import_into_file(made, HEAD, lambda name: _lines(old, metadata.tables[name], lost), is_damaged=True)
        build_index(made)
        with closing(sqlite3.connect(made)) as saved:
            counts = {name: saved.execute(f"SELECT count(*) FROM {name}").fetchone() for name in metadata.tables}  # noqa: S608, ours
    return {name: (count, lost[name]) for name, [count] in counts.items()}


def _lines(old: sqlite3.Connection, table: Table, lost: Counter[str]) -> Iterator[bytes]:
    try:
        known = {row[1] for row in old.execute(f"PRAGMA table_info({table.name})")}
    except sqlite3.DatabaseError as exc:
        raise StorageError("Nothing of the registry can be read.", f"{type(exc).__name__}: {exc}") from exc
    columns = [column for column in table.columns if column.name in known]
    if columns:
        listed = ", ".join(f'"{column.name}"' for column in columns)
        for row in _rows(old, table, listed, lost):
            yield row_line(_repair_row(columns, row))


def _repair_row(columns: Sequence[Any], row: Row) -> dict[str, Any]:
    """Return the row by column name. A damaged time is replaced by another time of the row, damaged JSON by {}."""
    times = [_time(value) for column, value in zip(columns, row, strict=True) if isinstance(column.type, UtcTime)]
    fallback = next((time for time in times if time), now())
    values = dict[str, Any]()
    for column, value in zip(columns, row, strict=True):
        match column.type:
            case UtcTime() if value is not None:
                value = _time(value) or fallback
            case JSON() if value is not None:
                value = _json(value)
            case LargeBinary() if isinstance(value, str):
                value = value.encode()
        values[column.name] = value
    return values


def _time(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(value).replace(tzinfo=UTC) if isinstance(value, str) else None
    except ValueError:
        return None


def _json(value: Any) -> Any:
    try:
        found = json.loads(value)
    except (TypeError, ValueError):
        return {}
    return found if isinstance(found, dict | list) else {}


def _rows(old: sqlite3.Connection, table: Table, listed: str, lost: Counter[str]) -> Iterator[Row]:
    """Yield the readable rows of a table; halve an unreadable range down to single rows."""
    if table.dialect_options["sqlite"]["with_rowid"] is False:  # has no rowid to select ranges by
        try:
            yield from old.execute(f"SELECT {listed} FROM {table.name}")  # noqa: S608, names of ours
        except sqlite3.DatabaseError:
            lost[table.name] = 1
        return
    query = f"SELECT {listed} FROM {table.name} WHERE rowid BETWEEN ? AND ?"  # noqa: S608, names of ours
    ranges = [(1, _last_number(old, table.name))]
    while ranges:
        first, last = ranges.pop()
        try:
            yield from old.execute(query, (first, last)).fetchall()
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            if first == last:
                lost[table.name] += 1
            else:
                middle = (first + last) // 2
                ranges += [(middle + 1, last), (first, middle)]


def _last_number(old: sqlite3.Connection, table: str) -> int:
    for query in (
        f"SELECT seq FROM sqlite_sequence WHERE name = '{table}'",  # noqa: S608, names of ours
        f"SELECT max(rowid) FROM {table}",  # noqa: S608, names of ours
    ):
        try:
            row = old.execute(query).fetchone()
        except sqlite3.DatabaseError:
            continue
        if row and isinstance(row[0], int) and 0 < row[0] < 2**40:
            return row[0]
    return 1
