"""The message index on SQLite, and which index serves which database.

No database analyses a text: each stores the tokens of our own analyzer
(docs/decisions/0005-search-in-the-database.md).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.index.index_entries import Entry
from registry.storage.index.message_index import SEEN, SEEN_ENTRY, SEEN_TITLE, TABLE, TITLE, Groups, MessageIndex, seen
from registry.storage.index.postgres_index import PostgresIndex
from registry.storage.safety.visibility import access_of


class SqliteIndex(MessageIndex):
    """A contentless FTS5 table that keeps nothing but the postings: a third of the text's size."""

    name = "fts5"

    _ADD = "INSERT INTO {0} (rowid, t) VALUES (?, ?)"
    _REMOVE = "INSERT INTO {0} ({0}, rowid, t) VALUES ('delete', ?, ?)"
    _COUNT = "SELECT term, doc FROM message_term WHERE term IN (SELECT value FROM json_each(?))"
    _COUNT_BEGINNING = "SELECT term, doc FROM message_term WHERE term >= ? AND term < ?"
    _COUNT_SEEN = "SELECT count(*) FROM message_index WHERE message_index MATCH ?{seen}"
    # As one text: a row for each posting would cost several times as much.
    _HOLDERS = "SELECT json_group_array(rowid) FROM message_index WHERE message_index MATCH ? AND rowid > 0{seen}"
    _NEWEST = """
    SELECT json_group_array(rowid) FROM (
        SELECT rowid FROM message_index WHERE message_index MATCH ? AND rowid > 0{seen} ORDER BY rowid DESC LIMIT ?)
    """
    _OF_EACH = """
    SELECT (
        SELECT json_group_array(rowid) FROM message_index WHERE message_index MATCH asked.value AND rowid {0} 0{{seen}})
    FROM json_each(?) AS asked ORDER BY asked.key
    """
    _HOLDERS_OF_EACH, _TITLES = _OF_EACH.format(">"), _OF_EACH.format("<")

    def add(self, tx: WriteTransaction, entries: Sequence[Entry], into: str = TABLE) -> None:
        tx.exec_driver_sql(self._ADD.format(into), _rows(entries))

    def remove(self, tx: WriteTransaction, entries: Sequence[Entry], into: str = TABLE) -> None:
        tx.exec_driver_sql(self._REMOVE.format(into), _rows(entries))

    def count(self, tx: ReadTransaction, tokens: Collection[str]) -> dict[str, int]:
        if access_of(tx):
            statement = seen(tx, self._COUNT_SEEN, SEEN_ENTRY, "rowid")
            found = ((token, tx.exec_driver_sql(statement, (_fts5_token(token),)).scalar_one()) for token in tokens)
            return {token: count for token, count in found if count}
        return {row[0]: row[1] for row in tx.exec_driver_sql(self._COUNT, (json.dumps(list(tokens)),))}

    def count_many(self, tx: ReadTransaction, tokens: Collection[str], beginning: str) -> dict[str, int]:
        """Count many tokens: reading all with this beginning is faster than looking each one up."""
        if access_of(tx):  # which counts what it sees, one by one
            return self.count(tx, tokens)
        some = {token for token in tokens if token.startswith(beginning)}
        there = tx.exec_driver_sql(self._COUNT_BEGINNING, (beginning, beginning + LAST))
        found = {row[0]: row[1] for row in there if row[0] in some}
        return found | self.count(tx, [token for token in tokens if token not in some])

    def holders(self, tx: ReadTransaction, groups: Groups, without: Sequence[str] = ()) -> list[int]:
        return _numbers(tx, seen(tx, self._HOLDERS, SEEN, "rowid"), _fts5_expression(groups, without))

    def newest_holders(self, tx: ReadTransaction, groups: Groups, without: Sequence[str], limit: int) -> list[int]:
        return _numbers(tx, seen(tx, self._NEWEST, SEEN, "rowid"), _fts5_expression(groups, without), limit)

    def holders_of_each(
        self, tx: ReadTransaction, tokens: Sequence[str], groups: Groups, without: Sequence[str]
    ) -> dict[str, list[int]]:
        statement = seen(tx, self._HOLDERS_OF_EACH, SEEN, "rowid")
        return _numbers_of_each(tx, statement, {token: ([*groups, [token]], without) for token in tokens})

    def titles_holding(self, tx: ReadTransaction, tokens: Sequence[str]) -> dict[str, list[int]]:
        statement = seen(tx, self._TITLES, SEEN_TITLE, "rowid")
        return _numbers_of_each(tx, statement, {token: ([[TITLE], [token]], ()) for token in tokens})


LAST = "\U0010ffff"
"""Behind every letter."""


def _rows(entries: Sequence[Entry]) -> list[tuple[object, ...]]:
    """By number: at each that is smaller than the one before, FTS5 writes out all that it has gathered."""
    return [(entry.number, " ".join(entry.tokens)) for entry in sorted(entries, key=lambda entry: entry.number)]


def _numbers(tx: ReadTransaction, statement: str, *given: str | int) -> list[int]:
    numbers: list[int] = json.loads(tx.exec_driver_sql(statement, given).scalar_one())
    return numbers


def _numbers_of_each(
    tx: ReadTransaction, statement: str, asked: Mapping[str, tuple[Groups, Sequence[str]]]
) -> dict[str, list[int]]:
    """In one go: what comes around a statement takes longer than most tokens."""
    expressions = [_fts5_expression(*each) for each in asked.values()]
    found = tx.exec_driver_sql(statement, (json.dumps(expressions, ensure_ascii=False),)).all() if asked else ()
    return {token: json.loads(numbers) for token, (numbers,) in zip(asked, found, strict=True)}


def _fts5_expression(groups: Groups, without: Sequence[str]) -> str:
    wanted = " AND ".join("(" + " OR ".join(map(_fts5_token, group)) + ")" for group in groups)
    return wanted if not without else f"({wanted})" + "".join(f" NOT {_fts5_token(token)}" for token in without)


def _fts5_token(token: str) -> str:
    return f'"{token[:-1]}"*' if token.endswith("*") else f'"{token}"'


ENGINES: dict[str, MessageIndex] = {"sqlite": SqliteIndex(), "postgresql": PostgresIndex()}


def index_of(tx: ReadTransaction) -> MessageIndex:
    """The index of the database this transaction is open on."""
    return ENGINES[tx.dialect.name]
