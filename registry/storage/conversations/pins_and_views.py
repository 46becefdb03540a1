"""Store pinned conversations, and saved views: the filters of a list under a name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import delete, select

from registry.domain import new_id, now, storable
from registry.errors import NotFound
from registry.storage.conversations.channels import channel_item, tags_of
from registry.storage.database import ReadTransaction, WriteTransaction, insert_into
from registry.storage.tables import channel, pin, saved_view


def set_pin(tx: WriteTransaction, channel_number: int, *, is_pinned: bool) -> None:
    """Pin a channel, or take its pin away; doing it twice is doing it once."""
    if not is_pinned:
        tx.execute(delete(pin).where(pin.c.channel_number == channel_number))
    else:
        new = insert_into(tx.dialect.name, pin).values(channel_number=channel_number, pinned_at=now())
        tx.execute(new.on_conflict_do_nothing())


def has_pin(tx: ReadTransaction, channel_number: int) -> bool:
    return tx.execute(select(pin.c.pinned_at).where(pin.c.channel_number == channel_number)).first() is not None


def pinned_channels(tx: ReadTransaction, limit: int) -> list[dict[str, Any]]:
    """Return the pinned channels as lists show them, those pinned last first; deleted ones are left out."""
    latest_first = select(pin.c.channel_number).order_by(pin.c.pinned_at.desc(), pin.c.channel_number)
    pinned = list(tx.execute(latest_first).scalars())
    there = channel.c.number.in_(pinned), channel.c.deleted.is_(False)
    found = {row.number: row for row in tx.execute(select(channel).where(*there))} if pinned else {}
    rows = [found[number] for number in pinned if number in found][:limit]
    tags = tags_of(tx, [row.number for row in rows])
    return [channel_item(row, tags[row.number]) for row in rows]


class SavedView(NamedTuple):
    """`address`: the page's path and query, such as `/?tag=api`."""

    id: str
    name: str
    address: str


def save_view(tx: WriteTransaction, name: str, address: str) -> None:
    """Keep a view; one of the same name is replaced."""
    values = storable({"name": name, "address": address})
    new = insert_into(tx.dialect.name, saved_view).values(id=new_id("view"), created_at=now(), **values)
    tx.execute(new.on_conflict_do_update(index_elements=["name"], set_=values))


def list_views(tx: ReadTransaction) -> Sequence[SavedView]:
    query = select(saved_view.c.id, saved_view.c.name, saved_view.c.address).order_by(saved_view.c.number)
    return [SavedView(*row) for row in tx.execute(query)]


def drop_view(tx: WriteTransaction, view_id: str) -> None:
    if not tx.execute(delete(saved_view).where(saved_view.c.id == view_id)).rowcount:
        raise NotFound("No such view", f"No view {view_id!r} in the registry")
