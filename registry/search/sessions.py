"""Read the latest sessions in scope, and the messages around matches."""

from collections.abc import Collection, Mapping
from operator import attrgetter, eq
from typing import Any

from sqlalchemy import Row, func, select

from registry.search.scope import Scope, channel_conditions, message_conditions
from registry.storage.conditions import given_conditions, is_pair_of
from registry.storage.database import ReadTransaction
from registry.storage.tables import channel, conversation

_COLUMNS = (
    *conversation.c["number", "channel_number", "id", "seq", "turn", "role", "text", "timestamp"],
    conversation.c.payload["time"].as_string().label("time"),
    conversation.c.payload["superseded"].as_boolean().label("superseded"),
)


def read_messages_around(
    tx: ReadTransaction, positions: Mapping[int, Collection[int]], before: int = 0, after: int = 0
) -> dict[int, list[Row[Any]]]:
    """Return the messages at these positions (seq) of each channel, and some before and after each, in order of time.

    Positions are of arrival: in a chat that went on in two clients, some neighbours in time may be missing.
    """
    pairs = {
        (number, near)
        for number, seqs in positions.items()
        for seq in seqs
        for near in range(max(seq - before, 0), seq + after + 1)
    }
    these = is_pair_of(conversation.c.channel_number, conversation.c.seq, sorted(pairs))
    query = select(*_COLUMNS).where(these, conversation.c.deleted.is_(False))
    rows: dict[int, list[Row[Any]]] = {number: [] for number in positions}
    for row in tx.execute(query) if pairs else ():
        rows[row.channel_number].append(row)
    return {number: sorted(some, key=attrgetter("timestamp", "number")) for number, some in rows.items()}


def list_latest_sessions(
    tx: ReadTransaction, scope: Scope, limit: int, offset: int, *, newest_first: bool = True
) -> tuple[list[tuple[int, int]], int]:
    """Return a page of (channel, its messages in scope), by time, and the total number of channels in scope."""
    of_channel = given_conditions((eq, channel.c.deleted, False), (eq, channel.c.number, scope.channel_number))
    of_channel += channel_conditions(scope)
    of_message = message_conditions(scope)
    found = select(channel.c.number, channel.c.message_count.label("count"), channel.c.updated_at.label("at"))
    if of_message:
        last = func.max(conversation.c.timestamp).label("at")
        found = select(conversation.c.channel_number.label("number"), func.count().label("count"), last)
        found = found.join_from(conversation, channel, channel.c.number == conversation.c.channel_number)
        found = found.where(conversation.c.deleted.is_(False), *of_message).group_by(conversation.c.channel_number)
    inside = found.where(*of_channel).subquery()
    total = tx.execute(select(func.count()).select_from(inside)).scalar_one()
    by = [column.desc() if newest_first else column.asc() for column in (inside.c.at, inside.c.number)]
    page = select(inside.c.number, inside.c["count"]).order_by(*by).limit(limit).offset(offset)
    return [(number, count) for number, count in tx.execute(page)], total
