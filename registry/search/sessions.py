"""What a session search reads beside the index: the messages around a match, and sessions by their last activity."""

from __future__ import annotations

from collections.abc import Sequence
from operator import eq
from typing import Any

from sqlalchemy import ColumnElement, Row, func, or_, select

from registry.search.scope import Scope, channel_conditions, message_conditions
from registry.storage.conditions import given_conditions
from registry.storage.database import ReadTransaction
from registry.storage.tables import channel, conversation

_SHOWN = (
    conversation.c.number,
    conversation.c.id,
    conversation.c.seq,
    conversation.c.role,
    conversation.c.text,
    conversation.c.timestamp,
)


def surroundings(tx: ReadTransaction, channel_number: int, places: Sequence[int], window: int) -> list[Row[Any]]:
    """The messages at these places (seq) of a channel and up to `window` before and after each, in order of place."""
    around = or_(*(conversation.c.seq.between(place - window, place + window) for place in places))
    query = select(*_SHOWN).where(
        conversation.c.channel_number == channel_number, around, conversation.c.deleted.is_(False)
    )
    return sorted(tx.execute(query), key=lambda row: row.seq)


def latest_sessions(tx: ReadTransaction, scope: Scope, limit: int, offset: int) -> tuple[list[tuple[int, int]], int]:
    """Channels in scope with how many of their messages are, the latest first; and how many channels there are."""
    of_channel = given_conditions((eq, channel.c.deleted, False), (eq, channel.c.number, scope.channel_number))
    of_channel += channel_conditions(scope)
    if scope.exclude_channel is not None:
        of_channel.append(channel.c.name != scope.exclude_channel)
    of_message = message_conditions(scope)
    if not of_message:
        return _by_activity(tx, of_channel, limit, offset)
    inside = (
        select(
            conversation.c.channel_number, func.count().label("count"), func.max(conversation.c.timestamp).label("at")
        )
        .join_from(conversation, channel, channel.c.number == conversation.c.channel_number)
        .where(conversation.c.deleted.is_(False), *of_message, *of_channel)
        .group_by(conversation.c.channel_number)
    ).subquery()
    total = tx.execute(select(func.count()).select_from(inside)).scalar_one()
    page = select(inside.c.channel_number, inside.c.count).order_by(inside.c.at.desc(), inside.c.channel_number.desc())
    return [(row[0], row[1]) for row in tx.execute(page.limit(limit).offset(offset))], total


def _by_activity(
    tx: ReadTransaction, conditions: Sequence[ColumnElement[bool]], limit: int, offset: int
) -> tuple[list[tuple[int, int]], int]:
    total = tx.execute(select(func.count()).select_from(channel).where(*conditions)).scalar_one()
    page = select(channel.c.number, channel.c.message_count).where(*conditions)
    page = page.order_by(channel.c.updated_at.desc(), channel.c.number.desc()).limit(limit).offset(offset)
    return [(row[0], row[1]) for row in tx.execute(page)], total
