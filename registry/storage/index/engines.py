"""The message index on SQLite, and which index serves which database.

No database analyses a text: each stores the tokens of our own analyzer
(docs/decisions/0005-search-in-the-database.md).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import text

from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.index.index_entries import Entry
from registry.storage.index.message_index import TABLE, Groups, MessageIndex
from registry.storage.index.postgres_index import PostgresIndex
from registry.storage.safety.visibility import access_of, ask_all


class SqliteIndex(MessageIndex):
    """A contentless FTS5 table that holds only the postings: a third of the text's size."""

    name = "fts5"

    def add(self, tx: WriteTransaction, entries: Sequence[Entry], into: str = TABLE) -> None:
        tx.exec_driver_sql(f"INSERT INTO {into} (rowid, t) VALUES (?, ?)", _rows(entries))  # noqa: S608, names of ours

    def remove(self, tx: WriteTransaction, entries: Sequence[Entry], into: str = TABLE) -> None:
        statement = f"INSERT INTO {into} ({into}, rowid, t) VALUES ('delete', ?, ?)"  # noqa: S608, names of ours
        tx.exec_driver_sql(statement, _rows(entries))

    def _count(self, tx: ReadTransaction, tokens: Collection[str]) -> dict[str, int]:
        query = text("SELECT term, doc FROM message_term WHERE term IN (SELECT value FROM json_each(:tokens))")
        return {row[0]: row[1] for row in ask_all(tx, query, {"tokens": json.dumps(list(tokens))})}

    def count_many(self, tx: ReadTransaction, tokens: Collection[str], beginning: str) -> dict[str, int]:
        """Count many tokens: reading all with this beginning is faster than looking each one up."""
        if access_of(tx):
            return self.count(tx, tokens)
        query = text("SELECT term, doc FROM message_term WHERE term >= :first AND term < :last")
        found = {row[0]: row[1] for row in ask_all(tx, query, {"first": beginning, "last": beginning + LAST})}
        some = {token: found[token] for token in tokens if token in found}
        return some | self._count(tx, [token for token in tokens if not token.startswith(beginning)])

    def _holders(
        self, tx: ReadTransaction, queries: Mapping[str, tuple[Groups, Sequence[str]]]
    ) -> dict[str, list[int]]:
        # as one text: a row for each posting would cost several times as much
        query = text("""
            SELECT (SELECT json_group_array(rowid) FROM message_index WHERE message_index MATCH asked.value)
            FROM json_each(:queries) AS asked ORDER BY asked.key""")
        expressions = [_expression(groups, without) for groups, without in queries.values()]
        found = ask_all(tx, query, {"queries": json.dumps(expressions, ensure_ascii=False)}) if queries else ()
        return {name: json.loads(numbers) for name, (numbers,) in zip(queries, found, strict=True)}


LAST = "\U0010ffff"  # sorts after every letter


def _rows(entries: Sequence[Entry]) -> list[tuple[object, ...]]:
    """Return the rows by number: FTS5 flushes its buffer at each number smaller than the one before."""
    return [(entry.number, " ".join(entry.tokens)) for entry in sorted(entries, key=lambda entry: entry.number)]


def _expression(groups: Groups, without: Sequence[str]) -> str:
    wanted = " AND ".join("(" + " OR ".join(map(_quoted, group)) + ")" for group in groups)
    return wanted if not without else f"({wanted})" + "".join(f" NOT {_quoted(token)}" for token in without)


def _quoted(token: str) -> str:
    return f'"{token[:-1]}"*' if token.endswith("*") else f'"{token}"'


ENGINES: dict[str, MessageIndex] = {"sqlite": SqliteIndex(), "postgresql": PostgresIndex()}


def index_of(tx: ReadTransaction) -> MessageIndex:
    """Return the index of the database that this transaction is open on."""
    return ENGINES[tx.dialect.name]
