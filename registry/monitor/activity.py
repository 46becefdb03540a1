"""What was said when: messages by day, by client and by project. Deleted ones do not count."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from sqlalchemy import ColumnElement, Date, Engine, Integer, Interval, cast, func, literal, literal_column, select

from registry.storage.conversations.channels import channel_item
from registry.storage.database import ReadTransaction
from registry.storage.tables import channel, conversation


class Share(NamedTuple):
    """How much of the messages of some time came from one client, or one project (its path; None: of none)."""

    name: str | None
    messages: int
    channels: int


def messages_by_day(tx: ReadTransaction, start: datetime, utc_offset_minutes: int) -> dict[str, int]:
    """The days since an instant on which something was said, by a clock so far from UTC: `2026-03-01` to a number.

    In a large registry as it was a moment ago.
    """
    asked, started = (start, utc_offset_minutes), time.monotonic()
    known_until, known_for, known = _counted.get(tx.engine, (0.0, None, {}))
    if known_for == asked and started < known_until:
        return known
    day = day_of_message(tx, utc_offset_minutes).label("day")
    query = select(day, func.count()).where(*said_within(start, None)).group_by(day)
    counts = {str(found): count for found, count in tx.execute(query).all()}
    spent = time.monotonic() - started
    if spent > 0.1:
        # cached for a hundred times as long as it took
        _counted[tx.engine] = started + 100 * spent, asked, counts
    return counts


_counted: WeakKeyDictionary[Engine, tuple[float, tuple[datetime, int] | None, dict[str, int]]] = WeakKeyDictionary()


def messages_by_source(tx: ReadTransaction, start: datetime, end: datetime | None = None) -> Sequence[Share]:
    """By client, those with most messages first."""
    return _shares(tx, conversation.c.source, start, end)


def messages_by_project(tx: ReadTransaction, start: datetime, end: datetime | None = None) -> Sequence[Share]:
    """By project, those with most messages first."""
    return _shares(tx, channel.c.project_path, start, end)


def messages_by_hour(tx: ReadTransaction, start: datetime, utc_offset_minutes: int) -> dict[tuple[int, int], int]:
    """Count messages by weekday (0: Monday) and hour, by a clock so far from UTC."""
    weekday: ColumnElement[Any]
    hour: ColumnElement[Any]
    if tx.dialect.name == "postgresql":
        shift = cast(literal(f"{utc_offset_minutes} minutes"), Interval)
        local = func.timezone("UTC", conversation.c.timestamp) + shift
        weekday, hour = func.extract("isodow", local) - 1, func.extract("hour", local)
    else:
        at: ColumnElement[Any] = literal_column("conversation.timestamp")
        shift_by = f"{utc_offset_minutes} minutes"
        weekday = (cast(func.strftime("%w", at, shift_by), Integer) + 6) % 7
        hour = cast(func.strftime("%H", at, shift_by), Integer)
    query = select(weekday, hour, func.count()).where(*said_within(start, None)).group_by(weekday, hour)
    return {(int(row[0]), int(row[1])): row[2] for row in tx.execute(query)}


def largest_channels(tx: ReadTransaction, start: datetime, limit: int) -> list[dict[str, Any]]:
    """Return the conversations with most messages of those that went on since `start`."""
    query = select(channel).where(channel.c.updated_at >= start, channel.c.deleted.is_(False))
    rows = tx.execute(query.order_by(channel.c.message_count.desc(), channel.c.number).limit(limit)).all()
    return [channel_item(row, ()) for row in rows]


def channels_since(tx: ReadTransaction, start: datetime) -> int:
    """Return how many conversations have gone on since then."""
    query = select(func.count()).where(channel.c.updated_at > start, channel.c.deleted.is_(False))
    return tx.execute(query).scalar_one()


def _shares(tx: ReadTransaction, column: ColumnElement[Any], start: datetime, end: datetime | None) -> Sequence[Share]:
    count = func.count()
    query = select(column, count, func.count(conversation.c.channel_number.distinct())).where(*said_within(start, end))
    query = query.join_from(conversation, channel, channel.c.number == conversation.c.channel_number)
    rows = tx.execute(query.group_by(column).order_by(count.desc(), column))
    return [Share(*row) for row in rows]


def said_within(start: datetime, end: datetime | None) -> list[ColumnElement[bool]]:
    """Return the messages of a period that are not deleted."""
    until = [conversation.c.timestamp <= end] if end else []
    return [conversation.c.timestamp >= start, *until, conversation.c.deleted.is_(False)]


def day_of_message(tx: ReadTransaction, utc_offset_minutes: int) -> ColumnElement[Any]:
    """Return the day on which a message was said, by a clock so far from UTC."""
    if tx.dialect.name == "postgresql":
        shift = cast(literal(f"{utc_offset_minutes} minutes"), Interval)
        return cast(func.timezone("UTC", conversation.c.timestamp) + shift, Date)
    return func.date(literal_column("conversation.timestamp"), f"{utc_offset_minutes} minutes")
