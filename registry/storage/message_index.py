"""The message index: which messages contain a token. One interface; each database fills in a few statements.

It lives in the database and changes in the same transaction as the messages, so what is acknowledged is
findable and what is deleted is not. It holds tokens of the one analyzer, without positions or frequencies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from operator import eq, ge, le
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from sqlalchemy import ColumnElement, Engine, Select, func, select

from registry.storage.conditions import given_conditions, is_in, is_of_project, is_tagged
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.index_entries import (
    COMPLETE,
    Entry,
    channel_token,
    month_tokens,
    role_token,
    source_token,
)
from registry.storage.tables import channel, conversation
from registry.text.ranking import COMMON_TERMS, Candidate, Term, Title
from registry.text.top_k import heaviest, sum_masses

CANDIDATES = 1000
CANDIDATES_IN_CHANNEL = 300
"""How many of the heaviest messages are taken into ranking."""

WEIGHT_UNIT = 1_000_000
"""Weights are summed as whole numbers, so that both databases come to the very same sums."""

TABLE = "message_index"

TITLE = "zztitle"
"""Carried by every title, which stands in the index under its channel's number, negated."""

FEW_CHANNELS = 64
"""A filter that leaves no more channels than these is put into the look-up, so that it costs next to nothing."""

FEW_MESSAGES = 30_000
"""A filter that leaves no more messages than these is read before the look-up: its cost is theirs."""
FEW_OF_A_TIME = 5_000
"""The same for filters of time alone, which the tokens of months narrow as well."""

LONG_LIST = 5_000
"""A list of so many postings is not walked if sets of terms can be asked for instead (`masses`)."""

HOT = 500
"""How often such a token occurs is remembered: counting it takes up to milliseconds."""
_DRIFT = 0.02

Groups = Sequence[Sequence[str]]
"""A condition on tokens: of each group an entry carries at least one."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Where to look; None means everywhere. Times are instants, both ends included.

    Of each group in `carrying` a message holds a token, of `without` none.
    """

    channel_number: int | None = None
    source: str | None = None
    project: str | None = None
    tags: Sequence[str] = ()
    roles: Sequence[str] | None = None
    from_: datetime | None = None
    to: datetime | None = None
    exclude_channel: str | None = None
    carrying: Groups = ()
    without: Sequence[str] = ()


class MessageIndex(ABC):
    """What a database's index can do."""

    name: str
    """Named in execution records: which index gave the candidates."""

    def __init__(self) -> None:
        self._hot: WeakKeyDictionary[Engine, dict[str, tuple[int, int]]] = WeakKeyDictionary()
        self._scoped: WeakSet[Engine] = WeakSet()

    @abstractmethod
    def add(self, tx: WriteTransaction, entries: Sequence[Entry], into: str = TABLE) -> None:
        """Make entries findable; `into` another table than the one searched while that is built anew."""

    @abstractmethod
    def remove(self, tx: WriteTransaction, entries: Sequence[Entry], into: str = TABLE) -> None:
        """Make entries unfindable; the tokens must be those they were added with."""

    @abstractmethod
    def count(self, tx: ReadTransaction, tokens: Collection[str]) -> dict[str, int]:
        """In how many entries each token occurs; tokens that occur nowhere are left out."""

    @abstractmethod
    def holders(self, tx: ReadTransaction, groups: Groups, without: Sequence[str] = ()) -> list[int]:
        """The numbers of the messages that carry a token of each group, and none of the others."""

    @abstractmethod
    def newest_holders(self, tx: ReadTransaction, groups: Groups, without: Sequence[str], limit: int) -> list[int]:
        """As `holders`, so many of the newest."""

    @abstractmethod
    def titles_holding(self, tx: ReadTransaction, token: str) -> list[int]:
        """The (negated) numbers of the channels whose title carries a token."""

    @abstractmethod
    def messages(
        self, tx: ReadTransaction, numbers: Sequence[int], conditions: Sequence[ColumnElement[bool]]
    ) -> list[Sequence[Any]]:
        """Of these messages, those that are not deleted and meet the conditions: `COLUMNS`, in any order."""

    def frequencies(self, tx: ReadTransaction, tokens: Collection[str], total: int) -> dict[str, int]:
        """As `count`; of hot tokens what it was when the index held about as many entries as `total`."""
        hot = self._hot.setdefault(tx.engine, {})
        fresh = {token: hot[token][0] for token in tokens if token in hot and _is_near(hot[token][1], total)}
        counted = self.count(tx, [token for token in tokens if token not in fresh])
        hot.update({token: (found, total) for token, found in counted.items() if found >= HOT})
        return {**fresh, **counted}

    def candidates(self, tx: ReadTransaction, terms: Sequence[Term], scope: Scope) -> list[Candidate]:
        """The messages in scope with the largest sum of term weights, heaviest and newest first."""
        groups, without, conditions = self._narrowed(tx, scope)
        allowed = _few_messages(tx, scope) if conditions else None
        most = CANDIDATES if scope.channel_number is None else CANDIDATES_IN_CHANNEL

        def look_up(token: str, among: Sequence[str]) -> Collection[int]:
            found = self.holders(tx, [*groups, [token], *([among] if among else [])], without)
            return found if allowed is None else allowed.intersection(found)

        def newest(held: Sequence[str], absent: Sequence[str], limit: int) -> Collection[int]:
            return self.newest_holders(tx, [*groups, *([token] for token in held)], [*absent, *without], limit)

        is_wide = allowed is None and scope.channel_number is None
        common = min(sum(term.frequency > LONG_LIST for term in terms), COMMON_TERMS)
        # Conditions on the message itself may leave few of the heaviest ones: then all are looked at.
        attempts = (4 * most, None) if conditions else (most,)
        found: list[Candidate] = []
        for stop_at in attempts:
            sums = sum_masses(_weights(terms), look_up, stop_at, common, newest if is_wide else None)
            found = self._read(tx, sums, len(terms), conditions, most)
            if len(found) >= most or len(sums) < (stop_at or 0):
                break
        return found

    def titles(self, tx: ReadTransaction, terms: Sequence[Term], scope: Scope) -> dict[int, Title]:
        """What the title of each channel in scope holds of the terms, by channel number.

        A title is not asked what only a message can be: said by somebody, with a phrase, inside one channel.
        """
        if scope.channel_number is not None or scope.roles or scope.carrying or scope.without:
            return {}
        sums = sum_masses(_weights(terms), lambda token, _: self.titles_holding(tx, token), None)
        found = {-number: Title(*_mass_and_held(sums[number], len(terms))) for number in sums}
        conditions = [*_channel_conditions(scope), *given_conditions((eq, channel.c.source, scope.source))]
        query = select(channel.c.number).where(channel.c.number.in_(found), channel.c.deleted.is_(False), *conditions)
        inside = tx.execute(query.where(channel.c.name != (scope.exclude_channel or ""))).scalars() if found else ()
        return {number: found[number] for number in inside}

    def _read(
        self,
        tx: ReadTransaction,
        sums: dict[int, int],
        bits: int,
        conditions: Sequence[ColumnElement[bool]],
        most: int,
    ) -> list[Candidate]:
        """The heaviest messages that meet the conditions, read in growing portions until there are enough."""
        ordered = iter(heaviest(sums, None if conditions else most, bits))
        found: list[Candidate] = []
        portion = most
        while len(found) < most and (numbers := list(islice(ordered, portion))):
            rows = {row[0]: row for row in self.messages(tx, numbers, conditions)}
            found += [_candidate(rows[number], sums[number], bits) for number in numbers if number in rows]
            portion *= 4
        return found[:most]

    def _narrowed(self, tx: ReadTransaction, scope: Scope) -> tuple[Groups, Sequence[str], list[ColumnElement[bool]]]:
        """A scope as a condition on tokens, and what of it must be asked of the messages themselves."""
        groups, without = list(scope.carrying), list(scope.without)
        if scope.exclude_channel is not None:
            number = tx.execute(select(channel.c.number).where(channel.c.name == scope.exclude_channel)).scalar()
            without += [] if number is None else [channel_token(number)]
        if scope.channel_number is not None:
            groups.append([channel_token(scope.channel_number)])
        groups += self._scope_groups(tx, scope)
        if not _channel_conditions(scope):
            return groups, without, _message_conditions(scope)
        chosen = _channels_in(scope)
        numbers = tx.execute(chosen.limit(FEW_CHANNELS + 1)).scalars().all()
        if len(numbers) <= FEW_CHANNELS:
            groups.append([channel_token(number) for number in numbers] or ["zznone"])
            return groups, without, _message_conditions(scope)
        if not _is_of_channels(scope):
            return groups, without, _message_conditions(scope)
        return groups, without, [*_message_conditions(scope), conversation.c.channel_number.in_(chosen)]

    def _scope_groups(self, tx: ReadTransaction, scope: Scope) -> Groups:
        """What the tokens of every message tell of a scope; nothing where an older version indexed some of them."""
        if not (scope.source or scope.roles or scope.from_ or scope.to) or not self._is_scoped(tx):
            return []
        sources = [source_token(scope.source)] if scope.source else []
        groups = (sources, [role_token(role) for role in scope.roles or ()], _months(tx, scope))
        return [group for group in groups if group]

    def _is_scoped(self, tx: ReadTransaction) -> bool:
        if tx.engine not in self._scoped and self.count(tx, [COMPLETE]):
            self._scoped.add(tx.engine)
        return tx.engine in self._scoped


COLUMNS = (
    conversation.c.number,
    conversation.c.channel_number,
    conversation.c.seq,
    conversation.c.role,
    conversation.c.length,
    conversation.c.turn,
)


def _candidate(row: Sequence[Any], total: int, bits: int) -> Candidate:
    number, channel_number, seq, role, length, turn = row
    mass, held = _mass_and_held(total, bits)
    return Candidate(number, channel_number, seq, role, length, mass, turn, held)


def _mass_and_held(total: int, bits: int) -> tuple[float, int]:
    return (total >> bits) / WEIGHT_UNIT, total & ((1 << bits) - 1)


def _weights(terms: Sequence[Term]) -> list[tuple[str, int]]:
    return [(term.token, round(term.weight * WEIGHT_UNIT)) for term in terms]


def _few_messages(tx: ReadTransaction, scope: Scope) -> set[int] | None:
    """The messages of the times and channels in scope, told by the tables' own indexes; None if they are many."""
    conditions = given_conditions((ge, conversation.c.timestamp, scope.from_), (le, conversation.c.timestamp, scope.to))
    if _is_of_channels(scope):
        conditions.append(conversation.c.channel_number.in_(_channels_in(scope)))
    if not conditions:
        return None
    few = FEW_MESSAGES if _is_of_channels(scope) else FEW_OF_A_TIME
    numbers = tx.execute(select(conversation.c.number).where(*conditions).limit(few + 1)).scalars().all()
    return set(numbers) if len(numbers) <= few else None


def _is_of_channels(scope: Scope) -> bool:
    """Whether it depends on its channel if a message is in scope, which no token tells."""
    return scope.project is not None or bool(scope.tags)


def _months(tx: ReadTransaction, scope: Scope) -> list[str]:
    """The months in which something in scope may have been said, where it is bound in time."""
    if scope.from_ is None and scope.to is None:
        return []
    # One by one: asked together SQLite reads all of them.
    ends = (select(end(conversation.c.timestamp)).scalar_subquery() for end in (func.min, func.max))
    first, last = tx.execute(select(*ends)).one()
    return [] if first is None else month_tokens(max(first, scope.from_ or first), min(last, scope.to or last))


def _channels_in(scope: Scope) -> Select[int]:
    return select(channel.c.number).where(*_channel_conditions(scope), channel.c.deleted.is_(False))


def _is_near(counted_at: int, total: int) -> bool:
    return abs(counted_at - total) <= _DRIFT * total


def _message_conditions(scope: Scope) -> list[ColumnElement[bool]]:
    """What a candidate must be, beyond carrying a term."""
    return given_conditions(
        (eq, conversation.c.source, scope.source),
        (is_in, conversation.c.role, scope.roles),
        (ge, conversation.c.timestamp, scope.from_),
        (le, conversation.c.timestamp, scope.to),
    )


def _channel_conditions(scope: Scope) -> list[ColumnElement[bool]]:
    """What its channel must be. One that ended before, or began after, the times asked for need not be looked at."""
    return given_conditions(
        (is_of_project, channel.c.project_path, scope.project),
        *((is_tagged, channel.c.number, name) for name in scope.tags),
        (ge, channel.c.updated_at, scope.from_),
        (le, channel.c.created_at, scope.to),
    )
