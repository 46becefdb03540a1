"""What has happened since: the feed of stored messages and finished executions, read from the tables themselves.

So it is the same in every process that shares the registry, and a listener that was away can catch up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Table, func, select

from registry.conversations import message_item
from registry.database import ReadTransaction
from registry.executions import execution_item
from registry.tables import conversation, execution


@dataclass(frozen=True, slots=True)
class Place:
    """How far a listener has come: the numbers of the last message and the last execution it saw."""

    message: int = 0
    execution: int = 0

    def __str__(self) -> str:
        return f"{self.message}.{self.execution}"

    @classmethod
    def parse(cls, given: str) -> Place:
        """The place written by `str`; ValueError for anything else."""
        message, execution = given.split(".")
        return cls(int(message), int(execution))


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened, and the place just after it. `kind` is "message" or "execution"."""

    kind: str
    place: Place
    item: dict[str, Any]


def newest_place(tx: ReadTransaction) -> Place:
    """The place where nothing has happened since."""
    last = (tx.execute(select(func.max(table.c.number))).scalar() or 0 for table in (conversation, execution))
    return Place(*last)


def events_since(tx: ReadTransaction, place: Place, limit: int = 500) -> list[Event]:
    """What happened after a place, messages before executions, each kind in order of arrival."""
    events = []
    for row in _after(tx, conversation, place.message, limit):
        place = Place(row.number, place.execution)
        events.append(Event("message", place, message_item(row)))
    for row in _after(tx, execution, place.execution, limit):
        place = Place(place.message, row.number)
        events.append(Event("execution", place, execution_item(row)))
    return events


def _after(tx: ReadTransaction, table: Table, number: int, limit: int) -> Sequence[Any]:
    return tx.execute(select(table).where(table.c.number > number).order_by(table.c.number).limit(limit)).all()
