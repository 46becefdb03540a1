"""What channels can be narrowed down by: the sources, projects and tags there are."""

from __future__ import annotations

from sqlalchemy import Select, func, select

from registry.storage.database import ReadTransaction
from registry.storage.tables import channel, tag


def sources(tx: ReadTransaction) -> list[str]:
    """The sources of all channels, in alphabetical order."""
    query = select(channel.c.source).where(channel.c.deleted.is_(False)).distinct()
    return sorted(tx.execute(query).scalars())


def projects_like(tx: ReadTransaction, words: str, limit: int) -> list[str]:
    """Names of projects that contain the words, those with most channels first."""
    name = channel.c.project_name
    query = select(name).where(name.icontains(words, autoescape=True), channel.c.deleted.is_(False)).group_by(name)
    return _most_used(tx, query, limit)


def tags_like(tx: ReadTransaction, words: str, limit: int) -> list[str]:
    """Tags that contain the words, those of most channels first."""
    return _most_used(
        tx, select(tag.c.name).where(tag.c.name.icontains(words, autoescape=True)).group_by(tag.c.name), limit
    )


def latest_projects(tx: ReadTransaction, source: str, limit: int) -> list[str]:
    """Folders of a source's channels, those with the latest activity first."""
    path = channel.c.project_path
    query = select(path).where(channel.c.source == source, path.is_not(None), channel.c.deleted.is_(False))
    query = query.group_by(path).order_by(func.max(channel.c.updated_at).desc()).limit(limit)
    return list(tx.execute(query).scalars())


def _most_used(tx: ReadTransaction, grouped: Select[str], limit: int) -> list[str]:
    return list(tx.execute(grouped.order_by(func.count().desc()).limit(limit)).scalars())
