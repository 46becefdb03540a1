"""Store the owner, sharing, project and pin of channels, and saved views (filters with a name).

`safety.visibility` derives from owner and sharing who sees a channel.
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
    """Share a channel with a group, until a time or without end; None: stop sharing."""
    values = {"shared_with": shared_with, "shared_until": until if shared_with else None}
    tx.execute(update(channel).where(channel.c.number == number).values(**values))


def owned_by_others(tx: ReadTransaction, names: Collection[str], owner: str) -> list[str]:
    """Return the names of the channels that another person owns."""
    query = select(channel.c.name).where(channel.c.owner != owner, is_one_of(channel.c.name, names))
    return list(tx.execute(query.order_by(channel.c.name)).scalars())


def channels_of_owner(tx: ReadTransaction, owner: str) -> list[ChannelRow]:
    """Return the channels of one person, without deleted ones."""
    query = select(channel).where(channel.c.owner == owner, channel.c.deleted.is_(False))
    return list(tx.execute(query.order_by(channel.c.number)))


def channels_of_project(tx: ReadTransaction, path: str) -> list[ChannelRow]:
    """Return the channels of a folder and its subfolders, with deleted ones, because they can be restored."""
    inside = [channel.c.project_path.startswith(path + end, autoescape=True) for end in ("/", "\\")]
    query = select(channel).where(or_(channel.c.project_path == path, *inside))
    return list(tx.execute(query.order_by(channel.c.number)))


def move_channel(tx: WriteTransaction, row: ChannelRow, path: str) -> None:
    """Move a channel to another folder, and record the move, because its client may send the old folder again."""
    project = Project.from_path(path)
    moved_from = {**row.meta.get(MOVED, {}), **({row.project_path: project.path} if row.project_path else {})}
    client_project = row.meta.get("project")
    if isinstance(client_project, str):
        moved_from[client_project] = project.path
    moved = {old: project.path for old in moved_from if old != project.path}
    change_channel(tx, row, {**project_columns(project), "meta": {**row.meta, MOVED: moved}})


_RECHECK_AGE = timedelta(days=1)
"""Repositories of folders with chats this recent are read again: the first commit or remote is often added later."""


def unknown_repositories(tx: ReadTransaction) -> dict[str, str]:
    """Return the ids of repositories on this machine that some channels of their folder lack, by folder."""
    is_due = or_(channel.c.repository.is_(None), channel.c.updated_at >= now() - _RECHECK_AGE)
    query = select(channel.c.project_path, channel.c.repository).where(channel.c.project_path.is_not(None), is_due)
    current_ids = {(path, known): repository_id(path) for path, known in tx.execute(query.distinct())}
    return {path: current for (path, known), current in current_ids.items() if current and current != known}


def save_repositories(tx: WriteTransaction, found: Mapping[str, str]) -> None:
    for path, current in found.items():
        tx.execute(update(channel).where(channel.c.project_path == path).values(repository=current))


def set_pin(tx: WriteTransaction, channel_number: int, *, is_pinned: bool) -> None:
    if not is_pinned:
        tx.execute(delete(pin).where(pin.c.channel_number == channel_number))
    else:
        insert_new(tx, pin, [{"channel_number": channel_number, "pinned_at": now()}])


def has_pin(tx: ReadTransaction, channel_number: int) -> bool:
    return tx.execute(select(pin.c.pinned_at).where(pin.c.channel_number == channel_number)).first() is not None


def pinned_channels(tx: ReadTransaction, limit: int) -> list[dict[str, Any]]:
    """Return the pinned channels as list items, latest pin first, without deleted channels."""
    latest_first = select(pin.c.channel_number).order_by(pin.c.pinned_at.desc(), pin.c.channel_number)
    pinned = list(tx.execute(latest_first).scalars())
    conditions = channel.c.number.in_(pinned), channel.c.deleted.is_(False)
    found = {row.number: row for row in tx.execute(select(channel).where(*conditions))} if pinned else {}
    return items_of(tx, [found[number] for number in pinned if number in found][:limit])


def save_view(tx: WriteTransaction, name: str, address: str) -> None:
    """Save a page's path and query, such as `/?tag=api`, under a name; replaces a view with that name."""
    view = {"id": new_id("view"), "created_at": now(), **storable({"name": name, "address": address})}
    upsert(tx, saved_view, ["name"], [view], unchanged=("id", "created_at"))


def list_views(tx: ReadTransaction) -> list[dict[str, str]]:
    query = select(saved_view.c.id, saved_view.c.name, saved_view.c.address).order_by(saved_view.c.number)
    return [row._asdict() for row in tx.execute(query)]


def drop_view(tx: WriteTransaction, view_id: str) -> None:
    if not tx.execute(delete(saved_view).where(saved_view.c.id == view_id)).rowcount:
        raise NotFound("No such view", f"No view {view_id!r} in the registry")
