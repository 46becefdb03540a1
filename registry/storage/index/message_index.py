"""The inverted index of messages by token, on both databases.

It is a table that changes in the same transaction as the messages: acknowledged messages can be found, deleted ones
cannot. It stores the tokens of our analyzer without positions or frequencies
(docs/decisions/0005-search-in-the-database.md); `registry.search` ranks.

A restricted transaction reads the whole index and drops the entries that it may not see (`drop_hidden`).
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from sqlalchemy import ColumnElement, func, select, text

from registry.storage.conditions import is_one_of
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.safety.visibility import access_of, ask_all
from registry.storage.tables import channel, conversation
from registry.text.analysis.analyzer import analyze

TABLE = "message_index"

TITLE = "zztitle"  # token of every title; a title's entry has its channel's number, negated

Groups = Sequence[Sequence[str]]  # a condition on tokens: an entry has at least one token of each group

COLUMNS = conversation.c["number", "channel_number", "seq", "role", "length", "turn"]
"""The columns of a message that a search reads before ranking."""

MIN_FULL_READ = 500  # entries to check; above, reading all visible entries may be faster than a lookup of each

_visible_entries: WeakKeyDictionary[ReadTransaction, frozenset[int]] = WeakKeyDictionary()
"""All visible entries by transaction, if they were read at once."""


class Entry(NamedTuple):
    """A message, or a channel's title (with a negative number). An item of `tokens` may be several, separated by
    spaces."""

    number: int
    tokens: Sequence[str]


class MessageIndex(ABC):
    """The interface of a database's message index."""

    name: str  # shown in execution records as the origin of the candidates

    @abstractmethod
    def _add(self, tx: WriteTransaction, entries: Sequence[Entry], into: str) -> None: ...

    @abstractmethod
    def _remove(self, tx: WriteTransaction, entries: Sequence[Entry], into: str) -> None: ...

    @abstractmethod
    def _count(self, tx: ReadTransaction, tokens: Collection[str]) -> dict[str, int]:
        """Return the document frequency of each token, including hidden entries."""

    @abstractmethod
    def _match(self, tx: ReadTransaction, queries: Mapping[str, tuple[Groups, Sequence[str]]]) -> dict[str, list[int]]:
        """Return the entries that match each query (groups, excluded tokens), including hidden entries."""

    def add(self, tx: WriteTransaction, entries: Sequence[Entry], into: str = TABLE) -> None:
        """Add entries; `into` is another table while the index is rebuilt."""
        if entries:
            self._add(tx, entries, into)

    def remove(self, tx: WriteTransaction, entries: Sequence[Entry], into: str = TABLE) -> None:
        """Remove entries; the tokens must be those they were added with."""
        if entries:
            self._remove(tx, entries, into)

    def count(self, tx: ReadTransaction, tokens: Collection[str]) -> dict[str, int]:
        """Return the document frequency of each token, without tokens that do not occur."""
        if access_of(tx) is None:
            return self._count(tx, tokens)
        found = self._match(tx, {token: ([[token]], ()) for token in tokens})
        return {token: count for token, numbers in found.items() if (count := len(drop_hidden(tx, numbers)))}

    def holders(self, tx: ReadTransaction, groups: Groups, without: Sequence[str] = ()) -> list[int]:
        """Return the numbers of the messages with a token of each group and none of `without`."""
        return drop_hidden(tx, [one for one in self._match(tx, {"": (groups, without)})[""] if one > 0])

    def match_each(
        self, tx: ReadTransaction, tokens: Sequence[str], groups: Groups, without: Sequence[str]
    ) -> dict[str, list[int]]:
        """Return by token the messages that `holders` returns with the token as an additional group."""
        found = self._match(tx, {token: ([*groups, [token]], without) for token in tokens})
        return {token: drop_hidden(tx, [one for one in numbers if one > 0]) for token, numbers in found.items()}

    def match_titles(self, tx: ReadTransaction, tokens: Sequence[str]) -> dict[str, list[int]]:
        """Return by token the negated numbers of the channels with the token in their title."""
        found = self._match(tx, {token: ([[TITLE], [token]], ()) for token in tokens})
        return {token: drop_hidden(tx, numbers) for token, numbers in found.items()}

    def messages(
        self, tx: ReadTransaction, numbers: Sequence[int], conditions: Sequence[ColumnElement[bool]]
    ) -> list[Sequence[Any]]:
        """Return the `COLUMNS` of those messages that are not deleted and meet the conditions, in any order."""
        # sorting saves SQLite a fifth of the time
        wanted = is_one_of(conversation.c.number, sorted(numbers)), conversation.c.deleted.is_(False)
        return list(tx.execute(select(*COLUMNS).where(*wanted, *conditions)).all())


def drop_hidden(tx: ReadTransaction, numbers: list[int]) -> list[int]:
    """Drop the entries (messages, or titles under a negative number) that a restricted transaction may not see."""
    access = access_of(tx)
    if access is None or not numbers:
        return numbers
    if len(numbers) > MIN_FULL_READ and not access.is_writing and tx not in _visible_entries:
        total = tx.execute(select(func.sum(channel.c.seq_count))).scalar() or 0
        if total < 4 * len(numbers):  # one full read is faster than this many lookups for each token
            queries = select(conversation.c.number), select(-channel.c.number)
            _visible_entries[tx] = frozenset(number for query in queries for number in tx.execute(query).scalars())
    if tx in _visible_entries:
        return [one for one in numbers if one in _visible_entries[tx]]
    visible = set[int]()
    for column, sign in ((conversation.c.number, 1), (channel.c.number, -1)):
        query = select(column).where(is_one_of(column, [sign * one for one in numbers]))
        visible.update(sign * one for one in tx.execute(query).scalars())
    return [one for one in numbers if one in visible]


class PostgresIndex(MessageIndex):
    """A narrow table of position-less tsvectors under a GIN index."""

    name = "gin"

    def _add(self, tx: WriteTransaction, entries: Sequence[Entry], into: str) -> None:
        rows = [{"number": one.number, "tokens": _tsvector(one.tokens)} for one in entries]
        statement = f"INSERT INTO {into} SELECT * FROM json_populate_recordset(CAST(NULL AS {into}), CAST(%s AS json))"  # noqa: S608, names of ours
        tx.exec_driver_sql(statement, (json.dumps(rows, ensure_ascii=False),))

    def _remove(self, tx: WriteTransaction, entries: Sequence[Entry], into: str) -> None:
        statement = f"DELETE FROM {into} WHERE number = ANY(%s)"  # noqa: S608, names of ours
        tx.exec_driver_sql(statement, ([entry.number for entry in entries],))

    def _count(self, tx: ReadTransaction, tokens: Collection[str]) -> dict[str, int]:
        query = text("""
            SELECT token, (SELECT count(*) FROM message_index WHERE tokens @@ CAST(quote_literal(token) AS tsquery))
            FROM unnest(CAST(:tokens AS text[])) AS token""")
        return {row[0]: row[1] for row in ask_all(tx, query, {"tokens": list(tokens)}) if row[1]}

    def _match(self, tx: ReadTransaction, queries: Mapping[str, tuple[Groups, Sequence[str]]]) -> dict[str, list[int]]:
        query = text("""
            SELECT name, (SELECT array_agg(number) FROM message_index WHERE tokens @@ query)
            FROM unnest(CAST(:names AS text[]), CAST(:queries AS tsquery[])) AS asked (name, query)""")
        values = {"names": list(queries), "queries": [_tsquery(*each) for each in queries.values()]}
        return {row[0]: row[1] or [] for row in ask_all(tx, query, values)} if queries else {}


def _tsvector(tokens: Sequence[str]) -> str:
    return "'" + " ".join(tokens).replace(" ", "' '") + "'" if tokens else ""


def _tsquery(groups: Groups, without: Sequence[str]) -> str:
    wanted = ["(" + " | ".join(map(_lexeme, group)) + ")" for group in groups]
    return " & ".join([*wanted, *(f"!{_lexeme(token)}" for token in without)])


def _lexeme(token: str) -> str:
    return f"'{token[:-1]}':*" if token.endswith("*") else f"'{token}'"


class SqliteIndex(MessageIndex):
    """A contentless FTS5 table that holds only the postings: a third of the text's size."""

    name = "fts5"

    def _add(self, tx: WriteTransaction, entries: Sequence[Entry], into: str) -> None:
        tx.exec_driver_sql(f"INSERT INTO {into} (rowid, t) VALUES (?, ?)", _rows(entries))  # noqa: S608, names of ours

    def _remove(self, tx: WriteTransaction, entries: Sequence[Entry], into: str) -> None:
        statement = f"INSERT INTO {into} ({into}, rowid, t) VALUES ('delete', ?, ?)"  # noqa: S608, names of ours
        tx.exec_driver_sql(statement, _rows(entries))

    def _count(self, tx: ReadTransaction, tokens: Collection[str]) -> dict[str, int]:
        query = text("SELECT term, doc FROM message_term WHERE term IN (SELECT value FROM json_each(:tokens))")
        return {row[0]: row[1] for row in ask_all(tx, query, {"tokens": json.dumps(list(tokens))})}

    def _match(self, tx: ReadTransaction, queries: Mapping[str, tuple[Groups, Sequence[str]]]) -> dict[str, list[int]]:
        # one JSON array: a row for each posting would take several times as long
        query = text("""
            SELECT (SELECT json_group_array(rowid) FROM message_index WHERE message_index MATCH asked.value)
            FROM json_each(:queries) AS asked ORDER BY asked.key""")
        expressions = [_expression(groups, without) for groups, without in queries.values()]
        found = ask_all(tx, query, {"queries": json.dumps(expressions, ensure_ascii=False)}) if queries else ()
        return {name: json.loads(numbers) for name, (numbers,) in zip(queries, found, strict=True)}


def _rows(entries: Sequence[Entry]) -> list[tuple[object, ...]]:
    """Return the rows by number: FTS5 flushes its buffer at each number smaller than the one before."""
    return [(entry.number, " ".join(entry.tokens)) for entry in sorted(entries, key=lambda entry: entry.number)]


def _expression(groups: Groups, without: Sequence[str]) -> str:
    wanted = " AND ".join("(" + " OR ".join(map(_fts5_token, group)) + ")" for group in groups)
    return wanted if not without else f"({wanted})" + "".join(f" NOT {_fts5_token(token)}" for token in without)


def _fts5_token(token: str) -> str:
    return f'"{token[:-1]}"*' if token.endswith("*") else f'"{token}"'


ENGINES: dict[str, MessageIndex] = {"sqlite": SqliteIndex(), "postgresql": PostgresIndex()}


def index_of(tx: ReadTransaction) -> MessageIndex:
    return ENGINES[tx.dialect.name]


UNINDEXED, RECALL = "unindexed", "a recall"
"""Key of a message's payload: the reason why the message is stored and shown but not indexed."""


def message_entry(row: Mapping[str, Any], tokens: Sequence[str]) -> Entry:
    """Return the entry of a row of `conversation` with its `searched_tokens`."""
    if UNINDEXED in row["payload"]:
        return Entry(row["number"], [])
    return Entry(row["number"], [channel_token(row["channel_number"]), source_token(row["source"]), *tokens])


def searched_tokens(row: Mapping[str, Any]) -> list[str]:
    """Return the tokens of a row's text; none if it is not indexed."""
    return [] if UNINDEXED in row["payload"] else analyze(row["text"])


def channel_token(number: int) -> str:
    """Return the token of all messages of a channel, so that a search inside it reads only their postings."""
    return f"zzc{number}"


def source_token(source: str) -> str:
    """Return the token of all messages of a source; sources with the same letters share it."""
    return "zzs" + "".join(filter(str.isalnum, source.lower()))
