"""Store to whom a channel belongs, and to which project. `safety.visibility` decides who sees it for that reason."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import or_, select, update

from registry.project import Project
from registry.storage.conditions import is_one_of
from registry.storage.conversations.channels import MOVED, ChannelRow, change_channel
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.tables import channel


def set_sharing(tx: WriteTransaction, number: int, shared_with: str | None, until: datetime | None) -> None:
    """Share a channel with a group until a moment, or for good; None: with nobody any more."""
    values = {"shared_with": shared_with, "shared_until": until if shared_with else None}
    tx.execute(update(channel).where(channel.c.number == number).values(**values))


def owned_by_others(tx: ReadTransaction, names: Collection[str], owner: str) -> list[str]:
    """Return those of the channels that belong to another person."""
    query = select(channel.c.name).where(channel.c.owner != owner, is_one_of(channel.c.name, names))
    return list(tx.execute(query.order_by(channel.c.name)).scalars())


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
    changes = {"project_path": project.path, "project_name": project.name, "meta": {**row.meta, MOVED: moved}}
    change_channel(tx, row, changes)
