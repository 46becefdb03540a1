"""Read the latest sessions in scope, and the messages around matches."""

from collections.abc import Callable, Collection, Mapping
from operator import attrgetter, eq, ge, le
from typing import Any

from sqlalchemy import FromClause, Row, ScalarSelect, Tuple, and_, asc, desc, func, or_, select, tuple_

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

    A position is one of arrival: messages of a chat that went on in two clients arrive in another order.
    """
    pairs = sorted((number, seq) for number, seqs in positions.items() for seq in seqs)
    at, first, last = (conversation.alias() for _ in range(3))
    within = _order(conversation).between(_order(first), _order(last))
    query = (
        select(*_COLUMNS)
        .join_from(at, first, first.c.number == _last_neighbour(at, before, le))
        .join(last, last.c.number == _last_neighbour(at, after, ge))
        .join(conversation, and_(conversation.c.channel_number == at.c.channel_number, within))
        .where(is_pair_of(at.c.channel_number, at.c.seq, pairs), conversation.c.deleted.is_(False))
    )
    rows: dict[int, dict[int, Row[Any]]] = {number: {} for number in positions}
    for row in tx.execute(query) if pairs else ():
        rows[row.channel_number][row.number] = row
    return {number: sorted(some.values(), key=attrgetter("timestamp", "number")) for number, some in rows.items()}


def _order(table: FromClause) -> Tuple:
    return tuple_(table.c.timestamp, table.c.number)


def _last_neighbour(at: FromClause, count: int, is_on_side: Callable[[Any, Any], Any]) -> ScalarSelect[int]:
    """Return the number of the message that is `count` messages away, or of the last one on that side (le or ge)."""
    near = conversation.alias()
    order, back = (desc, asc) if is_on_side is le else (asc, desc)
    some = (
        select(near.c.timestamp, near.c.number)
        .where(near.c.channel_number == at.c.channel_number, is_on_side(_order(near), _order(at)))
        .where(or_(near.c.deleted.is_(False), near.c.number == at.c.number))
        .order_by(order(near.c.timestamp), order(near.c.number))
        .limit(count + 1)
        .correlate(at)
        .subquery()
    )
    return select(some.c.number).order_by(back(some.c.timestamp), back(some.c.number)).limit(1).scalar_subquery()


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
