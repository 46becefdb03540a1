"""Many rows into a table: on PostgreSQL with one statement for all of them, whatever their number."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Table, insert, text

from registry.storage.database import WriteTransaction


def insert_many(tx: WriteTransaction, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows whose fields are called as in the table. All have the same ones; None is an empty field."""
    if tx.dialect.name == "postgresql":
        columns = {column.key: column.name for column in table.columns if column.key in rows[0]}
        insert_records(tx, table.name, [{columns[key]: value for key, value in row.items()} for row in rows])
        return
    # An empty field is left out: as None, a JSON column would keep the word null.
    by_shape: dict[frozenset[str], list[dict[str, Any]]] = {}
    for row in rows:
        given = {name: value for name, value in row.items() if value is not None}
        by_shape.setdefault(frozenset(given), []).append(given)
    for same_shape in by_shape.values():
        tx.execute(insert(table), same_shape)


def insert_records(tx: WriteTransaction, table: str, records: Sequence[Mapping[str, Any]]) -> None:
    """The same on PostgreSQL alone, by the names of the columns; a value may be a text that the column's type reads.

    Row by row the server would read and plan the statement as often, and the driver take each value by itself.
    """
    columns = ", ".join(f'"{name}"' for name in records[0])
    statement = _INSERT.format(table=table, columns=columns)
    given = json.dumps(records, ensure_ascii=False, separators=(",", ":"), default=_as_text)
    tx.execute(text(statement), {"records": given})


_INSERT = (
    "INSERT INTO {table} ({columns})"
    " SELECT {columns} FROM json_populate_recordset(CAST(NULL AS {table}), CAST(:records AS json))"
)


def _as_text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return "\\x" + bytes(value).hex()
