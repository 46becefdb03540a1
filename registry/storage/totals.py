"""What the registry holds, in figures: channels and messages, by source, project and day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from sqlalchemy import ColumnElement, func, select

from registry.storage.database import ReadTransaction
from registry.storage.tables import channel, conversation


def registry_totals(tx: ReadTransaction, days: Sequence[datetime]) -> dict[str, Any]:
    """Counts of what is not deleted. `days`: the beginnings of the days to count, and the end of the last."""
    sources = _grouped(tx, channel.c.source, "source")
    return {
        "channels": sum(row["channels"] for row in sources),
        "messages": sum(row["messages"] for row in sources),
        "sources": sources,
        "projects": _grouped(tx, func.coalesce(channel.c.project_name, "General"), "project"),
        "days": [_day(tx, start, end) for start, end in pairwise(days)],
    }


def _grouped(tx: ReadTransaction, column: ColumnElement[str], name: str) -> list[dict[str, Any]]:
    """Those with most messages first."""
    messages = func.coalesce(func.sum(channel.c.message_count), 0)
    query = select(column, func.count(), messages).where(channel.c.deleted.is_(False)).group_by(column)
    rows = tx.execute(query.order_by(messages.desc(), column))
    return [{name: group, "channels": count, "messages": int(total)} for group, count, total in rows]


def _day(tx: ReadTransaction, start: datetime, end: datetime) -> dict[str, Any]:
    query = select(func.count()).where(
        conversation.c.timestamp >= start, conversation.c.timestamp < end, conversation.c.deleted.is_(False)
    )
    return {"date": start.date().isoformat(), "messages": tx.execute(query).scalar_one()}
