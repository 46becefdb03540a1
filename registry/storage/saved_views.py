"""Saved views: the filters of a list under a name, to come back to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import delete, insert, select, update

from registry.domain import new_id, now, storable
from registry.errors import NotFound
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.tables import saved_view


class SavedView(NamedTuple):
    """`address`: the page's path and query, such as `/?tag=api`."""

    id: str
    name: str
    address: str


def save_view(tx: WriteTransaction, name: str, address: str) -> None:
    """Keep a view; one of the same name is replaced."""
    name, address = storable(name), storable(address)
    if not tx.execute(update(saved_view).where(saved_view.c.name == name).values(address=address)).rowcount:
        tx.execute(insert(saved_view).values(id=new_id("view"), name=name, address=address, created_at=now()))


def list_views(tx: ReadTransaction) -> Sequence[SavedView]:
    """All views in the order in which they were first saved."""
    query = select(saved_view.c.id, saved_view.c.name, saved_view.c.address).order_by(saved_view.c.number)
    return [SavedView(*row) for row in tx.execute(query)]


def drop_view(tx: WriteTransaction, view_id: str) -> None:
    """Forget a view; NotFound if there is none."""
    if not tx.execute(delete(saved_view).where(saved_view.c.id == view_id)).rowcount:
        raise NotFound("No such view", f"No view {view_id!r} in the registry")
