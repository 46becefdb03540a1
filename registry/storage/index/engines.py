"""The message index's two engines, and which of them serves which database.

Neither lets the database analyse a text: both store the tokens of our own analyzer
(docs/decisions/0005-search-in-the-database.md).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

from registry.storage.database import ReadTransaction, WriteTransaction, insert_records
from registry.storage.index import message_index
from registry.storage.index.index_entries import Entry
from registry.storage.index.message_index import TABLE, TITLE, Groups, MessageIndex
from registry.storage.index.packed_lists import PackedIndex
from registry.storage.safety.visibility import access_of

_SEEN = " AND EXISTS (SELECT 1 FROM conversation AS seen WHERE seen.number = message_index.{0})"
_SEEN_TITLE = " AND EXISTS (SELECT 1 FROM channel AS seen WHERE seen.number = -message_index.{0})"
_SEEN_ENTRY = """ AND (message_index.{0} = 0
    OR EXISTS (SELECT 1 FROM conversation AS seen WHERE seen.number = message_index.{0})
    OR EXISTS (SELECT 1 FROM channel AS seen WHERE seen.number = -message_index.{0}))"""
"""What a restricted transaction asks of a posting; the tables are those it sees (`storage.safety.visibility`)."""


class SqliteIndex(MessageIndex):
    """A contentless FTS5 table that keeps nothing but the postings: a third of the text's size."""

    name = "fts5"

    _ADD = "INSERT INTO {0} (rowid, t) VALUES (?, ?)"
    _REMOVE = "INSERT INTO {0} ({0}, rowid, t) VALUES ('delete', ?, ?)"
    _COUNT = "SELECT term, doc FROM message_term WHERE term IN (SELECT value FROM json_each(?))"
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
            statement = _seen(tx, self._COUNT_SEEN, _SEEN_ENTRY, "rowid")
            found = ((token, tx.exec_driver_sql(statement, (_fts5_token(token),)).scalar_one()) for token in tokens)
            return {token: count for token, count in found if count}
        return {row[0]: row[1] for row in tx.exec_driver_sql(self._COUNT, (json.dumps(list(tokens)),))}

    def holders(self, tx: ReadTransaction, groups: Groups, without: Sequence[str] = ()) -> list[int]:
        return _numbers(tx, _seen(tx, self._HOLDERS, _SEEN, "rowid"), _fts5_expression(groups, without))

    def newest_holders(self, tx: ReadTransaction, groups: Groups, without: Sequence[str], limit: int) -> list[int]:
        return _numbers(tx, _seen(tx, self._NEWEST, _SEEN, "rowid"), _fts5_expression(groups, without), limit)

    def holders_of_each(
        self, tx: ReadTransaction, tokens: Sequence[str], groups: Groups, without: Sequence[str]
    ) -> dict[str, list[int]]:
        statement = _seen(tx, self._HOLDERS_OF_EACH, _SEEN, "rowid")
        return _numbers_of_each(tx, statement, {token: ([*groups, [token]], without) for token in tokens})

    def titles_holding(self, tx: ReadTransaction, tokens: Sequence[str]) -> dict[str, list[int]]:
        statement = _seen(tx, self._TITLES, _SEEN_TITLE, "rowid")
        return _numbers_of_each(tx, statement, {token: ([[TITLE], [token]], ()) for token in tokens})


def _seen(tx: ReadTransaction, statement: str, condition: str, number: str, side: str = "") -> str:
    return statement.format(seen=condition.format(number) if access_of(tx) else "", side=side)


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
    return wanted if not without else f"({wanted})" + "".join(f' NOT "{token}"' for token in without)


def _fts5_token(token: str) -> str:
    return f'"{token[:-1]}"*' if token.endswith("*") else f'"{token}"'


class PostgresIndex(MessageIndex):
    """One narrow table of position-less tsvectors under a GIN index."""

    name = "gin"

    _REMOVE = "DELETE FROM {0} WHERE number = ANY(%s)"
    _COUNT = """
    SELECT token, (SELECT count(*) FROM message_index WHERE tokens @@ CAST(quote_literal(token) AS tsquery){seen})
    FROM unnest(CAST(%s AS text[])) AS token
    """
    _SAMPLE = """
    SELECT token, CAST(share * reltuples AS bigint) FROM pg_class
    JOIN pg_namespace ON pg_namespace.oid = relnamespace
    JOIN pg_stats ON schemaname = nspname AND tablename = relname AND attname = 'tokens',
    unnest(CAST(CAST(most_common_elems AS text) AS text[]), most_common_elem_freqs) AS common (token, share)
    WHERE pg_class.oid = to_regclass('message_index') AND share * reltuples >= %s AND token IS NOT NULL
    """
    _HOLDERS = "SELECT array_agg(number) FROM message_index WHERE tokens @@ CAST(%s AS tsquery) AND number > 0{seen}"
    _NEWEST = """
    SELECT array_agg(number) FROM (
        SELECT number FROM message_index WHERE tokens @@ CAST(%s AS tsquery) AND number > 0{seen}
        ORDER BY number DESC LIMIT %s) AS newest
    """
    _EACH = """
    SELECT token, (SELECT array_agg(number) FROM message_index WHERE tokens @@ query AND number {side} 0{seen})
    FROM unnest(CAST(%s AS text[]), CAST(%s AS tsquery[])) AS asked (token, query)
    """
    _ENTRIES = _EACH.replace(" AND number {side} 0{seen}", "")
    _AMONG = """
    SELECT token, array_agg(number)
    FROM message_index, unnest(CAST(%s AS text[]), CAST(%s AS tsquery[])) AS asked (token, query)
    WHERE number = ANY(CAST(%s AS bigint[])) AND tokens @@ query{seen} GROUP BY token
    """

    def for_search(self, tx: ReadTransaction, total: int) -> MessageIndex:
        """A restricted transaction reads no lists: they cannot say which of their numbers it may see."""
        return self if total < message_index.LARGE or access_of(tx) else PackedIndex(self)

    def add(self, tx: WriteTransaction, entries: Sequence[Entry], into: str = TABLE) -> None:
        if entries:
            insert_records(tx, into, [{"number": one.number, "tokens": _tsvector(one.tokens)} for one in entries])

    def remove(self, tx: WriteTransaction, entries: Sequence[Entry], into: str = TABLE) -> None:
        tx.exec_driver_sql(self._REMOVE.format(into), ([entry.number for entry in entries],))

    def count(self, tx: ReadTransaction, tokens: Collection[str]) -> dict[str, int]:
        statement = _seen(tx, self._COUNT, _SEEN_ENTRY, "number")
        return {row[0]: row[1] for row in tx.exec_driver_sql(statement, (list(tokens),)) if row[1]}

    def sample(self, tx: ReadTransaction, least: int) -> dict[str, int]:
        if access_of(tx):  # which counts what it sees, and nothing else
            return {}
        return {token: count for token, count in tx.exec_driver_sql(self._SAMPLE, (least,))}

    def holders(self, tx: ReadTransaction, groups: Groups, without: Sequence[str] = ()) -> list[int]:
        statement = _seen(tx, self._HOLDERS, _SEEN, "number")
        return tx.exec_driver_sql(statement, (_tsquery(groups, without),)).scalar() or []

    def holders_of_each(
        self, tx: ReadTransaction, tokens: Sequence[str], groups: Groups, without: Sequence[str]
    ) -> dict[str, list[int]]:
        queries = [_tsquery([*groups, [token]], without) for token in tokens]
        return self._each(tx, tokens, queries, _seen(tx, self._EACH, _SEEN, "number", ">"))

    def titles_holding(self, tx: ReadTransaction, tokens: Sequence[str]) -> dict[str, list[int]]:
        queries = [_tsquery([[TITLE], [token]], ()) for token in tokens]
        return self._each(tx, tokens, queries, _seen(tx, self._EACH, _SEEN_TITLE, "number", "<"))

    def entries_of_each(self, tx: ReadTransaction, tokens: Sequence[str]) -> dict[str, list[int]]:
        return self._each(tx, tokens, [_tsquery([[token]], ()) for token in tokens], self._ENTRIES)

    def _each(
        self, tx: ReadTransaction, tokens: Sequence[str], queries: Sequence[str], statement: str
    ) -> dict[str, list[int]]:
        return {row[0]: row[1] or [] for row in tx.exec_driver_sql(statement, (list(tokens), queries))}

    def held_among(
        self,
        tx: ReadTransaction,
        numbers: Collection[int],
        tokens: Sequence[str],
        groups: Groups,
        without: Sequence[str],
    ) -> dict[str, list[int]]:
        queries = [_tsquery([*groups, [token]], without) for token in tokens]
        given = (list(tokens), queries, "{" + ",".join(map(str, numbers)) + "}")
        rows = tx.exec_driver_sql(_seen(tx, self._AMONG, _SEEN, "number"), given)
        found: dict[str, list[int]] = {row[0]: row[1] for row in rows}
        return {token: found.get(token, []) for token in tokens}

    def newest_holders(self, tx: ReadTransaction, groups: Groups, without: Sequence[str], limit: int) -> list[int]:
        statement = _seen(tx, self._NEWEST, _SEEN, "number")
        return tx.exec_driver_sql(statement, (_tsquery(groups, without), limit)).scalar() or []


def _tsvector(tokens: Sequence[str]) -> str:
    return "'" + " ".join(tokens).replace(" ", "' '") + "'" if tokens else ""


def _tsquery(groups: Groups, without: Sequence[str]) -> str:
    wanted = ["(" + " | ".join(map(_tsquery_token, group)) + ")" for group in groups]
    return " & ".join([*wanted, *(f"!'{token}'" for token in without)])


def _tsquery_token(token: str) -> str:
    return f"'{token[:-1]}':*" if token.endswith("*") else f"'{token}'"


ENGINES: dict[str, MessageIndex] = {"sqlite": SqliteIndex(), "postgresql": PostgresIndex()}


def index_of(tx: ReadTransaction) -> MessageIndex:
    """The index of the database this transaction is open on."""
    return ENGINES[tx.dialect.name]
