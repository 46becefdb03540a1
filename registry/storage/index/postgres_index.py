"""The message index on PostgreSQL: a narrow table of position-less tsvectors under a GIN index."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import text

from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.index.index_entries import Entry
from registry.storage.index.message_index import TABLE, Groups, MessageIndex
from registry.storage.safety.visibility import ask_all


class PostgresIndex(MessageIndex):
    """Asks GIN."""

    name = "gin"

    def add(self, tx: WriteTransaction, entries: Sequence[Entry], into: str = TABLE) -> None:
        rows = [{"number": one.number, "tokens": _tsvector(one.tokens)} for one in entries]
        if rows:
            statement = (
                f"INSERT INTO {into} SELECT * FROM json_populate_recordset(CAST(NULL AS {into}), CAST(%s AS json))"  # noqa: S608, names of ours
            )
            tx.exec_driver_sql(statement, (json.dumps(rows, ensure_ascii=False),))

    def remove(self, tx: WriteTransaction, entries: Sequence[Entry], into: str = TABLE) -> None:
        statement = f"DELETE FROM {into} WHERE number = ANY(%s)"  # noqa: S608, names of ours
        tx.exec_driver_sql(statement, ([entry.number for entry in entries],))

    def _count(self, tx: ReadTransaction, tokens: Collection[str]) -> dict[str, int]:
        query = text("""
            SELECT token, (SELECT count(*) FROM message_index WHERE tokens @@ CAST(quote_literal(token) AS tsquery))
            FROM unnest(CAST(:tokens AS text[])) AS token""")
        return {row[0]: row[1] for row in ask_all(tx, query, {"tokens": list(tokens)}) if row[1]}

    def _holders(
        self, tx: ReadTransaction, queries: Mapping[str, tuple[Groups, Sequence[str]]]
    ) -> dict[str, list[int]]:
        query = text("""
            SELECT name, (SELECT array_agg(number) FROM message_index WHERE tokens @@ query)
            FROM unnest(CAST(:names AS text[]), CAST(:queries AS tsquery[])) AS asked (name, query)""")
        asked = {"names": list(queries), "queries": [_tsquery(*each) for each in queries.values()]}
        return {row[0]: row[1] or [] for row in ask_all(tx, query, asked)} if queries else {}


def _tsvector(tokens: Sequence[str]) -> str:
    return "'" + " ".join(tokens).replace(" ", "' '") + "'" if tokens else ""


def _tsquery(groups: Groups, without: Sequence[str]) -> str:
    wanted = ["(" + " | ".join(map(_quoted, group)) + ")" for group in groups]
    return " & ".join([*wanted, *(f"!{_quoted(token)}" for token in without)])


def _quoted(token: str) -> str:
    return f"'{token[:-1]}':*" if token.endswith("*") else f"'{token}'"
