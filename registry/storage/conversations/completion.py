"""Names that begin like what somebody has typed: of sessions, tags, projects and clients."""

from __future__ import annotations

from sqlalchemy import ColumnElement, func, select

from registry.storage.database import ReadTransaction
from registry.storage.tables import channel, tag

_COLUMNS: dict[str, tuple[ColumnElement[str], ...]] = {
    "session": (channel.c.nickname, channel.c.session_id, channel.c.name),
    "channel": (channel.c.name,),
    "tag": (tag.c.name,),
    "project": (channel.c.project_name, channel.c.project_path),
    "source": (channel.c.source,),
}
"""Where the names of each kind stand, the ones people use first."""


def names_like(tx: ReadTransaction, kind: str, text: str, limit: int) -> list[str]:
    """Names of that kind that begin so, in capitals or not, those of the latest sessions first."""
    found: dict[str, None] = {}
    for column in _COLUMNS[kind]:
        query = select(column).where(column.istartswith(text, autoescape=True), channel.c.deleted.is_(False))
        if kind == "tag":
            query = query.join(channel, channel.c.number == tag.c.channel_number)
        latest = query.group_by(column).order_by(func.max(channel.c.updated_at).desc(), column).limit(limit)
        found.update(dict.fromkeys(tx.execute(latest).scalars()))
    return list(found)[:limit]
