"""Limit the messages of one request, so that it passes a proxy and survives a bad connection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Row, Select, Text, cast, func, select

from registry.storage.conversations.messages import MessageRow
from registry.storage.database import ReadTransaction
from registry.storage.tables import conversation

SIZED: Select[Any] = select(
    conversation.c.number,
    (func.length(conversation.c.text) + func.length(cast(conversation.c.payload, Text))).label("size"),
)
"""The numbers of messages with their sizes, for `portion`."""


def portion(tx: ReadTransaction, sized: Select[Any]) -> tuple[list[MessageRow], bool]:
    """Return the first of these messages that fit into one request, and whether they are all."""
    rows = tx.execute(sized).all()
    numbers = list(_fitting(rows))
    query = select(conversation).where(conversation.c.number.in_(numbers)).order_by(conversation.c.number)
    return list(tx.execute(query).all()), len(numbers) == len(rows)


def _fitting(rows: Sequence[Row[Any]]) -> Iterable[int]:
    left = 500_000  # characters, or one message; compressed less than the 1 MB that proxies take
    for at, row in enumerate(rows):
        left -= row.size
        if at and left < 0:
            return
        yield row.number
