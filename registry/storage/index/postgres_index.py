"""The message index on PostgreSQL: asked by GIN; in a large registry a search reads its common words by packed lists.

To tell which message a posting is, PostgreSQL goes to its page; a packed list (`packing`) is all the numbers that hold
a word, in a few rows. What was changed since it was made is noted, and asked of the index itself.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from itertools import chain
from operator import and_, or_
from weakref import WeakKeyDictionary

from sqlalchemy import Engine

from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.index import message_index
from registry.storage.index.index_entries import COMPLETE, Entry
from registry.storage.index.kept_lists import KeptLists
from registry.storage.index.message_index import SEEN, SEEN_ENTRY, SEEN_TITLE, TABLE, TITLE, Groups, MessageIndex, seen
from registry.storage.index.posting_blocks import Noted, PackedList, Probe, newest_of, read_list
from registry.storage.safety.visibility import access_of


class PostgresIndex(MessageIndex):
    """A narrow table of position-less tsvectors under a GIN index."""

    name = "gin"

    _ADD = "INSERT INTO {0} SELECT * FROM json_populate_recordset(CAST(NULL AS {0}), CAST(%s AS json))"
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
    _AMONG = """
    SELECT token, array_agg(number)
    FROM message_index, unnest(CAST(%s AS text[]), CAST(%s AS tsquery[])) AS asked (token, query)
    WHERE number = ANY(CAST(%s AS bigint[])) AND tokens @@ query{seen} GROUP BY token
    """

    def for_search(self, tx: ReadTransaction, total: int) -> MessageIndex:
        """A restricted transaction reads no lists: they cannot say which of their numbers it may see."""
        return self if total < message_index.LARGE or access_of(tx) else PackedIndex()

    def add(self, tx: WriteTransaction, entries: Sequence[Entry], into: str = TABLE) -> None:
        rows = [{**one._asdict(), "tokens": _tsvector(one.tokens)} for one in entries]
        if rows:
            tx.exec_driver_sql(self._ADD.format(into), (json.dumps(rows, ensure_ascii=False),))

    def remove(self, tx: WriteTransaction, entries: Sequence[Entry], into: str = TABLE) -> None:
        tx.exec_driver_sql(self._REMOVE.format(into), ([entry.number for entry in entries],))

    def count(self, tx: ReadTransaction, tokens: Collection[str]) -> dict[str, int]:
        statement = seen(tx, self._COUNT, SEEN_ENTRY, "number")
        return {row[0]: row[1] for row in tx.exec_driver_sql(statement, (list(tokens),)) if row[1]}

    def sample(self, tx: ReadTransaction, least: int) -> dict[str, int]:
        if access_of(tx):  # which counts what it sees, and nothing else
            return {}
        return {token: count for token, count in tx.exec_driver_sql(self._SAMPLE, (least,))}

    def holders(self, tx: ReadTransaction, groups: Groups, without: Sequence[str] = ()) -> list[int]:
        statement = seen(tx, self._HOLDERS, SEEN, "number")
        return tx.exec_driver_sql(statement, (_tsquery(groups, without),)).scalar() or []

    def holders_of_each(
        self, tx: ReadTransaction, tokens: Sequence[str], groups: Groups, without: Sequence[str]
    ) -> dict[str, list[int]]:
        queries = [_tsquery([*groups, [token]], without) for token in tokens]
        return self._each(tx, tokens, queries, seen(tx, self._EACH, SEEN, "number", ">"))

    def titles_holding(self, tx: ReadTransaction, tokens: Sequence[str]) -> dict[str, list[int]]:
        queries = [_tsquery([[TITLE], [token]], ()) for token in tokens]
        return self._each(tx, tokens, queries, seen(tx, self._EACH, SEEN_TITLE, "number", "<"))

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
        rows = tx.exec_driver_sql(seen(tx, self._AMONG, SEEN, "number"), given)
        found: dict[str, list[int]] = {row[0]: row[1] for row in rows}
        return {token: found.get(token, []) for token in tokens}

    def newest_holders(self, tx: ReadTransaction, groups: Groups, without: Sequence[str], limit: int) -> list[int]:
        statement = seen(tx, self._NEWEST, SEEN, "number")
        return tx.exec_driver_sql(statement, (_tsquery(groups, without), limit)).scalar() or []


def _tsvector(tokens: Sequence[str]) -> str:
    return "'" + " ".join(tokens).replace(" ", "' '") + "'" if tokens else ""


def _tsquery(groups: Groups, without: Sequence[str]) -> str:
    wanted = ["(" + " | ".join(map(_tsquery_token, group)) + ")" for group in groups]
    return " & ".join([*wanted, *(f"!{_tsquery_token(token)}" for token in without)])


def _tsquery_token(token: str) -> str:
    return f"'{token[:-1]}':*" if token.endswith("*") else f"'{token}'"


MOST_NOTED = 5_000
"""With more notes than these the lists are not used: somebody is reading histories in, say."""

# Of a list that the asker has in this version nothing is read.
_LISTS = """
SELECT token, version, CASE WHEN version = %(version)s AND token = ANY(%(known)s) THEN NULL ELSE (
    SELECT coalesce(string_agg(int4send(block) || int4send(length(numbers)) || numbers, ''), '')
    FROM message_index_block AS held WHERE held.token = asked.token) END AS numbers
FROM message_index_token AS asked, message_index_state
WHERE token = ANY(%(tokens)s) AND usable AND index_oid = to_regclass('message_index')
"""
_NOTED_AND_LISTS = f"""
WITH noted AS MATERIALIZED (SELECT number FROM message_index_noted LIMIT {MOST_NOTED})
SELECT '' AS token, NULL AS version, string_agg(int8send(number), '') AS numbers FROM noted
UNION ALL {_LISTS} AND (SELECT count(*) FROM noted) < {MOST_NOTED}
"""  # noqa: S608, all ours

_kept: WeakKeyDictionary[Engine, KeptLists] = WeakKeyDictionary()


class PackedIndex(PostgresIndex):
    """The index for one search of a large registry: common terms are read from packed lists."""

    _ENTRIES = PostgresIndex._EACH.replace(" AND number {side} 0{seen}", "")

    def __init__(self) -> None:
        self._lists: dict[str, PackedList | None] = {}
        self._titles: dict[str, list[int]] = {}
        self._noted: Noted | None = None
        self._are_too_many = False
        self._probes: dict[tuple[str, ...], Probe] = {}

    def count(self, tx: ReadTransaction, tokens: Collection[str]) -> dict[str, int]:
        packed = self._packed(tx, tokens)
        self._read_entries(tx, [token for token in tokens if token not in packed])
        titles = self.titles_holding(tx, list(tokens))
        return {token: count for token in tokens if (count := len(self._list(token)) + len(titles[token]))}

    def _is_marked_complete(self, tx: ReadTransaction) -> bool:
        return bool(super().count(tx, [COMPLETE]))  # by an entry that is no message's: no list has it

    def titles_holding(self, tx: ReadTransaction, tokens: Sequence[str]) -> dict[str, list[int]]:
        if missing := [token for token in tokens if token not in self._titles]:
            self._titles |= super().titles_holding(tx, missing)
        return {token: self._titles[token] for token in tokens}

    def _read_entries(self, tx: ReadTransaction, tokens: Sequence[str]) -> None:
        queries = [_tsquery([[token]], ()) for token in tokens]
        found = self._each(tx, tokens, queries, self._ENTRIES) if tokens else {}
        for token, numbers in found.items():
            self._lists[token] = PackedList([number for number in numbers if number > 0])
            self._titles[token] = [number for number in numbers if number < 0]

    def prepare(self, tx: ReadTransaction, tokens: Sequence[str]) -> None:
        self._packed(tx, tokens)

    def holders(self, tx: ReadTransaction, groups: Groups, without: Sequence[str] = ()) -> list[int]:
        return self._found(tx, groups, without) if self._reads(tx, groups) else super().holders(tx, groups, without)

    def newest_holders(self, tx: ReadTransaction, groups: Groups, without: Sequence[str], limit: int) -> list[int]:
        if self._reads(tx, groups):
            return self._found(tx, groups, without, limit)
        return super().newest_holders(tx, groups, without, limit)

    def holders_of_each(
        self, tx: ReadTransaction, tokens: Sequence[str], groups: Groups, without: Sequence[str]
    ) -> dict[str, list[int]]:
        packed = self._packed(tx, tokens) if self._reads(tx, [*groups, tokens]) else {}
        found = {token: self._found(tx, [*groups, [token]], without) for token in packed}
        others = [token for token in tokens if token not in packed]
        if others:
            read = super().holders_of_each(tx, others, groups, without)
            if not groups and not without:
                self._lists |= {token: PackedList(numbers) for token, numbers in read.items()}
            found |= read
        return found

    def _packed(self, tx: ReadTransaction, tokens: Iterable[str]) -> dict[str, PackedList]:
        """The lists of those that have one."""
        if missing := [token for token in tokens if token not in self._lists]:
            self._read(tx, missing)
        return {token: held for token in tokens if (held := self._lists.get(token)) is not None}

    def _read(self, tx: ReadTransaction, tokens: Sequence[str]) -> None:
        self._lists |= dict.fromkeys(tokens)
        if self._are_too_many:
            return
        kept = _kept.setdefault(tx.engine, KeptLists())
        version, known = kept.known(tokens)
        given = {"tokens": list(tokens), "version": version, "known": list(known)}
        if self._noted is None:
            (_, _, noted), *rows = tx.exec_driver_sql(_NOTED_AND_LISTS, given).all()
            self._noted, self._are_too_many = Noted(noted or b""), len(noted or b"") >= 8 * MOST_NOTED
        else:
            rows = list(tx.exec_driver_sql(_LISTS, given).all())
        if rows:
            lists = {token: known[token] if packed is None else read_list(packed) for token, _, packed in rows}
            kept.keep(rows[0][1], lists)
            self._lists |= self._changed(tx, lists, self._noted)

    def _changed(self, tx: ReadTransaction, lists: Mapping[str, PackedList], noted: Noted) -> dict[str, PackedList]:
        current = self.held_among(tx, noted.numbers, list(lists), (), ()) if noted.numbers else {}
        return {token: held.changed(noted, current.get(token, ())) for token, held in lists.items()}

    def _reads(self, tx: ReadTransaction, groups: Groups) -> bool:
        """Return whether to read lists is less than to ask for all at once: no group is of rare words alone."""
        if any(token.endswith("*") for group in groups for token in group):
            return False
        self._packed(tx, list(dict.fromkeys(chain.from_iterable(groups))))
        return bool(groups) and all(any(self._lists[token] is not None for token in group) for group in groups)

    def _found(
        self, tx: ReadTransaction, groups: Groups, without: Sequence[str], limit: int | None = None
    ) -> list[int]:
        """The numbers that hold a word of each group and none of the others; of these so many of the newest."""
        self._have(tx, [*chain.from_iterable(groups), *without])
        first, *others = sorted(groups, key=lambda group: sum(len(self._list(token)) for token in group))
        unwanted = self._bits([token for token in without if self._list(token).is_dense])
        gone = [held.members for token in without if not (held := self._list(token)).is_dense]
        if self._is_dense(first):
            bits = reduce(and_, map(self._bits, others), self._bits(first))
            return newest_of(bits ^ bits & unwanted, limit, gone)
        probe = self._probe(first)
        for group in others:
            probe = Probe(list(self._within(probe, group)))
        gone += [frozenset(probe.within(unwanted))] if unwanted else []
        numbers = set(probe.numbers).difference(*gone) if gone else probe.numbers
        return list(numbers) if limit is None else sorted(numbers, reverse=True)[:limit]

    def _within(self, probe: Probe, group: Sequence[str]) -> Collection[int]:
        if self._is_dense(group):
            return probe.within(self._bits(group))
        return self._members(group).intersection(probe.numbers)

    def _have(self, tx: ReadTransaction, tokens: Sequence[str]) -> None:
        self._packed(tx, tokens)
        if rare := [token for token in dict.fromkeys(tokens) if self._lists[token] is None]:
            read = super().holders_of_each(tx, rare, (), ())
            self._lists |= {token: PackedList(numbers) for token, numbers in read.items()}

    def _list(self, token: str) -> PackedList:
        return self._lists[token] or _NOTHING

    def _bits(self, group: Sequence[str]) -> int:
        return reduce(or_, (self._list(token).bits for token in group), 0)

    def _is_dense(self, group: Sequence[str]) -> bool:
        return any(self._list(token).is_dense for token in group)

    def _members(self, group: Sequence[str]) -> frozenset[int]:
        lists = [self._list(token) for token in group]
        return lists[0].members if len(lists) == 1 else frozenset(chain.from_iterable(held.numbers for held in lists))

    def _probe(self, group: Sequence[str]) -> Probe:
        """Made once: the words before are looked for in the list of each that follows."""
        key = tuple(group)
        if key not in self._probes:
            numbers = self._list(group[0]).numbers if len(group) == 1 else list(self._members(group))
            self._probes[key] = Probe(numbers)
        return self._probes[key]


_NOTHING = PackedList([])
