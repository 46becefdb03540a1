"""Executions that are too old to be kept one by one: counted together by the hour, so that figures stay right.

A row counts the runs of one hour that are alike, with their durations rounded to two significant digits as
`registry.monitor.statistics` rounds them: a histogram that can be added to, and added up over any hours.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from operator import ge, le, ne
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Integer, Select, case, cast, delete, func, literal, literal_column, select
from sqlalchemy.types import String

from registry.errors import ErrorCode
from registry.storage.column_types import UtcTime
from registry.storage.conditions import given_conditions
from registry.storage.database import ReadTransaction, WriteTransaction, insert_into
from registry.storage.records.executions import GUESSED
from registry.storage.tables import execution, execution_rollup

_KEY = ("hour", "operation", "source", "error_code", "duration_ms")


class Cell(NamedTuple):
    """Runs that are counted together: alike in all of this."""

    operation: str
    source: str
    error_code: str | None
    duration_ms: float
    runs: int


class Point(NamedTuple):
    """The runs of one stretch of time: its begin (seconds since 1970), how many, and their time in all."""

    at: int
    runs: int
    failed: int
    total_ms: float


def roll_up(tx: WriteTransaction, before: datetime, most: int) -> int:
    """Count at most so many of the oldest runs that began before an instant, and remove them. How many it were."""
    oldest = select(execution.c.number).where(execution.c.started_at < before)
    oldest = oldest.order_by(execution.c.started_at, execution.c.number).limit(most)
    # Another server may be at it too: what it has taken is its own.
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
    # As `UtcTime` writes it.
    return func.strftime(literal_column("'%Y-%m-%d %H:00:00.000000'", String), execution.c.started_at)


def rolled_cells(
    tx: ReadTransaction, from_: datetime | None, to: datetime | None, without_source: str | None = None
) -> list[Cell]:
    """Return the counted runs of the hours that begin within a period."""
    table = execution_rollup.c
    within = given_conditions((ge, table.hour, from_), (le, table.hour, to))
    if tx.execute(select(literal(1)).select_from(execution_rollup).where(*within).limit(1)).first() is None:
        return []
    hour: ColumnElement[datetime] = table.hour
    if tx.dialect.name == "sqlite":  # as `figures` does: the index in the order of the groups, nothing sorted
        hour = literal_column("+execution_rollup.hour", UtcTime)
    groups = (table.operation, table.source, table.error_code, table.duration_ms)
    query = select(*groups, func.sum(table.runs)).group_by(*groups)
    without = (ne, table.source, without_source)
    rows = tx.execute(query.where(*given_conditions((ge, hour, from_), (le, hour, to), without)))
    return [
        Cell(operation, source, code or None, duration, int(runs)) for operation, source, code, duration, runs in rows
    ]


def rolled_points(
    tx: ReadTransaction, from_: datetime | None, to: datetime | None, bucket_s: int, without_source: str | None = None
) -> list[Point]:
    """Return the counted runs over time, in buckets of so many seconds; an hour belongs to the bucket it begins in."""
    table = execution_rollup.c
    within = given_conditions((ge, table.hour, from_), (le, table.hour, to), (ne, table.source, without_source))
    rows = tx.execute(_hours(within))
    points: dict[int, Point] = {}
    for hour, runs, failed, total_ms in rows:
        at = int(hour.timestamp()) // bucket_s * bucket_s
        before = points.get(at, Point(at, 0, 0, 0.0))
        points[at] = Point(at, before.runs + runs, before.failed + failed, before.total_ms + total_ms)
    return list(points.values())


def _hours(within: Sequence[ColumnElement[bool]]) -> Select[Any]:
    table = execution_rollup.c
    failed = case((table.error_code.not_in(["", ErrorCode.NOT_FOUND.value, GUESSED]), table.runs), else_=0)
    sums = (cast(func.sum(table.runs), Integer), cast(func.sum(failed), Integer), func.sum(table.total_ms))
    return select(table.hour, *sums).where(*within).group_by(table.hour).order_by(table.hour)
