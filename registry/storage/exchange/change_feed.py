"""What has happened since: the feed of stored messages and finished executions, read from the tables themselves.

So it is the same in every process that shares the registry, and a listener that was away can catch up.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Column, Row, Table, func, or_, select

from registry.domain import now
from registry.storage.conversations.messages import message_item
from registry.storage.database import ReadTransaction
from registry.storage.exchange.portions import SIZED, portion
from registry.storage.numbering import last_number, step_of
from registry.storage.paging import Seal, seal_of, seal_of_state
from registry.storage.records.executions import execution_item
from registry.storage.safety.visibility import ask_all
from registry.storage.tables import channel, channel_alias, conversation, execution

MOST = 500
"""Events of one kind read at a time."""
MISSED_S = 30.0
"""How long a number that is missing is looked for: longer than any write may take."""


@dataclass(frozen=True, slots=True)
class Place:
    """How far a listener has come: the numbers of the last message and the last execution it saw."""

    message: int = 0
    execution: int = 0

    def shown(self, seal: Seal) -> str:
        """The place as one word."""
        return f"{seal.close(self.message)}.{seal.close(self.execution)}"

    @classmethod
    def parse(cls, shown: str, seal: Seal) -> Place:
        """The place that is shown so; ValueError for what is no place."""
        message, execution = shown.split(".")
        return cls(seal.open(int(message)), seal.open(int(execution)))


@dataclass(frozen=True, slots=True)
class Event:
    """A stored message or finished execution, and the place just after it. `kind` is "message" or "execution"."""

    kind: str
    place: Place
    item: dict[str, Any]


def newest_place(tx: ReadTransaction) -> Place:
    """The place where nothing has happened since."""
    last = (tx.execute(select(func.max(table.c.number))).scalar() or 0 for table in (conversation, execution))
    return Place(*last)


def shown_place(tx: ReadTransaction) -> str:
    """Return the newest place as one word: a page read after it misses nothing from there on."""
    return newest_place(tx).shown(seal_of(tx))


class Listener:
    """A listener's position in the feed.

    Several writers of a PostgreSQL may commit in another order than they took their numbers; so a number that is
    missing is looked for again, for a while.
    """

    def __init__(self, place: Place) -> None:
        self._messages = _Numbers(conversation, place.message)
        self._executions = _Numbers(execution, place.execution)

    def news(self, tx: ReadTransaction) -> list[Event]:
        """Return what has happened since the last call, messages before executions."""
        events = []
        for row in self._messages.news(tx):
            events.append(Event("message", self._place(), message_item(row)))
        for row in self._executions.news(tx):
            events.append(Event("execution", self._place(), execution_item(row)))
        return events

    def has_all_up_to(self, newest: Place) -> bool:
        """Return whether nothing is newer, and nothing is missing."""
        is_whole = self._messages.is_whole and self._executions.is_whole
        return is_whole and self._messages.last >= newest.message and self._executions.last >= newest.execution

    def _place(self) -> Place:
        return Place(self._messages.last, self._executions.last)


@dataclass(frozen=True, slots=True)
class Changes:
    """Messages stored behind a place, in the order of arrival; `place` is where to go on.

    `starts_over`: the place is none of this registry, so it is told from the beginning.
    """

    items: list[dict[str, Any]]
    place: int
    is_all: bool
    starts_over: bool = False


def changes_after(tx: ReadTransaction, place: int) -> Changes:
    """Return what was stored after a place, for polling; 0 is the beginning.

    On PostgreSQL a missing number may still be written: what lies behind it waits until it cannot any more.
    """
    seal = seal_of_state(tx)
    number = seal.open(place)
    starts_over = number > last_number(tx, conversation)
    if starts_over:
        number = 0
    rows, are_all = portion(tx, SIZED.where(conversation.c.number > number).order_by(conversation.c.number).limit(MOST))
    kept = list(rows if tx.dialect.name == "sqlite" else _without_gap(tx, number, rows))
    items = [message_item(row) for row in kept if not (row.deleted or row.forgotten)]
    goes_on = seal.close(kept[-1].number if kept else number)
    is_all = len(kept) < len(rows) or (are_all and len(kept) < MOST)  # what waits is no more for now
    return Changes(items, goes_on, is_all, starts_over)


def _without_gap(tx: ReadTransaction, last: int, rows: Sequence[Row[Any]]) -> Iterator[Row[Any]]:
    """The rows up to the first behind which a number may still come; one that is only not seen by all is there."""
    settled = now() - timedelta(seconds=MISSED_S)
    young = [row for row in rows if row.received_at > settled]
    between = conversation.c.number > last, conversation.c.number <= (rows[-1].number if young else last)
    there, step = defaultdict[int, list[int]](list), step_of(tx, conversation)
    for number in sorted(ask_all(tx, select(conversation.c.number).where(*between)).scalars()) if young else ():
        there[number % step].append(number)
    for row in rows:
        before = bisect_left(there[row.number % step], row.number)
        if row.received_at > settled and before < (row.number - last - 1) // step:
            return
        yield row


class UpdatedChannels:
    """A listener's position in the messages stored since a moment, for the channels that gained some."""

    def __init__(self, tx: ReadTransaction, since: datetime) -> None:
        before = select(conversation.c.number).where(conversation.c.received_at < since)
        last = tx.execute(before.order_by(conversation.c.number.desc()).limit(1)).scalar() or 0
        self._messages = _Numbers(conversation, last, (conversation.c.number, conversation.c.channel_number))

    @property
    def is_whole(self) -> bool:
        """Return whether no message is missing that may still come."""
        return self._messages.is_whole

    def names(self, tx: ReadTransaction) -> set[str]:
        """Return all names of the channels that gained messages since the last call."""
        numbers = {row.channel_number for row in self._messages.news(tx)}
        if not numbers:
            return set()
        named = select(channel.c.name, channel.c.session_id, channel.c.nickname).where(channel.c.number.in_(numbers))
        aliased = select(channel_alias.c.name).where(channel_alias.c.channel_number.in_(numbers))
        return {name for query in (named, aliased) for row in tx.execute(query) for name in row if name}


class _Numbers:
    """The rows of one table by their running number, each once; all of them, or some columns."""

    def __init__(self, table: Table, last: int, columns: Sequence[Column[Any]] = ()) -> None:
        self.last = last
        self._table = table
        self._columns = columns or (table,)
        self._missing: dict[int, float] = {}  # number: until when it is looked for

    @property
    def is_whole(self) -> bool:
        """Return whether no number is missing that may still come."""
        return not self._missing

    def news(self, tx: ReadTransaction) -> Iterator[Row[Any]]:
        number = self._table.c.number
        self._missing = {gap: until for gap, until in self._missing.items() if until > time.monotonic()}
        query = select(*self._columns).where(or_(number > self.last, number.in_(self._missing)))
        rows = tx.execute(query.order_by(number).limit(MOST)).all()
        step = step_of(tx, self._table) if rows else 1
        for row in rows:
            self._missing.pop(row.number, None)
            for gap in range(row.number - step, max(self.last, row.number - MOST * step), -step):
                self._missing[gap] = time.monotonic() + MISSED_S
            self.last = max(self.last, row.number)
            yield row
