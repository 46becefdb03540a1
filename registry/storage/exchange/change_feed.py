"""Read the feed of stored messages and finished executions from the tables.

So all processes that share the registry have the same feed, and a listener can continue after an interruption.
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
from registry.storage.paging import feed_position, number_at_position
from registry.storage.records.executions import execution_item
from registry.storage.safety.masking import registry_id
from registry.storage.safety.visibility import ask_all, channels_with_own_name, owner_of
from registry.storage.tables import channel, channel_alias, conversation, execution

T = TypeVar("T")

POLL_S = 0.4  # seconds between two polls: polling works across processes, and is quick enough for a page
MAX_ROWS = 500  # events of one kind read at a time
GAP_TIMEOUT_S = 30.0  # seconds a missing number may still appear: longer than any write


@dataclass(frozen=True, slots=True)
class FeedPosition:
    """A listener's position in the feed: the numbers of the last message and the last execution it saw."""

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
    """A stored message or finished execution, and the position just after it. `kind` is "message" or "execution"."""

    kind: str
    position: FeedPosition
    item: dict[str, Any]


def newest_position(tx: ReadTransaction) -> FeedPosition:
    """Return the position at the end of the feed."""
    last = (tx.execute(select(func.max(table.c.number))).scalar() or 0 for table in (conversation, execution))
    return FeedPosition(*last)


class Listener:
    """A listener's position in the feed.

    Transactions on PostgreSQL may commit in another order than that of their row numbers. So a missing number is
    queried again, for `GAP_TIMEOUT_S`.
    """

    def __init__(self, position: FeedPosition) -> None:
        self._messages = _Numbers(conversation, position.message)
        self._executions = _Numbers(execution, position.execution)

    def news(self, tx: ReadTransaction) -> list[Event]:
        """Return the events since the last call, messages before executions."""
        events = []
        for row in self._messages.news(tx):
            events.append(Event("message", self._position(), message_item(row)))
        for row in self._executions.news(tx):
            events.append(Event("execution", self._position(), execution_item(row)))
        return events

    def has_all_up_to(self, newest: FeedPosition) -> bool:
        """Return True if the listener has read up to a position, with no number missing."""
        is_whole = self._messages.is_whole and self._executions.is_whole
        return is_whole and self._messages.last >= newest.message and self._executions.last >= newest.execution

    def _position(self) -> FeedPosition:
        return FeedPosition(self._messages.last, self._executions.last)


@dataclass(frozen=True, slots=True)
class Changes(Generic[T]):
    """Messages or edits after a position, in order of arrival; `place`: the position to continue from.

    `starts_over`: the given position is not of this registry, so the items start at the beginning. `registry`: its id.
    `owner`: the person who asks, if it is one.
    """

    items: list[T]
    place: int
    is_all: bool
    starts_over: bool = False
    registry: str = ""
    owner: str | None = None


def changes_after(tx: ReadTransaction, position: int) -> Changes[dict[str, Any]]:
    """Return the messages stored after a position, for polling; 0 is the beginning.

    On PostgreSQL a transaction with a smaller number may still commit: rows after a gap wait for `GAP_TIMEOUT_S`.
    """
    number = number_at_position(tx, position)
    starts_over = number is None or number > last_number(tx, conversation)
    number = 0 if starts_over or number is None else number
    rows, are_all = read_batch(
        tx, SELECT_SIZES.where(conversation.c.number > number).order_by(conversation.c.number).limit(MAX_ROWS)
    )
    settled = list(rows if tx.dialect.name == "sqlite" else _up_to_gap(tx, number, rows))
    hidden = _namesakes_in(tx, settled)
    visible = (row for row in settled if not (row.deleted or row.forgotten or row.channel_number in hidden))
    items = [message_item(row) for row in visible]
    next_position = feed_position(tx, settled[-1].number if settled else number)
    # rows after a gap come with a later poll
    is_all = len(settled) < len(rows) or (are_all and len(settled) < MAX_ROWS)
    return Changes(items, next_position, is_all, starts_over, registry_id(tx), owner_of(tx))


def _namesakes_in(tx: ReadTransaction, rows: Iterable[MessageRow]) -> set[int]:
    if owner_of(tx) is None:
        return set()
    within = channel.c.number.in_({row.channel_number for row in rows})
    named = tx.execute(select(channel.c.number, channel.c.owner, channel.c.name).where(within))
    return channels_with_own_name(tx, {number: (owner, [name]) for number, owner, name in named})


def last_number(tx: ReadTransaction, table: Table) -> int:
    """Return the last number that a table has assigned, even if that row was deleted."""
    if tx.dialect.name == "sqlite":
        sequence = text("SELECT seq FROM sqlite_sequence WHERE name = :name")
        return int(ask_all(tx, sequence, {"name": table.name}).scalar() or 0)
    stored = select(func.coalesce(func.max(table.c.number), 0)).scalar_subquery()
    assigned = func.pg_sequence_last_value(cast(func.pg_get_serial_sequence(table.name, "number"), REGCLASS))
    return int(ask_all(tx, select(func.greatest(stored, assigned))).scalar() or 0)


def _up_to_gap(tx: ReadTransaction, last: int, rows: Sequence[Row[Any]]) -> Iterator[Row[Any]]:
    """Yield the rows up to the first gap that may still be filled, counting rows hidden from the token as present."""
    oldest_open = now() - timedelta(seconds=GAP_TIMEOUT_S)
    young = [row for row in rows if row.received_at > oldest_open]
    between = conversation.c.number > last, conversation.c.number <= (rows[-1].number if young else last)
    existing = ask_all(tx, select(conversation.c.number).where(*between)) if young else None
    numbers = sorted(existing.scalars()) if existing else []
    for row in rows:
        if row.received_at > oldest_open and bisect_left(numbers, row.number) < row.number - last - 1:
            return
        yield row


class UpdatedChannels:
    """A listener's position in the stored messages, for the names of the channels that gained some."""

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
    """Reads the new rows of one table by number, each once; all columns, or some."""

    def __init__(self, table: Table, last: int, columns: Sequence[Column[Any]] = ()) -> None:
        self.last = last
        self._table = table
        self._columns = columns or (table,)
        self._missing: dict[int, float] = {}  # number: deadline (monotonic) for querying it again

    @property
    def is_whole(self) -> bool:
        return not self._missing

    def news(self, tx: ReadTransaction) -> Iterator[Row[Any]]:
        number = self._table.c.number
        self._missing = {gap: until for gap, until in self._missing.items() if until > time.monotonic()}
        query = select(*self._columns).where(or_(number > self.last, number.in_(self._missing)))
        rows = tx.execute(query.order_by(number).limit(MAX_ROWS)).all()
        for row in rows:
            self._missing.pop(row.number, None)
            for gap in range(max(self.last + 1, row.number - MAX_ROWS), row.number):
                self._missing[gap] = time.monotonic() + GAP_TIMEOUT_S
            self.last = max(self.last, row.number)
            yield row


SELECT_SIZES: Select[Any] = select(
    conversation.c.number,
    (func.length(conversation.c.text) + func.length(cast(conversation.c.payload, Text))).label("size"),
)
"""Selects the numbers and sizes of messages, for `read_batch`."""


def read_batch(tx: ReadTransaction, sized: Select[Any]) -> tuple[list[MessageRow], bool]:
    """Return the first messages that fit into one request, and whether these are all."""
    rows = tx.execute(sized).all()
    numbers = list(_fitting_numbers(rows))
    query = select(conversation).where(conversation.c.number.in_(numbers)).order_by(conversation.c.number)
    return list(tx.execute(query).all()), len(numbers) == len(rows)


def _fitting_numbers(rows: Sequence[Row[Any]]) -> Iterable[int]:
    left = 500_000  # characters, or one message; compressed, less than the 1 MB limit of proxies
    for at, row in enumerate(rows):
        left -= row.size
        if at and left < 0:
            return
        yield row.number
