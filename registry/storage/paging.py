"""Read pages of rows ordered by time, and encode the cursors that continue them.

A cursor is the time and number of a row, not an offset, so that new rows do not shift the pages.
"""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import gt, lt
from secrets import token_bytes
from typing import Any, Literal

from sqlalchemy import Column, ColumnElement, Row, and_, func, or_, select

from registry.domain import as_json, format_time, parse_time
from registry.errors import InvalidRequest
from registry.storage.database import ReadTransaction, WriteTransaction, upsert
from registry.storage.tables import registry_key

Order = Literal["asc", "desc"]
ItemsOf = Callable[[Sequence[Row[Any]]], list[dict[str, Any]]]  # converts the rows of a list into its items


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list: at most `limit` rows after `cursor`, newest first unless `order` is "asc".

    `count_to`: the total is not counted further than one more than this; None: it is exact.
    """

    limit: int = 20
    cursor: str | None = None
    order: Order = "desc"
    count_to: int | None = None


def read_page(
    tx: ReadTransaction,
    moment: Column[datetime],
    conditions: Sequence[ColumnElement[bool]],
    page: Page,
    items_of: ItemsOf,
    columns: Sequence[Column[Any]] = (),
) -> dict[str, Any]:
    """Return a page (docs/interface.md) of the table with a time column: an item for each row, and the total.

    `columns`: the columns to read; all if empty.
    """
    counted = select(moment.table.c.number).where(*conditions)
    if page.count_to is not None:
        counted = counted.limit(page.count_to + 1)
    total = tx.execute(select(func.count()).select_from(counted.subquery())).scalar_one()
    rows, next_cursor = read_rows(tx, moment, conditions, page, columns)
    return {"items": items_of(rows), "total": total, "next_cursor": next_cursor}


def read_rows(
    tx: ReadTransaction,
    moment: Column[datetime],
    conditions: Sequence[ColumnElement[bool]],
    page: Page,
    columns: Sequence[Column[Any]] = (),
) -> tuple[Sequence[Row[Any]], str | None]:
    """Return a page's rows, ordered by a time column and the number, and the next page's cursor, without the total."""
    query = select(*(columns or (moment.table,))).where(*conditions)
    if page.cursor:
        query = query.where(is_past(moment, position_of(page.cursor), page.order))
    ordering = [c.asc() if page.order == "asc" else c.desc() for c in (moment, moment.table.c.number)]
    rows = tx.execute(query.order_by(*ordering).limit(page.limit + 1)).all()
    page_rows = rows[: page.limit]
    last = page_rows[-1]._mapping if len(rows) > page.limit else None
    return page_rows, cursor_of(last[moment], last["number"]) if last else None


def is_past(moment: Column[datetime], position: tuple[Any, Any], order: Order) -> ColumnElement[bool]:
    """Return a condition: the row comes after a position (time, number) in that order."""
    past = gt if order == "asc" else lt
    at, number = position
    return or_(past(moment, at), and_(moment == at, past(moment.table.c.number, number)))


def cursor_of(at: datetime, number: int) -> str:
    return encode_cursor({"at": format_time(at), "n": number})


def position_of(cursor: str) -> tuple[datetime, int]:
    """Return the position that `cursor_of` encoded; InvalidRequest for anything else."""
    fields = decode_cursor(cursor, at=str, n=int)
    if not 0 <= fields["n"] < 2**63:
        raise _invalid_cursor(cursor)
    try:
        return parse_time(fields["at"]), fields["n"]
    except ValueError as exc:
        raise _invalid_cursor(cursor) from exc


def encode_cursor(fields: dict[str, Any]) -> str:
    text = as_json(fields)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str, **shape: type) -> dict[str, Any]:
    """Decode a cursor; InvalidRequest unless it has exactly these fields and types."""
    try:
        fields = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError) as exc:
        raise _invalid_cursor(cursor) from exc
    if not isinstance(fields, dict) or {key: type(value) for key, value in fields.items()} != shape:
        raise _invalid_cursor(cursor)
    return fields


def _invalid_cursor(cursor: str) -> InvalidRequest:
    return InvalidRequest(
        "The cursor is not valid.", f"cursor: given {cursor!r}; allowed: the next_cursor of the last answer"
    )


_NUMBER_BITS = 32  # the low bits of a feed position; the bits above hold the registry's state
_STATE_ROW = 2  # its row in `registry_key`
_NEVER_RESTORED = 1  # the state without that row; not 0, so that a restore invalidates the beginning, too


def feed_position(tx: ReadTransaction, number: int) -> int:
    """Return a position in the feeds for other registries: a row number combined with this registry's state."""
    return _registry_state(tx) << _NUMBER_BITS | number


def number_at_position(tx: ReadTransaction, position: int) -> int | None:
    """Return the row number of a feed position; None if a backup was restored since."""
    state, number = divmod(position, 1 << _NUMBER_BITS)
    return number if state == _registry_state(tx) or not position else None


def feed_beginning(position: int) -> int:
    """Return the position before the first row of the feed that a position is from."""
    return position >> _NUMBER_BITS << _NUMBER_BITS


def invalidate_feed_positions(tx: WriteTransaction) -> None:
    """Invalidate all existing feed positions, after a restore has replaced the messages."""
    upsert(tx, registry_key, ["number"], [{"number": _STATE_ROW, "key": token_bytes(32)}])


def _registry_state(tx: ReadTransaction) -> int:
    key = tx.execute(select(registry_key.c.key).where(registry_key.c.number == _STATE_ROW)).scalar()
    # 20 bits: with the row number it fits into a JSON number
    return (int.from_bytes(key[:3]) >> 4 if key else 0) or _NEVER_RESTORED
