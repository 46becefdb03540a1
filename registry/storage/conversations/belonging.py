"""Store to whom a channel belongs and to which project, and what is pinned; saved views: filters under a name.

`safety.visibility` decides who sees a channel for that reason.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, or_, select, update

from registry.domain import new_id, now, storable
from registry.errors import NotFound
from registry.project import Project, repository_id
from registry.storage.conditions import is_one_of
from registry.storage.conversations.channels import MOVED, ChannelRow, change_channel, items_of, project_columns
from registry.storage.database import ReadTransaction, WriteTransaction, insert_new, upsert
from registry.storage.tables import channel, pin, saved_view


def set_sharing(tx: WriteTransaction, number: int, shared_with: str | None, until: datetime | None) -> None:
    """Share a channel with a group until a moment, or for good; None: with nobody any more."""
    values = {"shared_with": shared_with, "shared_until": until if shared_with else None}
    tx.execute(update(channel).where(channel.c.number == number).values(**values))


def owned_by_others(tx: ReadTransaction, names: Collection[str], owner: str) -> list[str]:
    """Return those of the channels that belong to another person."""
    query = select(channel.c.name).where(channel.c.owner != owner, is_one_of(channel.c.name, names))
    return list(tx.execute(query.order_by(channel.c.name)).scalars())


def channels_of_owner(tx: ReadTransaction, owner: str) -> list[ChannelRow]:
    """Return the channels of one person, without deleted ones."""
    query = select(channel).where(channel.c.owner == owner, channel.c.deleted.is_(False))
    return list(tx.execute(query.order_by(channel.c.number)))


def channels_of_project(tx: ReadTransaction, path: str) -> list[ChannelRow]:
    """Return the channels of a folder and of the folders in it, deleted ones too: they may come back."""
    inside = [channel.c.project_path.startswith(path + end, autoescape=True) for end in ("/", "\\")]
    query = select(channel).where(or_(channel.c.project_path == path, *inside))
    return list(tx.execute(query.order_by(channel.c.number)))


def move_channel(tx: WriteTransaction, row: ChannelRow, path: str) -> None:
    """Assign a channel to another folder, also when its client names the old one again."""
    project = Project.from_path(path)
    before = {**row.meta.get(MOVED, {}), **({row.project_path: project.path} if row.project_path else {})}
    said = row.meta.get("project")
    if isinstance(said, str):
        before[said] = project.path
    moved = {old: project.path for old in before if old != project.path}
    change_channel(tx, row, {**project_columns(project), "meta": {**row.meta, MOVED: moved}})


_LATELY = timedelta(days=1)
"""A repository is looked up again while its folder had chats lately: its first commit or remote often follows them."""


def unknown_repositories(tx: ReadTransaction) -> dict[str, str]:
    """Return the repositories, by folder, that are here and not stored with all channels of that folder."""
    is_due = or_(channel.c.repository.is_(None), channel.c.updated_at >= now() - _LATELY)
    query = select(channel.c.project_path, channel.c.repository).where(channel.c.project_path.is_not(None), is_due)
    found = {(path, known): repository_id(path) for path, known in tx.execute(query.distinct())}
    return {path: current for (path, known), current in found.items() if current and current != known}


def save_repositories(tx: WriteTransaction, found: Mapping[str, str]) -> None:
    for path, current in found.items():
        tx.execute(update(channel).where(channel.c.project_path == path).values(repository=current))


def set_pin(tx: WriteTransaction, channel_number: int, *, is_pinned: bool) -> None:
    """Pin a channel, or take its pin away; doing it twice is doing it once."""
    if not is_pinned:
        tx.execute(delete(pin).where(pin.c.channel_number == channel_number))
    else:
        insert_new(tx, pin, [{"channel_number": channel_number, "pinned_at": now()}])


def has_pin(tx: ReadTransaction, channel_number: int) -> bool:
    return tx.execute(select(pin.c.pinned_at).where(pin.c.channel_number == channel_number)).first() is not None


def pinned_channels(tx: ReadTransaction, limit: int) -> list[dict[str, Any]]:
    """Return the pinned channels as lists show them, those pinned last first; deleted ones are left out."""
    latest_first = select(pin.c.channel_number).order_by(pin.c.pinned_at.desc(), pin.c.channel_number)
    pinned = list(tx.execute(latest_first).scalars())
    there = channel.c.number.in_(pinned), channel.c.deleted.is_(False)
    found = {row.number: row for row in tx.execute(select(channel).where(*there))} if pinned else {}
    return items_of(tx, [found[number] for number in pinned if number in found][:limit])


def save_view(tx: WriteTransaction, name: str, address: str) -> None:
    """Keep a page's path and query, such as `/?tag=api`, under a name; the view of that name is replaced."""
    view = {"id": new_id("view"), "created_at": now(), **storable({"name": name, "address": address})}
    upsert(tx, saved_view, ["name"], [view], kept=("id", "created_at"))


def list_views(tx: ReadTransaction) -> list[dict[str, str]]:
    query = select(saved_view.c.id, saved_view.c.name, saved_view.c.address).order_by(saved_view.c.number)
    return [row._asdict() for row in tx.execute(query)]


def drop_view(tx: WriteTransaction, view_id: str) -> None:
    if not tx.execute(delete(saved_view).where(saved_view.c.id == view_id)).rowcount:
        raise NotFound("No such view", f"No view {view_id!r} in the registry")
