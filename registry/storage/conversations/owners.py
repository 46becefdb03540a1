"""Store whom a channel is shared with. Who sees it for that reason is decided in `safety.visibility`."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import Row, select, update

from registry.domain import format_time, now
from registry.storage.conditions import is_one_of
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.tables import channel


def set_sharing(tx: WriteTransaction, number: int, shared_with: str | None, until: datetime | None) -> None:
    """Share a channel with a group until a moment, or for good; None: with nobody any more."""
    values = {"shared_with": shared_with, "shared_until": until if shared_with else None}
    tx.execute(update(channel).where(channel.c.number == number).values(**values))


def owned_by_others(tx: ReadTransaction, names: Collection[str], owner: str) -> list[str]:
    """Return those of the channels that belong to another person."""
    query = select(channel.c.name).where(channel.c.owner != owner, is_one_of(tx, channel.c.name, names))
    return list(tx.execute(query.order_by(channel.c.name)).scalars())


def sharing_of(row: Row[Any]) -> dict[str, Any]:
    """Return a channel's owner and whom it is shared with now; nothing for one without both."""
    is_over = row.shared_until is not None and row.shared_until <= now()
    shared = {
        "owner": row.owner,
        "shared_with": None if is_over else row.shared_with,
        "shared_until": format_time(row.shared_until) if row.shared_until and not is_over else None,
    }
    return {name: value for name, value in shared.items() if value}
