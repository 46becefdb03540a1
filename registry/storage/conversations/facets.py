"""List and count the sources, projects and tags of channels, for filters, completion and totals."""

import time
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import ColumnElement, Engine, func, select

from registry.project import NO_PROJECT
from registry.storage.database import ReadTransaction
from registry.storage.tables import channel, tag
from registry.text.request.understanding import KnownNames

MIN_CACHED_CHANNELS = 5_000  # number of channels: up to this, each read takes 3 ms at most
P = ParamSpec("P")
T = TypeVar("T")
Read = Callable[Concatenate[ReadTransaction, P], T]


def cache_briefly(read: Read[P, T]) -> Read[P, T]:
    """Cache the result for 100 times the read's duration, if there are many channels: reads take 1 % of the time.

    A restricted view has its own engine, which lives as long as its request.
    """
    caches: WeakKeyDictionary[Engine, dict[str, tuple[float, T]]] = WeakKeyDictionary()

    @wraps(read)
    def cached_read(tx: ReadTransaction, /, *args: P.args, **given: P.kwargs) -> T:
        started, cached = time.monotonic(), caches.setdefault(tx.engine, {})
        until, value = cached.get(key := repr((args, given)), (started, None))
        if value is not None and started < until:
            return value
        value = read(tx, *args, **given)
        if (tx.execute(select(func.max(channel.c.number))).scalar() or 0) > MIN_CACHED_CHANNELS:
            ended = time.monotonic()
            caches[tx.engine] = {old: one for old, one in cached.items() if one[0] > ended}
            caches[tx.engine][key] = ended + 100 * (ended - started), value
        return value

    return cached_read


@cache_briefly
def known_names(tx: ReadTransaction) -> KnownNames:
    columns = channel.c.source, channel.c.project_name, channel.c.project_path
    rows = tx.execute(select(*columns).where(channel.c.deleted.is_(False)).distinct()).all()
    projects = frozenset((row.project_name, row.project_path) for row in rows if row.project_path)
    return KnownNames(frozenset(row.source for row in rows), projects)


@cache_briefly
def projects_by_activity(tx: ReadTransaction, limit: int, source: str | None = None) -> list[tuple[str, str, int]]:
    """Return the projects with the latest activity: name, path and number of channels."""
    path = channel.c.project_path
    there = [path.is_not(None), channel.c.deleted.is_(False), *([channel.c.source == source] if source else [])]
    query = select(func.max(channel.c.project_name), path, func.count()).where(*there).group_by(path)
    return [tuple(row) for row in tx.execute(query.order_by(func.max(channel.c.updated_at).desc()).limit(limit))]


@cache_briefly
def repositories_by_activity(tx: ReadTransaction, limit: int) -> list[tuple[str, str, int]]:
    """Return name, path and number of channels of projects, latest first; clones of a repository count as one."""
    path, repository = channel.c.project_path, func.max(channel.c.repository)
    there = path.is_not(None), channel.c.deleted.is_(False)
    query = select(func.max(channel.c.project_name), path, repository, func.count()).where(*there).group_by(path)
    found: dict[str, tuple[str, str, int]] = {}
    for name, folder, known, count in tx.execute(query.order_by(func.max(channel.c.updated_at).desc())):
        latest_name, latest_folder, before = found.get(known or folder, (name, folder, 0))
        found[known or folder] = (latest_name, latest_folder, before + count)
    return list(found.values())[:limit]


def registry_totals(tx: ReadTransaction) -> dict[str, Any]:
    """Count channels and messages that are not deleted."""
    sources = _grouped(tx, channel.c.source, "source")
    return {
        "channels": sum(row["channels"] for row in sources),
        "messages": sum(row["messages"] for row in sources),
        "sources": sources,
        "projects": _grouped(tx, func.coalesce(channel.c.project_name, NO_PROJECT), "project"),
    }


def _grouped(tx: ReadTransaction, column: ColumnElement[str], name: str) -> list[dict[str, Any]]:
    messages = func.coalesce(func.sum(channel.c.message_count), 0)
    query = select(column, func.count(), messages).where(channel.c.deleted.is_(False)).group_by(column)
    rows = tx.execute(query.order_by(messages.desc(), column))
    return [{name: group, "channels": count, "messages": int(total)} for group, count, total in rows]


_COLUMNS: dict[str, tuple[ColumnElement[str], ...]] = {
    "session": (channel.c.nickname, channel.c.session_id, channel.c.name),
    "channel": (channel.c.name,),
    "tag": (tag.c.name,),
    "project": (channel.c.project_name, channel.c.project_path),
    "source": (channel.c.source,),
}
"""The columns with the names of each kind, the most used first."""


def names_like(tx: ReadTransaction, kind: str, text: str, limit: int) -> list[str]:
    """Return names of a kind with this prefix, case-insensitively, those of the latest sessions first."""
    found: dict[str, None] = {}
    for column in _COLUMNS[kind]:
        query = select(column).where(column.istartswith(text, autoescape=True), channel.c.deleted.is_(False))
        if kind == "tag":
            query = query.join(channel, channel.c.number == tag.c.channel_number)
        latest = query.group_by(column).order_by(func.max(channel.c.updated_at).desc(), column).limit(limit)
        found.update(dict.fromkeys(tx.execute(latest).scalars()))
    return list(found)[:limit]
