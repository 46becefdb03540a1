"""Which index serves which database."""

from __future__ import annotations

from registry.storage.database import ReadTransaction
from registry.storage.message_index import MessageIndex
from registry.storage.postgres_index import PostgresIndex
from registry.storage.sqlite_index import SqliteIndex

ENGINES: dict[str, MessageIndex] = {"sqlite": SqliteIndex(), "postgresql": PostgresIndex()}


def index_of(tx: ReadTransaction) -> MessageIndex:
    """The index of the database this transaction is open on."""
    return ENGINES[tx.dialect.name]
