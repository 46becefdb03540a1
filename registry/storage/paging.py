"""Pages of rows by time, and the cursors that continue them.

A cursor is the time and running number of a row, not a count, so that a page stays right while rows arrive.
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
ItemsOf = Callable[[Sequence[Row[Any]]], list[dict[str, Any]]]  # makes an item of each row of a list


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list: at most `limit` rows after `cursor`, newest first unless `order` is "asc"."""

    limit: int = 20
    cursor: str | None = None
    order: Order = "desc"


def read_page(
    tx: ReadTransaction,
    moment: Column[datetime],
    conditions: Sequence[ColumnElement[bool]],
    page: Page,
    items_of: ItemsOf,
    columns: Sequence[Column[Any]] = (),
) -> dict[str, Any]:
    """Return a list's answer (docs/interface.md): a page of the table of a time column, with an item for each row.

    `columns`: those that are read; all of them if none are given.
    """
    total = tx.execute(select(func.count()).select_from(moment.table).where(*conditions)).scalar_one()
    rows, next_cursor = read_rows(tx, moment, conditions, page, columns)
    return {"items": items_of(rows), "total": total, "next_cursor": next_cursor}


def read_rows(
    tx: ReadTransaction,
    moment: Column[datetime],
    conditions: Sequence[ColumnElement[bool]],
    page: Page,
    columns: Sequence[Column[Any]] = (),
) -> tuple[Sequence[Row[Any]], str | None]:
    """Read a page ordered by a time column, then by number, without counting: its rows, and the next page's cursor."""
    query = select(*(columns or (moment.table,))).where(*conditions)
    if page.cursor:
        query = query.where(is_past(moment, place_of(page.cursor), page.order))
    ordering = [c.asc() if page.order == "asc" else c.desc() for c in (moment, moment.table.c.number)]
    rows = tx.execute(query.order_by(*ordering).limit(page.limit + 1)).all()
    shown = rows[: page.limit]
    last = shown[-1]._mapping if len(rows) > page.limit else None
    return shown, cursor_of(last[moment], last["number"]) if last else None


def is_past(moment: Column[datetime], place: tuple[Any, Any], order: Order) -> ColumnElement[bool]:
    """Return the condition: after a place (time, number) in that order."""
    past = gt if order == "asc" else lt
    at, number = place
    return or_(past(moment, at), and_(moment == at, past(moment.table.c.number, number)))


def cursor_of(at: datetime, number: int) -> str:
    return encode_cursor({"at": format_time(at), "n": number})


def place_of(cursor: str) -> tuple[datetime, int]:
    """Return the place that `cursor_of` encoded; InvalidRequest for anything else."""
    place = decode_cursor(cursor, at=str, n=int)
    if not 0 <= place["n"] < 2**63:
        raise _not_ours(cursor)
    try:
        return parse_time(place["at"]), place["n"]
    except ValueError as exc:
        raise _not_ours(cursor) from exc


def encode_cursor(place: dict[str, Any]) -> str:
    text = as_json(place)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str, **shape: type) -> dict[str, Any]:
    """Decode a cursor; InvalidRequest unless it has just this shape."""
    try:
        place = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError) as exc:
        raise _not_ours(cursor) from exc
    if not isinstance(place, dict) or {key: type(value) for key, value in place.items()} != shape:
        raise _not_ours(cursor)
    return place


def _not_ours(cursor: str) -> InvalidRequest:
    return InvalidRequest(
        "The cursor is not valid.", f"cursor: given {cursor!r}; allowed: the next_cursor of the last answer"
    )


_NUMBER_BITS = 32  # of a feed place; the bits above are the registry's state
_STATE = 2  # its row in `registry_key`


def feed_place(tx: ReadTransaction, number: int) -> int:
    """Return a place in the feeds that other registries read: a running number and the state of this registry."""
    return _state(tx) << _NUMBER_BITS | number


def number_of_place(tx: ReadTransaction, place: int) -> int | None:
    """Return the running number of a feed place; None for a place from before a backup was restored."""
    state, number = divmod(place, 1 << _NUMBER_BITS)
    return number if state == _state(tx) or not place else None


def change_state(tx: WriteTransaction) -> None:
    """Invalidate all feed places given out so far, after a restore has replaced the messages."""
    upsert(tx, registry_key, ["number"], [{"number": _STATE, "key": token_bytes(32)}])


def _state(tx: ReadTransaction) -> int:
    key = tx.execute(select(registry_key.c.key).where(registry_key.c.number == _STATE)).scalar()
    return int.from_bytes(key[:3]) >> 4 if key else 0  # with the number it fits into a JSON number
