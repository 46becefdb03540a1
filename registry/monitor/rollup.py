"""Replace executions that are too old to be kept one by one by counts per hour, so that figures stay right.

A row counts the runs of one hour that are alike, with their durations rounded to two significant digits: a histogram
that can be added to, and added up over any hours.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from operator import ge, le, ne
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Integer, case, cast, delete, func, literal_column, select
from sqlalchemy.types import String

from registry.errors import ErrorCode
from registry.storage.conditions import given_conditions
from registry.storage.database import ReadTransaction, WriteTransaction, insert_into
from registry.storage.records.executions import GUESSED
from registry.storage.tables import execution, execution_rollup

_KEY = ("hour", "operation", "source", "error_code", "duration_ms")


class Cell(NamedTuple):
    """Runs with the same operation, error code and duration."""

    operation: str
    error_code: str | None
    duration_ms: float
    runs: int


class Point(NamedTuple):
    """The runs of one bucket of time, which begins `at` (seconds since 1970)."""

    at: int
    runs: int
    failed: int
    total_ms: float


def roll_up(tx: WriteTransaction, before: datetime, most: int) -> int:
    """Count up to `most` of the oldest runs that began before an instant, and remove them; return how many."""
    oldest = select(execution.c.number).where(execution.c.started_at < before)
    oldest = oldest.order_by(execution.c.started_at, execution.c.number).limit(most)
    # Another server may do the same: its rows are skipped.
    numbers = tx.execute(oldest.with_for_update(skip_locked=True)).scalars().all()
    if numbers:
        tx.execute(_added(tx, numbers))
        tx.execute(delete(execution).where(execution.c.number.in_(numbers)))
    return len(numbers)


def _added(tx: WriteTransaction, numbers: Sequence[int]) -> Any:
    error_code = func.coalesce(execution.c.error_code, "")
    key = (_hour(tx), execution.c.operation, execution.c.source, error_code, execution.c.duration_rounded)
    counted = select(*key, func.count(), func.sum(execution.c.duration_ms))
    counted = counted.where(execution.c.number.in_(numbers)).group_by(*key)
    counted = counted.order_by(*key)  # two servers that add to the same rows take them in the same order
    statement = insert_into(tx.dialect.name, execution_rollup).from_select([*_KEY, "runs", "total_ms"], counted)
    more = statement.excluded
    table = execution_rollup.c
    return statement.on_conflict_do_update(
        index_elements=_KEY, set_={"runs": table.runs + more.runs, "total_ms": table.total_ms + more.total_ms}
    )


def _hour(tx: ReadTransaction) -> ColumnElement[Any]:
    if tx.dialect.name == "postgresql":
        return func.date_trunc(literal_column("'hour'", String), execution.c.started_at)
    # the format in which `UtcTime` is stored
    return func.strftime(literal_column("'%Y-%m-%d %H:00:00.000000'", String), execution.c.started_at)


def rolled_cells(
    tx: ReadTransaction, from_: datetime | None, to: datetime | None, without_source: str | None = None
) -> list[Cell]:
    """Return the counted runs of the hours that begin within a period."""
    table = execution_rollup.c
    groups = (table.operation, table.error_code, table.duration_ms)
    query = select(*groups, func.sum(table.runs)).where(*_within(from_, to, without_source)).group_by(*groups)
    return [Cell(operation, code or None, duration, int(runs)) for operation, code, duration, runs in tx.execute(query)]


def rolled_points(
    tx: ReadTransaction, from_: datetime | None, to: datetime | None, bucket_s: int, without_source: str | None = None
) -> list[Point]:
    """Return the counted runs of each hour, as points at the start of the bucket that the hour begins in."""
    table = execution_rollup.c
    failed = case((table.error_code.not_in(["", ErrorCode.NOT_FOUND.value, GUESSED]), table.runs), else_=0)
    sums = (cast(func.sum(table.runs), Integer), cast(func.sum(failed), Integer), func.sum(table.total_ms))
    query = select(table.hour, *sums).where(*_within(from_, to, without_source)).group_by(table.hour)
    return [Point(int(hour.timestamp()) // bucket_s * bucket_s, *sums) for hour, *sums in tx.execute(query)]


def _within(from_: datetime | None, to: datetime | None, without_source: str | None) -> list[ColumnElement[bool]]:
    table = execution_rollup.c
    return given_conditions((ge, table.hour, from_), (le, table.hour, to), (ne, table.source, without_source))
