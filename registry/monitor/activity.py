"""What was said when: messages by day, by client and by project. Deleted ones do not count."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Date, Interval, cast, func, literal, literal_column, select

from registry.storage.database import ReadTransaction
from registry.storage.tables import channel, conversation


class Share(NamedTuple):
    """How much of the messages of some time came from one client, or one project (its path; None: of none)."""

    name: str | None
    messages: int
    channels: int


def messages_by_day(tx: ReadTransaction, start: datetime, utc_offset_minutes: int) -> dict[str, int]:
    """The days since an instant on which something was said, by a clock so far from UTC: `2026-03-01` to a number."""
    day = _day(tx, utc_offset_minutes).label("day")
    query = select(day, func.count()).where(*_said(start, None)).group_by(day)
    return {str(found): count for found, count in tx.execute(query).all()}


def messages_by_source(tx: ReadTransaction, start: datetime, end: datetime | None = None) -> Sequence[Share]:
    """By client, those with most messages first."""
    return _shares(tx, conversation.c.source, start, end)


def messages_by_project(tx: ReadTransaction, start: datetime, end: datetime | None = None) -> Sequence[Share]:
    """By project, those with most messages first."""
    return _shares(tx, channel.c.project_path, start, end)


def channels_since(tx: ReadTransaction, start: datetime) -> int:
    """How many conversations have gone on since then."""
    query = select(func.count()).where(channel.c.updated_at > start, channel.c.deleted.is_(False))
    return tx.execute(query).scalar_one()


def _shares(tx: ReadTransaction, column: ColumnElement[Any], start: datetime, end: datetime | None) -> Sequence[Share]:
    count = func.count()
    query = select(column, count, func.count(conversation.c.channel_number.distinct())).where(*_said(start, end))
    query = query.join_from(conversation, channel, channel.c.number == conversation.c.channel_number)
    rows = tx.execute(query.group_by(column).order_by(count.desc(), column))
    return [Share(*row) for row in rows]


def _said(start: datetime, end: datetime | None) -> list[ColumnElement[bool]]:
    until = [conversation.c.timestamp <= end] if end else []
    return [conversation.c.timestamp >= start, *until, conversation.c.deleted.is_(False)]


def _day(tx: ReadTransaction, utc_offset_minutes: int) -> ColumnElement[Any]:
    if tx.dialect.name == "postgresql":
        shift = cast(literal(f"{utc_offset_minutes} minutes"), Interval)
        return cast(func.timezone("UTC", conversation.c.timestamp) + shift, Date)
    return func.date(literal_column("conversation.timestamp"), f"{utc_offset_minutes} minutes")
