"""The numbers that PostgreSQL gives: in steps, where several nodes share out what there is.

Each node's sequences have a remainder of their own then: `ALTER SEQUENCE … INCREMENT BY 16 START 3 RESTART 3`.
"""

from __future__ import annotations

from sqlalchemy import Table, text

from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.safety.visibility import ask_all

_STEP = """
SELECT seqincrement FROM pg_sequence WHERE seqrelid = CAST(pg_get_serial_sequence(:name, 'number') AS regclass)
"""
_NEXT = """
SELECT setval(CAST(seqrelid AS regclass), seqstart + seqincrement * CAST(greatest(0, ceil(
    ((SELECT coalesce(max(number), 0) FROM {0}) + 1 - seqstart) / CAST(seqincrement AS numeric))) AS bigint), false)
FROM pg_sequence WHERE seqrelid = CAST(pg_get_serial_sequence('{0}', 'number') AS regclass)
"""

_LAST = {
    "sqlite": "SELECT seq FROM sqlite_sequence WHERE name = '{0}'",
    "postgresql": "SELECT greatest((SELECT max(number) FROM {0}),"
    " pg_sequence_last_value(CAST(pg_get_serial_sequence('{0}', 'number') AS regclass)))",
}


def last_number(tx: ReadTransaction, table: Table) -> int:
    """The last number that was given in a table, also to a row that is gone by now."""
    return int(ask_all(tx, text(_LAST[tx.dialect.name].format(table.name))).scalar() or 0)


def step_of(tx: ReadTransaction, table: Table) -> int:
    """Return how far from a table's number the next one is that the same node gives."""
    if tx.dialect.name != "postgresql":
        return 1
    return int(ask_all(tx, text(_STEP).bindparams(name=table.name)).scalar_one())


def set_next_number(tx: WriteTransaction, table: Table) -> None:
    """Let what is stored next get a number of its own, where numbers were given by hand."""
    if tx.dialect.name == "postgresql" and "number" in table.columns and table.columns["number"].primary_key:
        tx.execute(text(_NEXT.format(table.name)))
