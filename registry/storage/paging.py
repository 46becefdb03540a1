"""Pages of rows by time, and the cursors that continue them.

A cursor names a place, not a count, so that a page stays right while rows arrive. What it, an event's id and the place
of a feed hold is a row's running number, sealed: mixed with the registry's key, so that only this registry reads it
and it tells nobody how much others have stored.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from secrets import token_bytes
from typing import Any, Literal

from sqlalchemy import Column, ColumnElement, Row, Table, and_, func, or_, select

from registry.domain import format_time, parse_time
from registry.errors import InvalidRequest
from registry.storage.database import ReadTransaction, WriteTransaction, insert_into
from registry.storage.safety.masking import find_key
from registry.storage.tables import registry_key

Order = Literal["asc", "desc"]


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list: at most `limit` rows after `cursor`, newest first unless `order` is "asc"."""

    limit: int = 20
    cursor: str | None = None
    order: Order = "desc"


@dataclass(frozen=True, slots=True)
class Paged:
    """The rows of a page, the cursor of the next page, if any, and how many rows there are in all."""

    rows: Sequence[Row[Any]]
    next_cursor: str | None
    total: int

    def answer(self, items: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The shape of every list (docs/interface.md), with the rows shown as these items."""
        return {"items": list(items), "total": self.total, "next_cursor": self.next_cursor}


def read_page(
    tx: ReadTransaction,
    table: Table,
    moment: Column[datetime],
    conditions: Sequence[ColumnElement[bool]],
    page: Page,
) -> Paged:
    """A page of a table ordered by that time column, ties by running number."""
    total = tx.execute(select(func.count()).select_from(table).where(*conditions)).scalar_one()
    return Paged(*read_rows(tx, table, moment, conditions, page), total)


def read_rows(
    tx: ReadTransaction,
    table: Table,
    moment: Column[datetime],
    conditions: Sequence[ColumnElement[bool]],
    page: Page,
) -> tuple[Sequence[Row[Any]], str | None]:
    """As `read_page`, without counting: the rows, and the cursor of the next page, if any."""
    query, seal = select(table).where(*conditions), seal_of(tx)
    if page.cursor:
        query = query.where(is_past(table, moment, place_of(page.cursor, seal), page.order))
    ordering = [c.asc() if page.order == "asc" else c.desc() for c in (moment, table.c.number)]
    rows = tx.execute(query.order_by(*ordering).limit(page.limit + 1)).all()
    shown = rows[: page.limit]
    last = shown[-1]._mapping if len(rows) > page.limit else None
    return shown, cursor_of(last[moment], last["number"], seal) if last else None


def is_past(table: Table, moment: Column[datetime], place: tuple[Any, Any], order: Order) -> ColumnElement[bool]:
    """Further on in that order than a place (time, number); it may be given with the statement."""
    at, number = place
    if order == "asc":
        return or_(moment > at, and_(moment == at, table.c.number > number))
    return or_(moment < at, and_(moment == at, table.c.number < number))


def cursor_of(at: datetime, number: int, seal: Seal) -> str:
    """The place of a row as one word."""
    return encode_cursor({"at": format_time(at), "n": seal.close(number)})


def place_of(cursor: str, seal: Seal) -> tuple[datetime, int]:
    """The place that `cursor_of` made a word of; InvalidRequest for anything else."""
    place = decode_cursor(cursor, at=str, n=int)
    if not 0 <= place["n"] < 2**63:
        raise _not_ours(cursor)
    try:
        return parse_time(place["at"]), seal.open(place["n"])
    except ValueError as exc:
        raise _not_ours(cursor) from exc


def encode_cursor(place: dict[str, Any]) -> str:
    """A place as one URL-safe word."""
    text = json.dumps(place, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str, **shape: type) -> dict[str, Any]:
    """The place a cursor names; InvalidRequest unless it has just this shape."""
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


_HALF = 26
"""Bits. Programs that know only floating point numbers can count to twice as many; no table has that many rows."""
_LOW = (1 << _HALF) - 1
_ROUNDS = range(6)
_STATE = 2
"""The number of the second key."""


@dataclass(frozen=True, slots=True)
class Seal:
    """Makes one number of another, and that one of the first again (a Feistel network). 0 stays 0: the beginning."""

    key: bytes

    def close(self, number: int) -> int:
        """The number as callers see it."""
        high, low = number >> _HALF, number & _LOW
        for turn in _ROUNDS:
            high, low = low, high ^ self._mixed(turn, low)
        return number and high << _HALF | low

    def open(self, shown: int) -> int:
        """The number that is shown so."""
        high, low = shown >> _HALF & _LOW, shown & _LOW
        for turn in reversed(_ROUNDS):
            high, low = low ^ self._mixed(turn, high), high
        return shown and high << _HALF | low

    def _mixed(self, turn: int, half: int) -> int:
        digest = blake2b(bytes([turn]) + half.to_bytes(4, "big"), key=self.key, digest_size=4).digest()
        return int.from_bytes(digest, "big") & _LOW


def seal_of(tx: ReadTransaction) -> Seal:
    """The registry's own; one that was never written to has nothing to hide."""
    return Seal(find_key(tx) or b"")


def seal_of_state(tx: ReadTransaction) -> Seal:
    """Return the seal of feed places: restoring a backup changes it."""
    state = tx.execute(select(registry_key.c.key).where(registry_key.c.number == _STATE)).scalar()
    return Seal((find_key(tx) or b"") + bytes(state or b""))


def change_state(tx: WriteTransaction) -> None:
    """From now on no place that was told before is one of this registry: it does not hold any more what was read."""
    state = {"number": _STATE, "key": token_bytes(32)}
    new = insert_into(tx.dialect.name, registry_key).values(state)
    tx.execute(new.on_conflict_do_update(index_elements=["number"], set_=state))
