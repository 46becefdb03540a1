"""Store results of extractions, and briefings: ids of messages, never copies of their texts."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, insert, select, update

from registry.domain import format_time, now
from registry.errors import NotFound
from registry.storage.column_types import shown
from registry.storage.conversations.references import canonical_name
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.paging import Page, read_page
from registry.storage.safety.masking import masked
from registry.storage.tables import extract_result, rating, store_session


def save_result(
    tx: WriteTransaction,
    result_id: str,
    *,
    record_type: str,
    channel: str,
    items: Sequence[str],
    metadata: dict[str, Any],
    result_type: str = "",
    timestamp: datetime | None = None,
    token: str | None = None,
) -> None:
    """Store a result: `items` are message ids in the order of delivery, `token` the name of the caller's token."""
    values = {
        "id": result_id,
        "record_type": record_type,
        "channel": channel,
        "result_type": result_type or record_type,
        "items": list(items),
        "metadata": masked(tx, metadata),
        "timestamp": timestamp or now(),
        "token": token,
        "deleted": False,
    }
    tx.execute(insert(extract_result).values(values))


_UNDELETED = select(extract_result).where(extract_result.c.deleted.is_(False))


def _latest(tx: ReadTransaction, kind: str, limit: int | None, *conditions: ColumnElement[bool]) -> Sequence[Row[Any]]:
    query = _UNDELETED.where(extract_result.c.record_type == kind, *conditions)
    return tx.execute(query.order_by(extract_result.c.number.desc()).limit(limit)).all()


def find_briefing(tx: ReadTransaction, channel: str, items: Sequence[str]) -> dict[str, Any] | None:
    """Return the briefing of a channel with exactly these messages, as {id, metadata}."""
    for row in _latest(tx, "briefing", None, extract_result.c.channel == channel):
        if row.items == list(items) and "actions" in (row.metadata or {}):
            return {"id": row.id, "metadata": row.metadata}
    return None


def latest_briefings(tx: ReadTransaction, limit: int) -> list[dict[str, Any]]:
    """Return the last briefings, the latest days first, each with its id, time and metadata."""
    rows = _latest(tx, "briefing", limit)
    briefings = [{**row.metadata, "id": row.id, "timestamp": format_time(row.timestamp)} for row in rows]
    return sorted((one for one in briefings if "actions" in one), key=lambda one: str(one["date"]), reverse=True)


EVALUATION = "evaluation"  # record type: how many test cases an evaluation found


def latest_evaluations(tx: ReadTransaction, limit: int) -> list[dict[str, Any]]:
    """Return the results of the last evaluations in order, each with its time."""
    rows = _latest(tx, EVALUATION, limit)
    return [{**row.metadata, "timestamp": format_time(row.timestamp)} for row in reversed(rows)]


def set_metadata(tx: WriteTransaction, result_id: str, metadata: dict[str, Any]) -> None:
    tx.execute(update(extract_result).where(extract_result.c.id == result_id).values(metadata=metadata))


def get_result(tx: ReadTransaction, result_id: str) -> Row[Any]:
    row = tx.execute(_UNDELETED.where(extract_result.c.id == result_id)).first()
    if row is None:
        raise NotFound("No such result", f"No result {result_id!r} in the registry")
    return row


def list_results(tx: ReadTransaction, channel: str | None, page: Page) -> dict[str, Any]:
    conditions: list[ColumnElement[bool]] = [extract_result.c.deleted.is_(False)]
    if channel is not None:
        conditions.append(extract_result.c.channel == canonical_name(tx, channel))
    return read_page(tx, extract_result.c.timestamp, conditions, page, lambda rows: list(map(result_item, rows)))


def latest_result(tx: ReadTransaction, channel: str, record_type: str, client: str) -> dict[str, Any] | None:
    """Return metadata and id of the last result of a type for a channel and client."""
    rows = _latest(tx, record_type, 1, *_made_for(channel, client))
    return {**rows[0].metadata, "id": rows[0].id} if rows else None


def _made_for(channel: str, client: str) -> tuple[ColumnElement[bool], ...]:
    return extract_result.c.channel == channel, extract_result.c.metadata["client"].as_string() == client


def has_hint(tx: ReadTransaction, channel: str, chat: str, items: Sequence[str]) -> bool:
    """Return True if the chat got a hint of exactly these messages of the channel."""
    return any(row.items == list(items) for row in _latest(tx, HINT, None, *_made_for(channel, chat)))


def useless_hints(tx: ReadTransaction, channel: str, folder: str | None) -> list[list[str]]:
    """Return the messages of a channel's hints for a folder whose execution was rated as not useful."""
    query = select(extract_result.c["items"], extract_result.c.metadata).where(
        extract_result.c.deleted.is_(False),
        extract_result.c.channel == channel,
        extract_result.c.record_type == HINT,
        extract_result.c.metadata["execution_id"].as_string() == rating.c.execution_id,
        rating.c.useful.is_(False),
    )
    return [items for items, metadata in tx.execute(query) if metadata.get("folder") == folder]


def imported_files(tx: ReadTransaction) -> list[str]:
    """Return the files written for clients whose stores contain the written sessions now."""
    session_id = extract_result.c.metadata["session_id"].as_string()
    stored = session_id.in_(select(store_session.c.key))
    query = select(extract_result.c.metadata).where(extract_result.c.record_type == RESUMED, stored)
    return [path for one in tx.execute(query).scalars() if one.get("is_imported") for path in one["files"]]


HINT = "hint"  # record type: the messages of a channel that a hint to a chat quoted
RESUMED = "resume"  # record type: the session of another client into which a channel was written


def resumed_session(tx: ReadTransaction, session_id: str) -> Row[Any] | None:
    """Return the result of `ctxr resume` that wrote this session; None if we did not write it."""
    is_it = extract_result.c.metadata["session_id"].as_string() == session_id
    return next(iter(_latest(tx, RESUMED, 1, is_it)), None)


def drop_result(tx: WriteTransaction, result_id: str) -> None:
    tx.execute(update(extract_result).where(extract_result.c.id == result_id).values(deleted=True))


def result_item(row: Row[Any]) -> dict[str, Any]:
    return shown(row, "id", "record_type", "channel", "result_type", "items", "metadata", "timestamp", "deleted")
