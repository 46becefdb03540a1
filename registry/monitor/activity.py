"""Count messages by day, hour, client and project, and what was recalled. Deleted ones do not count."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Date, Interval, cast, func, literal, literal_column, select

from registry.domain import format_time, now
from registry.project import NO_PROJECT
from registry.storage.column_types import UtcTime
from registry.storage.database import ReadTransaction
from registry.storage.tables import channel, conversation


class Share(NamedTuple):
    """The messages of one client, or of one project (its path; None: without a project)."""

    name: str | None
    messages: int


def messages_by_day(tx: ReadTransaction, start: datetime, utc_offset_minutes: int) -> dict[str, int]:
    """Count messages by day, such as `2026-03-01`, at a UTC offset, from the day of an instant to today.

    Each day is a range of the time index: computing the day of every message takes longer.
    """
    offset = timedelta(minutes=utc_offset_minutes)
    first = (start + offset).replace(hour=0, minute=0, second=0, microsecond=0) - offset
    columns, beginning = conversation.c, _days_since(tx, first)
    of_day = columns.timestamp >= beginning, columns.timestamp < _day_after(tx, beginning)
    count = select(func.count()).where(*of_day, columns.deleted.is_(False)).scalar_subquery()
    return {(at + offset).date().isoformat(): found for at, found in tx.execute(select(beginning, count))}


def _days_since(tx: ReadTransaction, first: datetime) -> ColumnElement[datetime]:
    """Return the beginnings of the days from the first to today, as a column."""
    bounds = literal(first, UtcTime), literal(now(), UtcTime)
    if tx.dialect.name == "postgresql":
        return func.generate_series(*bounds, cast(literal("24 hours"), Interval), type_=UtcTime).column_valued("day")
    day = select(bounds[0].label("beginning")).cte("day", recursive=True)
    following = _day_after(tx, day.c.beginning)
    return day.union_all(select(following).where(following <= bounds[1])).c.beginning


def _day_after(tx: ReadTransaction, at: ColumnElement[datetime]) -> ColumnElement[datetime]:
    if tx.dialect.name == "postgresql":
        return at + cast(literal("24 hours"), Interval)
    # the format in which `UtcTime` is stored
    return func.strftime("%Y-%m-%d %H:%M:%S.000000", at, "1 day", type_=UtcTime)


def messages_by_hour(
    tx: ReadTransaction, start: datetime | None, utc_offset_minutes: int
) -> dict[tuple[int, int], int]:
    """Count messages since an instant (None: all) by weekday (0: Monday) and hour, at a UTC offset."""
    if tx.dialect.name == "postgresql":
        hour = func.to_char(_local_time(utc_offset_minutes), "IDHH24")
    else:
        hour = func.strftime("%w%H", literal_column("conversation.timestamp"), f"{utc_offset_minutes} minutes")
    query = select(hour.label("hour"), func.count()).where(*undeleted_since(start)).group_by("hour")
    return {((int(text[0]) + 6) % 7, int(text[1:])): count for text, count in tx.execute(query)}


def shares(tx: ReadTransaction, start: datetime) -> tuple[list[Share], list[Share]]:
    """Count messages since an instant by client and by project, the largest counts first."""
    columns = conversation.c.source, conversation.c.channel_number
    sums = select(*columns, func.count().label("messages")).where(*undeleted_since(start)).group_by(*columns).subquery()
    query = select(sums.c.source, channel.c.project_path, sums.c.messages)
    of_source, of_project = Counter[str | None](), Counter[str | None]()
    for source, path, messages in tx.execute(query.join_from(sums, channel, channel.c.number == sums.c.channel_number)):
        of_source[source] += messages
        of_project[path] += messages
    return _most_first(of_source), _most_first(of_project)


def _most_first(counts: Counter[str | None]) -> list[Share]:
    return sorted((Share(*one) for one in counts.items()), key=lambda one: (-one.messages, one.name or ""))


def undeleted_since(start: datetime | None) -> list[ColumnElement[bool]]:
    """Return the conditions for messages since an instant that are not deleted."""
    since = [conversation.c.timestamp >= start] if start else []
    return [*since, conversation.c.deleted.is_(False)]


def day_of_message(tx: ReadTransaction, utc_offset_minutes: int) -> ColumnElement[Any]:
    """Return the day of a message's time at a UTC offset, as a column."""
    if tx.dialect.name == "postgresql":
        return cast(_local_time(utc_offset_minutes), Date)
    return func.date(literal_column("conversation.timestamp"), f"{utc_offset_minutes} minutes")


def _local_time(utc_offset_minutes: int) -> ColumnElement[Any]:
    """Return a message's time at a UTC offset, on PostgreSQL."""
    shift = cast(literal(f"{utc_offset_minutes} minutes"), Interval)
    return func.timezone("UTC", conversation.c.timestamp) + shift


def recall_figures(tx: ReadTransaction, utc_offset_minutes: int) -> dict[str, Any]:
    """Return `most_recalled` and `longest` sessions, messages by `hours` at a UTC offset, and `tokens`.

    Delivered tokens are estimated as a model counts them, kept ones are words: compare only their orders of magnitude.
    """
    counted = func.coalesce(func.sum(channel.c.token_count), 0), func.coalesce(func.sum(channel.c.tokens_delivered), 0)
    kept, delivered = tx.execute(select(*counted).where(channel.c.deleted.is_(False))).one()
    hours = Counter[int]()
    for (_, hour), count in messages_by_hour(tx, None, utc_offset_minutes).items():
        hours[hour] += count
    return {
        "most_recalled": top_sessions(tx, channel.c.access_count),
        "longest": top_sessions(tx, channel.c.message_count),
        "hours": [{"hour": hour, "messages": hours[hour]} for hour in range(24)],
        "tokens": {"kept": int(kept), "delivered": int(delivered)},
    }


def top_sessions(
    tx: ReadTransaction, by: ColumnElement[int], since: datetime | None = None, limit: int = 10
) -> list[dict[str, Any]]:
    """Return the sessions with the largest values of a column, of those with activity since an instant."""
    conditions = [by > 0, channel.c.deleted.is_(False), *([channel.c.updated_at >= since] if since else [])]
    query = select(channel).where(*conditions).order_by(by.desc(), channel.c.number).limit(limit)
    return [
        {
            "channel": row.name,
            "source": row.source,
            "title": row.title or row.first_message_preview or row.name,
            "project": row.project_name or NO_PROJECT,
            "messages": row.message_count,
            "recalled": row.access_count,
            "last_accessed": format_time(row.last_accessed) if row.last_accessed else None,
        }
        for row in tx.execute(query)
    ]
