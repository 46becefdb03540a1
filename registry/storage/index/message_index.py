"""The message index: which messages contain a token. Each database fills in a few statements.

It lives in the database and changes in the same transaction as the messages, so what is acknowledged can be found and
what is deleted cannot. It holds the tokens of our own analyzer, without positions or frequencies, and only stores and
looks up; ranking is done in `registry.search`.

A restricted transaction reads the whole index and drops the entries that it may not see (`seen`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import ColumnElement, Engine, func, select

from registry.storage.conditions import is_one_of
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.index.index_entries import Entry
from registry.storage.safety.visibility import access_of
from registry.storage.tables import channel, conversation

TABLE = "message_index"

TITLE = "zztitle"  # token of every title; a title is the entry with its channel's number, negated

Groups = Sequence[Sequence[str]]  # a condition on tokens: an entry carries at least one of each group

COLUMNS = (
    conversation.c.number,
    conversation.c.channel_number,
    conversation.c.seq,
    conversation.c.role,
    conversation.c.length,
    conversation.c.turn,
)
"""The columns of a message that a search reads before ranking."""

_counted: WeakKeyDictionary[Engine, dict[str, tuple[int, int]]] = WeakKeyDictionary()
"""Counts of frequent tokens by registry: each count, and the size of the index when it was counted."""


MANY = 500  # entries to be checked from which it may be quicker to read what is visible than to look each up

_all_seen: WeakKeyDictionary[ReadTransaction, frozenset[int]] = WeakKeyDictionary()
"""All entries that are visible, by transaction, where they were read at once."""


class MessageIndex(ABC):
    """The interface of a database's message index."""

    name: str  # shown in execution records as the origin of the candidates

    @abstractmethod
    def add(self, tx: WriteTransaction, entries: Sequence[Entry], into: str = TABLE) -> None:
        """Add entries; `into` is another table while the index is rebuilt."""

    @abstractmethod
    def remove(self, tx: WriteTransaction, entries: Sequence[Entry], into: str = TABLE) -> None:
        """Remove entries; the tokens must be those they were added with."""

    @abstractmethod
    def _count(self, tx: ReadTransaction, tokens: Collection[str]) -> dict[str, int]:
        """Return the number of entries of each token, visible or not."""

    @abstractmethod
    def _holders(
        self, tx: ReadTransaction, queries: Mapping[str, tuple[Groups, Sequence[str]]]
    ) -> dict[str, list[int]]:
        """Return the numbers of the entries that match each query (groups, excluded tokens), visible or not."""

    def count(self, tx: ReadTransaction, tokens: Collection[str]) -> dict[str, int]:
        """Return the number of entries that hold each token, without tokens that occur nowhere."""
        if access_of(tx) is None:
            return self._count(tx, tokens)
        found = self._holders(tx, {token: ([[token]], ()) for token in tokens})
        return {token: count for token, numbers in found.items() if (count := len(seen(tx, numbers)))}

    def count_many(self, tx: ReadTransaction, tokens: Collection[str], _beginning: str) -> dict[str, int]:
        """Count many tokens that mostly occur nowhere; most of them begin with `beginning`."""
        return self.count(tx, tokens)

    def frequencies(self, tx: ReadTransaction, tokens: Collection[str], total: int) -> dict[str, int]:
        """Count tokens; a frequent one is counted again only after the index has changed by 2 %."""
        if access_of(tx):
            return self.count(tx, tokens)
        counted = _counted.setdefault(tx.engine, {})
        known = {
            token: counted[token][0]
            for token in tokens
            if token in counted and abs(counted[token][1] - total) <= 0.02 * total
        }
        new = self.count(tx, [token for token in tokens if token not in known])
        counted.update({token: (count, total) for token, count in new.items() if count >= 500})
        return {**known, **new}

    def holders(self, tx: ReadTransaction, groups: Groups, without: Sequence[str] = ()) -> list[int]:
        """Return the messages that carry a token of each group and none of `without`."""
        return seen(tx, [one for one in self._holders(tx, {"": (groups, without)})[""] if one > 0])

    def holders_of_each(
        self, tx: ReadTransaction, tokens: Sequence[str], groups: Groups, without: Sequence[str]
    ) -> dict[str, list[int]]:
        """Return by token what `holders` finds with it as a further group."""
        found = self._holders(tx, {token: ([*groups, [token]], without) for token in tokens})
        return {token: seen(tx, [one for one in numbers if one > 0]) for token, numbers in found.items()}

    def titles_holding(self, tx: ReadTransaction, tokens: Sequence[str]) -> dict[str, list[int]]:
        """Return by token the (negated) numbers of the channels whose title carries it."""
        found = self._holders(tx, {token: ([[TITLE], [token]], ()) for token in tokens})
        return {token: seen(tx, numbers) for token, numbers in found.items()}

    def messages(
        self, tx: ReadTransaction, numbers: Sequence[int], conditions: Sequence[ColumnElement[bool]]
    ) -> list[Sequence[Any]]:
        """Return the `COLUMNS` of those messages that are not deleted and meet the conditions, in any order."""
        # sorted as they are stored, SQLite takes a fifth less time
        there = is_one_of(tx, conversation.c.number, sorted(numbers)), conversation.c.deleted.is_(False)
        return list(tx.execute(select(*COLUMNS).where(*there, *conditions)).all())


def seen(tx: ReadTransaction, numbers: list[int]) -> list[int]:
    """Drop the entries (messages, or titles under a negative number) that a restricted transaction may not see."""
    access = access_of(tx)
    if access is None or not numbers:
        return numbers
    if len(numbers) > MANY and not access.is_writing and tx not in _all_seen:
        held = tx.execute(select(func.sum(channel.c.seq_count))).scalar() or 0
        if held < 4 * len(numbers):  # to read all once takes less than to look up so many, and again for each word
            queries = select(conversation.c.number), select(-channel.c.number)
            _all_seen[tx] = frozenset(number for query in queries for number in tx.execute(query).scalars())
    if tx in _all_seen:
        return [one for one in numbers if one in _all_seen[tx]]
    visible = set[int]()
    for column, sign in ((conversation.c.number, 1), (channel.c.number, -1)):
        query = select(column).where(is_one_of(tx, column, [sign * one for one in numbers]))
        visible.update(sign * one for one in tx.execute(query).scalars())
    return [one for one in numbers if one in visible]
