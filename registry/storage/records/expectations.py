"""Questions with the message that should have been found: they go when the message goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import delete, insert, select

from registry.domain import new_id, now, preview_of, storable
from registry.errors import NotFound
from registry.storage.conversations.messages import get_message
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.tables import conversation, expectation


@dataclass(frozen=True, slots=True)
class Expectation:
    """A request `{operation, channel, query}`, and what it should find: a message and its conversation."""

    id: str
    request: Mapping[str, Any]
    message_id: str
    channel: str
    preview: str
    created_at: datetime


def keep_expectation(tx: WriteTransaction, request: Mapping[str, Any], message_id: str) -> str:
    """Keep a case; its id. The same case twice is one. NotFound if there is no such message."""
    message = get_message(tx, message_id)
    asked = storable(dict(request))
    for known in list_expectations(tx):
        if known.message_id == message.id and known.request == asked:
            return known.id
    case_id = new_id("case")
    values = {"id": case_id, "request": asked, "message_number": message.number, "created_at": now()}
    tx.execute(insert(expectation).values(**values))
    return case_id


def list_expectations(tx: ReadTransaction) -> list[Expectation]:
    """All cases in the order in which they were kept; those of deleted messages rest."""
    columns = expectation.c.id, expectation.c.request, conversation.c.id, conversation.c.channel, conversation.c.text
    query = select(*columns, expectation.c.created_at).join_from(
        expectation, conversation, conversation.c.number == expectation.c.message_number
    )
    rows = tx.execute(query.where(conversation.c.deleted.is_(False)).order_by(expectation.c.number))
    return [Expectation(row[0], row[1], row[2], row[3], preview_of(row[4]), row[5]) for row in rows]


def drop_expectation(tx: WriteTransaction, case_id: str) -> None:
    """Keep a case no longer; NotFound if there is none."""
    if not tx.execute(delete(expectation).where(expectation.c.id == case_id)).rowcount:
        raise NotFound("No such case", f"No case {case_id!r} in the registry")
