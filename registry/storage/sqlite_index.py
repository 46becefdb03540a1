"""The message index on SQLite: a contentless FTS5 table that keeps nothing but the postings."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, bindparam, column, func, select

from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.index_entries import Entry
from registry.storage.message_index import COLUMNS, TABLE, TITLE, Groups, MessageIndex
from registry.storage.tables import conversation

_ADD = "INSERT INTO {0} (rowid, t) VALUES (?, ?)"
_REMOVE = "INSERT INTO {0} ({0}, rowid, t) VALUES ('delete', ?, ?)"
_COUNT = "SELECT term, doc FROM message_term WHERE term IN (SELECT value FROM json_each(?))"
# As one text: a row for each posting would cost several times as much.
_HOLDERS = "SELECT json_group_array(rowid) FROM message_index WHERE message_index MATCH ? AND rowid > 0"
_NEWEST = """
SELECT json_group_array(rowid) FROM (
    SELECT rowid FROM message_index WHERE message_index MATCH ? AND rowid > 0 ORDER BY rowid DESC LIMIT ?)
"""
_TITLES = "SELECT json_group_array(rowid) FROM message_index WHERE message_index MATCH ? AND rowid < 0"
_GIVEN = func.json_each(bindparam("numbers")).table_valued(column("value")).alias("given")
_MESSAGES = select(*COLUMNS).where(conversation.c.number.in_(select(_GIVEN.c.value)), conversation.c.deleted.is_(False))


def _rows(entries: Sequence[Entry]) -> list[tuple[object, ...]]:
    return [(entry.number, " ".join(entry.tokens)) for entry in entries]


class SqliteIndex(MessageIndex):
    """`fts5(t, content='', detail=none)`; a third of the text's size (retrieval notes 2)."""

    name = "fts5"

    def add(self, tx: WriteTransaction, entries: Sequence[Entry], into: str = TABLE) -> None:
        tx.exec_driver_sql(_ADD.format(into), _rows(entries))

    def remove(self, tx: WriteTransaction, entries: Sequence[Entry], into: str = TABLE) -> None:
        tx.exec_driver_sql(_REMOVE.format(into), _rows(entries))

    def count(self, tx: ReadTransaction, tokens: Collection[str]) -> dict[str, int]:
        return {row[0]: row[1] for row in tx.exec_driver_sql(_COUNT, (json.dumps(list(tokens)),))}

    def holders(self, tx: ReadTransaction, groups: Groups, without: Sequence[str] = ()) -> list[int]:
        return _numbers(tx, _HOLDERS, _expression(groups, without))

    def newest_holders(self, tx: ReadTransaction, groups: Groups, without: Sequence[str], limit: int) -> list[int]:
        return _numbers(tx, _NEWEST, _expression(groups, without), limit)

    def titles_holding(self, tx: ReadTransaction, token: str) -> list[int]:
        return _numbers(tx, _TITLES, _expression([[TITLE], [token]], ()))

    def messages(
        self, tx: ReadTransaction, numbers: Sequence[int], conditions: Sequence[ColumnElement[bool]]
    ) -> list[Sequence[Any]]:
        return list(tx.execute(_MESSAGES.where(*conditions), {"numbers": json.dumps(numbers)}).all())


def _numbers(tx: ReadTransaction, statement: str, *given: str | int) -> list[int]:
    numbers: list[int] = json.loads(tx.exec_driver_sql(statement, given).scalar_one())
    return numbers


def _expression(groups: Groups, without: Sequence[str]) -> str:
    wanted = " AND ".join("(" + " OR ".join(map(_quoted, group)) + ")" for group in groups)
    return wanted if not without else f"({wanted})" + "".join(f' NOT "{token}"' for token in without)


def _quoted(token: str) -> str:
    return f'"{token[:-1]}"*' if token.endswith("*") else f'"{token}"'
