"""Figures of `ctxr stats`: sessions most recalled, longest sessions, busy hours, tokens delivered."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, func, select

from registry.domain import format_time
from registry.monitor.activity import messages_by_hour
from registry.storage.database import ReadTransaction
from registry.storage.tables import channel


def recall_figures(tx: ReadTransaction, utc_offset_minutes: int) -> dict[str, Any]:
    """Return `most_recalled` and `longest` sessions, messages by `hours` at a UTC offset, and `tokens`.

    Tokens delivered are estimated as a model counts them, those kept are words: only large differences mean something.
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
    """Return the sessions with most of a count, of those that went on since an instant."""
    there = [by > 0, channel.c.deleted.is_(False), *([channel.c.updated_at >= since] if since else [])]
    query = select(channel).where(*there).order_by(by.desc(), channel.c.number).limit(limit)
    return [
        {
            "channel": row.name,
            "source": row.source,
            "title": row.title or row.first_message_preview or row.name,
            "project": row.project_name or "General",
            "messages": row.message_count,
            "recalled": row.access_count,
            "last_accessed": format_time(row.last_accessed) if row.last_accessed else None,
        }
        for row in tx.execute(query)
    ]
