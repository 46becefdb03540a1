"""Store ratings of executions, and expectations: which message a question should find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import delete, func, insert, select

from registry.domain import new_id, now, preview_of, storable
from registry.errors import NotFound
from registry.storage.conversations.messages import get_message
from registry.storage.database import ReadTransaction, WriteTransaction, insert_into
from registry.storage.records.executions import GUESSED, execution_item, get_execution
from registry.storage.tables import conversation, execution, expectation, rating


def rate_execution(tx: WriteTransaction, execution_id: str, *, useful: bool) -> None:
    """Rate an execution; the latest rating counts. NotFound if there is no such execution."""
    run = get_execution(tx, execution_id)
    said: dict[str, Any] = {"useful": useful, "rated_at": now()}
    about = {name: run[name] for name in ("operation", "source", "token")}
    new = insert_into(tx.dialect.name, rating).values(execution_id=run["id"], **about, **said)
    tx.execute(new.on_conflict_do_update(index_elements=["execution_id"], set_=said))


def rating_of(tx: ReadTransaction, execution_id: str) -> bool | None:
    return tx.execute(select(rating.c.useful).where(rating.c.execution_id == execution_id)).scalar()


def unsure_executions(
    tx: ReadTransaction, since: datetime, without_sources: Sequence[str], limit: int
) -> list[dict[str, Any]]:
    """Return the newest executions that guessed or found nothing, and whose question was not rated since."""
    same = execution.alias()
    last = func.max(rating.c.rated_at).label("at")
    # The outer join makes SQLite begin with the ratings, of which there are few.
    found = select(same.c.asked, last).select_from(rating).outerjoin(same, same.c.id == rating.c.execution_id)
    rated = found.group_by(same.c.asked).subquery()
    settled = rated.c.at.is_not(None) & (rated.c.at >= execution.c.started_at)
    query = (
        select(execution)
        .outerjoin(rated, rated.c.asked == execution.c.asked)
        .where(
            execution.c.status.in_((GUESSED, "not_found")),
            execution.c.started_at >= since,
            execution.c.source.not_in(without_sources),
            execution.c.asked != "",
            ~settled,
        )
    )
    newest = query.order_by(execution.c.started_at.desc(), execution.c.number.desc()).limit(limit)
    return [execution_item(row) for row in tx.execute(newest)]


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
    """Store a case once and return its id. NotFound if there is no such message."""
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
    """Return all cases in the order in which they were stored, without those of deleted messages."""
    columns = expectation.c.id, expectation.c.request, conversation.c.id, conversation.c.channel, conversation.c.text
    query = select(*columns, expectation.c.created_at).join_from(
        expectation, conversation, conversation.c.number == expectation.c.message_number
    )
    rows = tx.execute(query.where(conversation.c.deleted.is_(False)).order_by(expectation.c.number))
    return [Expectation(row[0], row[1], row[2], row[3], preview_of(row[4]), row[5]) for row in rows]


def drop_expectation(tx: WriteTransaction, case_id: str) -> None:
    if not tx.execute(delete(expectation).where(expectation.c.id == case_id)).rowcount:
        raise NotFound("No such case", f"No case {case_id!r} in the registry")
