"""What a session search reads beside the index: the messages around a match, and sessions by their last activity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from operator import eq
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, func, select

from registry.search.scope import Scope, channel_conditions, channels_in, message_conditions
from registry.storage.conditions import given_conditions, given_pairs, is_pair_of
from registry.storage.database import ReadTransaction
from registry.storage.paging import Page, Paged, read_page
from registry.storage.tables import channel, conversation
from registry.text.ranking.scores import SEQ_BITS

_SHOWN = (
    conversation.c.number,
    conversation.c.channel_number,
    conversation.c.id,
    conversation.c.seq,
    conversation.c.role,
    conversation.c.text,
    conversation.c.timestamp,
    conversation.c.payload["time"].as_string().label("time"),
)


def surroundings(tx: ReadTransaction, places: Mapping[int, Sequence[int]], window: int) -> dict[int, list[Row[Any]]]:
    """By channel, the messages at these places (seq), and up to `window` before and after the first of them, in order
    of place."""
    rows: dict[int, list[Any]] = {number: [] for number in places}
    around = [range(max(some[0] - window, 0), some[0] + window + 1) for some in places.values()]
    wanted = zip(places.items(), around, strict=True)
    pairs = {number << SEQ_BITS | seq for (number, some), near in wanted for seq in (*some, *near)}
    for row in tx.execute(_standing(tx.dialect.name), given_pairs(tx, sorted(pairs), SEQ_BITS)) if pairs else ():
        rows[row.channel_number].append(row)
    return {number: sorted(of_channel, key=lambda row: row.seq) for number, of_channel in rows.items()}


@cache
def _standing(dialect: str) -> Select[Any]:
    here = is_pair_of(dialect, conversation.c.channel_number, conversation.c.seq, SEQ_BITS)
    return select(*_SHOWN).where(here, conversation.c.deleted.is_(False))


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


def messages_in(tx: ReadTransaction, scope: Scope, page: Page) -> Paged:
    """A page of the messages in scope by time, of those that are searched at all."""
    conditions = [*message_conditions(scope), conversation.c.deleted.is_(False), conversation.c.length > 0]
    if scope.channel_number is not None:
        conditions.append(conversation.c.channel_number == scope.channel_number)
    elif channel_conditions(scope):
        conditions.append(conversation.c.channel_number.in_(channels_in(scope)))
    return read_page(tx, conversation, conversation.c.timestamp, conditions, page)


def nearest_times(tx: ReadTransaction, scope: Scope) -> list[datetime]:
    """When something was said in the same place just before and just after the time of a scope."""
    anywhen = replace(scope, from_=None, to=None)
    inside = [*message_conditions(anywhen), conversation.c.deleted.is_(False)]
    if scope.channel_number is not None:
        inside.append(conversation.c.channel_number == scope.channel_number)
    if channel_conditions(anywhen):
        inside.append(conversation.c.channel_number.in_(channels_in(anywhen)))
    at = conversation.c.timestamp
    before = select(func.max(at)).where(*inside, at < scope.from_) if scope.from_ else None
    after = select(func.min(at)).where(*inside, at > scope.to) if scope.to else None
    found = (tx.execute(query).scalar() for query in (before, after) if query is not None)
    return [moment for moment in found if moment is not None]
