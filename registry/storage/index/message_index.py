"""The message index: which messages contain a token. One interface; each database fills in a few statements.

It lives in the database and changes in the same transaction as the messages, so what is acknowledged is
findable and what is deleted is not. It holds tokens of the one analyzer, without positions or frequencies, and
only stores and looks up: what to do with what it finds is `registry.search`'s.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from sqlalchemy import ColumnElement, Engine, Select, select

from registry.storage.conditions import given, is_one_of
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.index.index_entries import COMPLETE, Entry
from registry.storage.safety.visibility import access_of
from registry.storage.tables import conversation

TABLE = "message_index"

TITLE = "zztitle"
"""Carried by every title, which stands in the index under its channel's number, negated."""

HOT = 500
"""How often such a token occurs is remembered: counting it takes up to milliseconds."""
_DRIFT = 0.02

LARGE, COMMON = 100_000, 1_000
"""In an index of so many entries those of the tokens that so many hold are estimated, where the database has sampled
them: to count them it would have to read them all."""

Groups = Sequence[Sequence[str]]
"""A condition on tokens: of each group an entry carries at least one."""

COLUMNS = (
    conversation.c.number,
    conversation.c.channel_number,
    conversation.c.seq,
    conversation.c.role,
    conversation.c.length,
    conversation.c.turn,
)
"""What a search reads of a message before it is ranked."""


SEEN = " AND EXISTS (SELECT 1 FROM conversation AS seen WHERE seen.number = message_index.{0})"
SEEN_TITLE = " AND EXISTS (SELECT 1 FROM channel AS seen WHERE seen.number = -message_index.{0})"
SEEN_ENTRY = """ AND (message_index.{0} = 0
    OR EXISTS (SELECT 1 FROM conversation AS seen WHERE seen.number = message_index.{0})
    OR EXISTS (SELECT 1 FROM channel AS seen WHERE seen.number = -message_index.{0}))"""
"""What a restricted transaction asks of a posting; the tables are those it sees (`storage.safety.visibility`)."""


def seen(tx: ReadTransaction, statement: str, condition: str, number: str, side: str = "") -> str:
    """A statement as this transaction may ask it."""
    return statement.format(seen=condition.format(number) if access_of(tx) else "", side=side)


_hot: WeakKeyDictionary[Engine, dict[str, tuple[int, int]]] = WeakKeyDictionary()
_sampled: WeakKeyDictionary[Engine, int] = WeakKeyDictionary()
_scoped: WeakSet[Engine] = WeakSet()
"""What is remembered of each registry: how often hot tokens occur, when they were sampled, that it has scopes."""


class MessageIndex(ABC):
    """The interface of a database's message index."""

    name: str
    """Named in execution records: which index gave the candidates."""

    def for_search(self, _tx: ReadTransaction, _total: int) -> MessageIndex:
        """Return an index for one search of all channels, which remembers what it reads."""
        return self

    def prepare(self, _tx: ReadTransaction, _tokens: Sequence[str]) -> None:
        """Be told which words will be asked for: they may be read in one go."""
        return

    @abstractmethod
    def add(self, tx: WriteTransaction, entries: Sequence[Entry], into: str = TABLE) -> None:
        """Make entries findable; `into` another table than the one searched while that is built anew."""

    @abstractmethod
    def remove(self, tx: WriteTransaction, entries: Sequence[Entry], into: str = TABLE) -> None:
        """Make entries unfindable; the tokens must be those they were added with."""

    @abstractmethod
    def count(self, tx: ReadTransaction, tokens: Collection[str]) -> dict[str, int]:
        """In how many entries each token occurs; tokens that occur nowhere are left out."""

    def count_many(self, tx: ReadTransaction, tokens: Collection[str], _beginning: str) -> dict[str, int]:
        """As `count`, of many tokens that occur nowhere but for a few, and begin alike but for some."""
        return self.count(tx, tokens)

    def sample(self, _tx: ReadTransaction, _least: int) -> dict[str, int]:
        """Return the commonest tokens, those in about `least` entries or more, with their counts."""
        return {}

    @abstractmethod
    def holders(self, tx: ReadTransaction, groups: Groups, without: Sequence[str] = ()) -> list[int]:
        """The numbers of the messages that carry a token of each group, and none of the others."""

    def held_among(
        self,
        _tx: ReadTransaction,
        _numbers: Collection[int],
        _tokens: Sequence[str],
        _groups: Groups,
        _without: Sequence[str],
    ) -> dict[str, list[int]]:
        """By token, what `holders` would say of these messages; nothing where it is quicker to ask for all of them."""
        return {}

    @abstractmethod
    def newest_holders(self, tx: ReadTransaction, groups: Groups, without: Sequence[str], limit: int) -> list[int]:
        """As `holders`, so many of the newest."""

    @abstractmethod
    def holders_of_each(
        self, tx: ReadTransaction, tokens: Sequence[str], groups: Groups, without: Sequence[str]
    ) -> dict[str, list[int]]:
        """By token, what `holders` says with it as a further group."""

    @abstractmethod
    def titles_holding(self, tx: ReadTransaction, tokens: Sequence[str]) -> dict[str, list[int]]:
        """By token, the (negated) numbers of the channels whose title carries it."""

    def messages(
        self, tx: ReadTransaction, numbers: Sequence[int], conditions: Sequence[ColumnElement[bool]]
    ) -> list[Sequence[Any]]:
        """Return those of the messages that are not deleted and meet the conditions: `COLUMNS`, in any order.

        They are asked for in the order they are stored in: SQLite takes a fifth less for them.
        """
        return list(tx.execute(_numbered(tx.dialect.name, tuple(conditions)), given(tx, sorted(numbers))).all())

    def frequencies(self, tx: ReadTransaction, tokens: Collection[str], total: int) -> dict[str, int]:
        """As `count`; of hot tokens what it was when the index held about as many entries as `total`."""
        hot = _hot.setdefault(tx.engine, {})
        if total >= LARGE and not _is_fresh(_sampled.get(tx.engine, 0), total):
            _sampled[tx.engine] = total
            hot.update({token: (found, total) for token, found in self.sample(tx, COMMON).items()})
        fresh = {token: hot[token][0] for token in tokens if token in hot and _is_fresh(hot[token][1], total)}
        missing = [token for token in tokens if token not in fresh]
        counted = self.count(tx, missing) if missing else {}
        hot.update({token: (found, total) for token, found in counted.items() if found >= HOT})
        return {**fresh, **counted}

    def is_scoped(self, tx: ReadTransaction) -> bool:
        """Return whether every message has the tokens of its scope, none being of the first version of the analyzer."""
        if tx.engine not in _scoped and self._is_marked_complete(tx):
            _scoped.add(tx.engine)
        return tx.engine in _scoped

    def _is_marked_complete(self, tx: ReadTransaction) -> bool:
        return bool(self.count(tx, [COMPLETE]))


@lru_cache(maxsize=64)
def _numbered(dialect: str, conditions: tuple[ColumnElement[bool], ...]) -> Select[Any]:
    there = is_one_of(dialect, conversation.c.number), conversation.c.deleted.is_(False)
    return select(*COLUMNS).where(*there, *conditions)


def _is_fresh(counted_at: int, total: int) -> bool:
    return abs(counted_at - total) <= _DRIFT * total
