"""What comes of what is kept: the sessions most recalled, the longest ones, the busy hours, tokens given back."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Integer, cast, func, select

from registry.domain import format_time
from registry.storage.database import ReadTransaction
from registry.storage.tables import channel, conversation


def recall_figures(tx: ReadTransaction, utc_offset_minutes: int) -> dict[str, Any]:
    """`most_recalled` and `longest` sessions, messages by `hours` of a clock so far from UTC, `tokens` of sessions.

    Tokens delivered are an estimate of a model's, those kept are words: of both, more than a few say something.
    """
    counted = func.coalesce(func.sum(channel.c.token_count), 0), func.coalesce(func.sum(channel.c.tokens_delivered), 0)
    kept, delivered = tx.execute(select(*counted).where(channel.c.deleted.is_(False))).one()
    return {
        "most_recalled": _sessions(tx, channel.c.access_count, channel.c.access_count > 0),
        "longest": _sessions(tx, channel.c.message_count, channel.c.message_count > 0),
        "hours": _hours(tx, utc_offset_minutes),
        "tokens": {"kept": int(kept), "delivered": int(delivered)},
    }


def _sessions(tx: ReadTransaction, by: ColumnElement[int], condition: ColumnElement[bool]) -> list[dict[str, Any]]:
    query = select(channel).where(condition, channel.c.deleted.is_(False)).order_by(by.desc(), channel.c.number)
    return [
        {
            "channel": row.name,
            "title": row.title or row.first_message_preview or row.name,
            "project": row.project_name or "General",
            "messages": row.message_count,
            "recalled": row.access_count,
            "last_accessed": format_time(row.last_accessed) if row.last_accessed else None,
        }
        for row in tx.execute(query.limit(10))
    ]


def _hours(tx: ReadTransaction, utc_offset_minutes: int) -> list[dict[str, int]]:
    at = conversation.c.timestamp
    hour: ColumnElement[Any]
    minute: ColumnElement[Any]
    if tx.dialect.name == "postgresql":
        in_utc = func.timezone("UTC", at)
        hour, minute = func.extract("hour", in_utc), func.extract("minute", in_utc)
    else:
        hour, minute = func.strftime("%H", at), func.strftime("%M", at)
    quarter = cast(hour, Integer) * 4 + cast(minute, Integer) // 15
    found = [0] * 24
    query = select(quarter, func.count()).where(conversation.c.deleted.is_(False)).group_by(quarter)
    for place, count in tx.execute(query):
        found[(place * 15 + utc_offset_minutes) // 60 % 24] += count
    return [{"hour": of_day, "messages": count} for of_day, count in enumerate(found)]
