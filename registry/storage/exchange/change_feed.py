"""Read the feed of stored messages and finished executions, from the tables themselves.

So every process that shares the registry has the same feed, and a listener that was away can catch up.
"""

import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, Self, TypeVar

from sqlalchemy import Column, Row, Select, Table, Text, cast, func, or_, select, text
from sqlalchemy.dialects.postgresql import REGCLASS

from registry.domain import now
from registry.storage.conversations.messages import MessageRow, message_item
from registry.storage.database import ReadTransaction
from registry.storage.paging import feed_place, number_of_place
from registry.storage.records.executions import execution_item
from registry.storage.safety.masking import registry_id
from registry.storage.safety.visibility import ask_all, namesakes, owner_of
from registry.storage.tables import channel, channel_alias, conversation, execution

T = TypeVar("T")

POLL_S = 0.4  # seconds between two polls: polling works across processes, and is quick enough for a page
MOST = 500  # events of one kind read at a time
MISSED_S = 30.0  # seconds a missing number may still appear: longer than any write


@dataclass(frozen=True, slots=True)
class Place:
    """A listener's place in the feed: the numbers of the last message and the last execution it saw."""

    message: int = 0
    execution: int = 0

    def __str__(self) -> str:
        return f"{self.message}.{self.execution}"

    @classmethod
    def parse(cls, given: str) -> Self:
        """Parse `MESSAGE.EXECUTION`. Raises ValueError."""
        message, execution = map(int, given.split("."))
        return cls(message, execution)


@dataclass(frozen=True, slots=True)
class Event:
    """A stored message or finished execution, and the place just after it. `kind` is "message" or "execution"."""

    kind: str
    place: Place
    item: dict[str, Any]


def newest_place(tx: ReadTransaction) -> Place:
    """Return the place where nothing has happened since."""
    last = (tx.execute(select(func.max(table.c.number))).scalar() or 0 for table in (conversation, execution))
    return Place(*last)


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
class Changes(Generic[T]):
    """Messages or edits behind a place, in the order of arrival; `place` is where to continue.

    `starts_over`: the given place is not of this registry, so these are from the beginning. `registry`: its id.
    """

    items: list[T]
    place: int
    is_all: bool
    starts_over: bool = False
    registry: str = ""


def changes_after(tx: ReadTransaction, place: int) -> Changes[dict[str, Any]]:
    """Return what was stored after a place, for polling; 0 is the beginning.

    On PostgreSQL a transaction with a smaller number may still commit: rows behind a gap wait until it cannot.
    """
    number = number_of_place(tx, place)
    starts_over = number is None or number > last_number(tx, conversation)
    number = 0 if starts_over or number is None else number
    rows, are_all = portion(tx, SIZED.where(conversation.c.number > number).order_by(conversation.c.number).limit(MOST))
    kept = list(rows if tx.dialect.name == "sqlite" else _without_gap(tx, number, rows))
    hidden = _namesakes_in(tx, kept)
    told = (row for row in kept if not (row.deleted or row.forgotten or row.channel_number in hidden))
    items = [message_item(row) for row in told]
    goes_on = feed_place(tx, kept[-1].number if kept else number)
    is_all = len(kept) < len(rows) or (are_all and len(kept) < MOST)  # what waits is no more for now
    return Changes(items, goes_on, is_all, starts_over, registry_id(tx))


def _namesakes_in(tx: ReadTransaction, rows: Iterable[MessageRow]) -> set[int]:
    if owner_of(tx) is None:
        return set()
    within = channel.c.number.in_({row.channel_number for row in rows})
    named = tx.execute(select(channel.c.number, channel.c.owner, channel.c.name).where(within))
    return namesakes(tx, {number: (owner, [name]) for number, owner, name in named})


def last_number(tx: ReadTransaction, table: Table) -> int:
    """Return the last number that a table gave, also to a row that is gone by now."""
    if tx.dialect.name == "sqlite":
        sequence = text("SELECT seq FROM sqlite_sequence WHERE name = :name")
        return int(ask_all(tx, sequence, {"name": table.name}).scalar() or 0)
    held = select(func.coalesce(func.max(table.c.number), 0)).scalar_subquery()
    given = func.pg_sequence_last_value(cast(func.pg_get_serial_sequence(table.name, "number"), REGCLASS))
    return int(ask_all(tx, select(func.greatest(held, given))).scalar() or 0)


def _without_gap(tx: ReadTransaction, last: int, rows: Sequence[Row[Any]]) -> Iterator[Row[Any]]:
    """Return the rows up to the first gap in which a number may still appear, whether the asker may see it or not."""
    settled = now() - timedelta(seconds=MISSED_S)
    young = [row for row in rows if row.received_at > settled]
    between = conversation.c.number > last, conversation.c.number <= (rows[-1].number if young else last)
    there = ask_all(tx, select(conversation.c.number).where(*between)) if young else None
    numbers = sorted(there.scalars()) if there else []
    for row in rows:
        if row.received_at > settled and bisect_left(numbers, row.number) < row.number - last - 1:
            return
        yield row


class UpdatedChannels:
    """A listener's position in the messages stored since a moment, for the channels that gained some."""

    def __init__(self, tx: ReadTransaction, since: datetime) -> None:
        before = select(conversation.c.number).where(conversation.c.received_at < since)
        last = tx.execute(before.order_by(conversation.c.number.desc()).limit(1)).scalar() or 0
        self._messages = _Numbers(conversation, last, (conversation.c.number, conversation.c.channel_number))

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
        return not self._missing

    def news(self, tx: ReadTransaction) -> Iterator[Row[Any]]:
        number = self._table.c.number
        self._missing = {gap: until for gap, until in self._missing.items() if until > time.monotonic()}
        query = select(*self._columns).where(or_(number > self.last, number.in_(self._missing)))
        rows = tx.execute(query.order_by(number).limit(MOST)).all()
        for row in rows:
            self._missing.pop(row.number, None)
            for gap in range(max(self.last + 1, row.number - MOST), row.number):
                self._missing[gap] = time.monotonic() + MISSED_S
            self.last = max(self.last, row.number)
            yield row


SIZED: Select[Any] = select(
    conversation.c.number,
    (func.length(conversation.c.text) + func.length(cast(conversation.c.payload, Text))).label("size"),
)
"""The numbers of messages with their sizes, for `portion`."""


def portion(tx: ReadTransaction, sized: Select[Any]) -> tuple[list[MessageRow], bool]:
    """Return the first of these messages that fit into one request, and whether they are all."""
    rows = tx.execute(sized).all()
    numbers = list(_fitting(rows))
    query = select(conversation).where(conversation.c.number.in_(numbers)).order_by(conversation.c.number)
    return list(tx.execute(query).all()), len(numbers) == len(rows)


def _fitting(rows: Sequence[Row[Any]]) -> Iterable[int]:
    left = 500_000  # characters, or one message; compressed less than the 1 MB that proxies take
    for at, row in enumerate(rows):
        left -= row.size
        if at and left < 0:
            return
        yield row.number
