"""Many rows into a table: with one statement for all of them, whatever their number."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Column, Dialect, Table

from registry.storage.database import WriteTransaction
from registry.storage.tables import UtcTime


def insert_many(tx: WriteTransaction, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows whose fields are called as in the table. All have the same ones; None is an empty field."""
    columns = [column for column in table.columns if column.key in rows[0]]
    if tx.dialect.name == "postgresql":
        insert_records(tx, table.name, [{column.name: row[column.key] for column in columns} for row in rows])
        return
    names = ", ".join(f'"{column.name}"' for column in columns)
    statement = f"INSERT INTO {table.name} ({names}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608, all ours
    tx.exec_driver_sql(statement, list(_as_sqlite_takes_them(tx.dialect, columns, rows)))


Write = Callable[[Any], Any]


def _as_sqlite_takes_them(
    dialect: Dialect, columns: Sequence[Column[Any]], rows: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[Any, ...]]:
    """The rows' values; the driver takes all but JSON and times as they are."""
    keys = [column.key for column in columns]
    written = [(column.key, write) for column in columns if (write := _writing(dialect, column))]
    for row in rows:
        texts = {key: write(row[key]) for key, write in written if row[key] is not None}
        yield tuple([texts[key] if key in texts else row[key] for key in keys])


def _writing(dialect: Dialect, column: Column[Any]) -> Write | None:
    if not isinstance(column.type, JSON | UtcTime):
        return None
    return column.type.dialect_impl(dialect).bind_processor(dialect)


def insert_records(tx: WriteTransaction, table: str, records: Sequence[Mapping[str, Any]]) -> None:
    """The same on PostgreSQL alone, by the names of the columns; a value may be a text that the column's type reads.

    Row by row the server would read and plan the statement as often, and the driver take each value by itself.
    """
    columns = ", ".join(f'"{name}"' for name in records[0])
    given = json.dumps(records, ensure_ascii=False, separators=(",", ":"), default=_as_text)
    tx.exec_driver_sql(_INSERT.format(table=table, columns=columns), (given,))


_INSERT = (
    "INSERT INTO {table} ({columns})"
    " SELECT {columns} FROM json_populate_recordset(CAST(NULL AS {table}), CAST(%s AS json))"
)


def _as_text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return "\\x" + bytes(value).hex()
