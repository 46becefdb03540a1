"""Read the latest sessions in scope, and the messages around the matches of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import eq
from typing import Any

from sqlalchemy import ColumnElement, Row, func, select

from registry.search.scope import Scope, channel_conditions, message_conditions
from registry.storage.conditions import given, given_conditions, is_pair_of
from registry.storage.database import ReadTransaction
from registry.storage.tables import channel, conversation

_SHOWN = (
    conversation.c.number,
    conversation.c.channel_number,
    conversation.c.id,
    conversation.c.seq,
    conversation.c.turn,
    conversation.c.role,
    conversation.c.text,
    conversation.c.timestamp,
    conversation.c.payload["time"].as_string().label("time"),
)


def surroundings(tx: ReadTransaction, places: Mapping[int, Sequence[int]], window: int) -> dict[int, list[Row[Any]]]:
    """Return, by channel, the messages at these positions (seq) and `window` around the first of them, in order."""
    rows: dict[int, list[Any]] = {number: [] for number in places}
    around = [range(max(some[0] - window, 0), some[0] + window + 1) for some in places.values()]
    wanted = zip(places.items(), around, strict=True)
    pairs = {(number, seq) for (number, some), near in wanted for seq in (*some, *near)}
    for row in tx.execute(_STANDING, given(sorted(pairs))) if pairs else ():
        rows[row.channel_number].append(row)
    return {number: sorted(of_channel, key=lambda row: row.seq) for number, of_channel in rows.items()}


_STANDING = select(*_SHOWN).where(
    is_pair_of(conversation.c.channel_number, conversation.c.seq), conversation.c.deleted.is_(False)
)


def latest_sessions(tx: ReadTransaction, scope: Scope, limit: int, offset: int) -> tuple[list[tuple[int, int]], int]:
    """Return a page of the channels in scope, the latest first, with their message counts in scope; and the total."""
    of_channel = given_conditions((eq, channel.c.deleted, False), (eq, channel.c.number, scope.channel_number))
    of_channel += channel_conditions(scope)
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
