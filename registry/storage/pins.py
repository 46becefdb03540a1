"""Pinned conversations: those that stand above the others."""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete, insert, select

from registry.domain import now
from registry.storage.channels import channel_item, tags_of
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.tables import channel, pin


def set_pin(tx: WriteTransaction, channel_number: int, *, is_pinned: bool) -> None:
    """Pin a channel, or take its pin away; doing it twice is doing it once."""
    if not is_pinned:
        tx.execute(delete(pin).where(pin.c.channel_number == channel_number))
    elif not has_pin(tx, channel_number):
        tx.execute(insert(pin).values(channel_number=channel_number, pinned_at=now()))


def has_pin(tx: ReadTransaction, channel_number: int) -> bool:
    """Whether a channel is pinned."""
    return tx.execute(select(pin.c.pinned_at).where(pin.c.channel_number == channel_number)).first() is not None


def pinned_channels(tx: ReadTransaction, limit: int) -> list[dict[str, Any]]:
    """The pinned channels as lists show them, those pinned last first; deleted ones are left out."""
    query = select(channel).join_from(pin, channel, channel.c.number == pin.c.channel_number)
    query = query.where(channel.c.deleted.is_(False)).order_by(pin.c.pinned_at.desc(), channel.c.number).limit(limit)
    rows = tx.execute(query).all()
    tags = tags_of(tx, [row.number for row in rows])
    return [channel_item(row, tags[row.number]) for row in rows]
