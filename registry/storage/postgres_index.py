"""The message index on PostgreSQL: one narrow table of position-less tsvectors under a GIN index."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ARRAY, BigInteger, ColumnElement, any_, bindparam, select, text

from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.index_entries import Entry
from registry.storage.message_index import COLUMNS, TABLE, TITLE, Groups, MessageIndex
from registry.storage.tables import conversation

_ADD = "INSERT INTO {0} (number, tokens) VALUES (:number, CAST(:tokens AS tsvector))"
_REMOVE = "DELETE FROM {0} WHERE number = :number"
_COUNT = """
SELECT token, (SELECT count(*) FROM message_index WHERE tokens @@ CAST(quote_literal(token) AS tsquery))
FROM unnest(CAST(%s AS text[])) AS token
"""
_HOLDERS = "SELECT array_agg(number) FROM message_index WHERE tokens @@ CAST(%s AS tsquery) AND number > 0"
_NEWEST = """
SELECT array_agg(number) FROM (
    SELECT number FROM message_index WHERE tokens @@ CAST(%s AS tsquery) AND number > 0 ORDER BY number DESC LIMIT %s
) AS newest
"""
_TITLES = "SELECT array_agg(number) FROM message_index WHERE tokens @@ CAST(%s AS tsquery) AND number < 0"
_GIVEN = bindparam("numbers", type_=ARRAY(BigInteger))
_MESSAGES = select(*COLUMNS).where(conversation.c.number == any_(_GIVEN), conversation.c.deleted.is_(False))


class PostgresIndex(MessageIndex):
    """`tsvector` made of our own tokens, never of the database's analysis (retrieval notes 2)."""

    name = "gin"

    def add(self, tx: WriteTransaction, entries: Sequence[Entry], into: str = TABLE) -> None:
        tx.execute(
            text(_ADD.format(into)),
            [{"number": entry.number, "tokens": " ".join(f"'{token}'" for token in entry.tokens)} for entry in entries],
        )

    def remove(self, tx: WriteTransaction, entries: Sequence[Entry], into: str = TABLE) -> None:
        tx.execute(text(_REMOVE.format(into)), [{"number": entry.number} for entry in entries])

    def count(self, tx: ReadTransaction, tokens: Collection[str]) -> dict[str, int]:
        return {row[0]: row[1] for row in tx.exec_driver_sql(_COUNT, (list(tokens),)) if row[1]}

    def holders(self, tx: ReadTransaction, groups: Groups, without: Sequence[str] = ()) -> list[int]:
        return tx.exec_driver_sql(_HOLDERS, (_expression(groups, without),)).scalar() or []

    def newest_holders(self, tx: ReadTransaction, groups: Groups, without: Sequence[str], limit: int) -> list[int]:
        return tx.exec_driver_sql(_NEWEST, (_expression(groups, without), limit)).scalar() or []

    def titles_holding(self, tx: ReadTransaction, token: str) -> list[int]:
        return tx.exec_driver_sql(_TITLES, (_expression([[TITLE], [token]], ()),)).scalar() or []

    def messages(
        self, tx: ReadTransaction, numbers: Sequence[int], conditions: Sequence[ColumnElement[bool]]
    ) -> list[Sequence[Any]]:
        return list(tx.execute(_MESSAGES.where(*conditions), {"numbers": numbers}).all())


def _expression(groups: Groups, without: Sequence[str]) -> str:
    wanted = ["(" + " | ".join(map(_quoted, group)) + ")" for group in groups]
    return " & ".join([*wanted, *(f"!'{token}'" for token in without)])


def _quoted(token: str) -> str:
    return f"'{token[:-1]}':*" if token.endswith("*") else f"'{token}'"
