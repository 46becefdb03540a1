"""Sentences that a user asked to remember: the messages of one channel for each project, and of one for everywhere.

Those of another person are told to nobody who has not the same owner, an administrator among them.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import or_, select

from registry.domain import format_time
from registry.project import remembered_channels
from registry.storage.database import ReadTransaction
from registry.storage.safety.visibility import own_name, owner_of
from registry.storage.tables import channel, conversation


def remembered(tx: ReadTransaction, project: str | None) -> list[dict[str, Any]]:
    """Return the sentences that hold in a project and everywhere, the oldest first: id, text, project, timestamp."""
    query = (
        select(conversation.c.id, conversation.c.text, channel.c.project_path, conversation.c.timestamp)
        .join(channel, channel.c.number == conversation.c.channel_number)
        .where(
            channel.c.name.in_([name for one in remembered_channels(project) for name in (one, own_name(tx, one))]),
            or_(channel.c.owner.is_(None), channel.c.owner == owner_of(tx)),
            conversation.c.deleted.is_(False),
            channel.c.deleted.is_(False),
        )
        .order_by(conversation.c.timestamp, conversation.c.number)
    )
    return [
        {"id": row.id, "text": row.text, "project": row.project_path, "timestamp": format_time(row.timestamp)}
        for row in tx.execute(query)
    ]
