"""The flight recorder: every run of an operation, with its steps, as one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import eq, ge, le
from typing import Any

from sqlalchemy import ColumnElement, Integer, Row, cast, func, select

from registry.conditions import given_conditions
from registry.database import ReadTransaction, WriteTransaction
from registry.domain import format_time, storable
from registry.errors import NotFound
from registry.paging import Page, read_page
from registry.tables import execution

PERCENTILES = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class Execution:
    """One run: who asked what, when, how it ended, and what each node did. Durations in milliseconds."""

    id: str
    operation: str
    source: str
    client: str | None
    channel: str | None
    status: str
    error: dict[str, str] | None
    started_at: datetime
    finished_at: datetime
    duration_ms: float
    request: dict[str, Any]
    result: dict[str, Any] | None
    steps: Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ExecutionFilter:
    """Which executions to list; None means any."""

    operation: str | None = None
    channel: str | None = None
    status: str | None = None
    source: str | None = None
    from_: datetime | None = None
    to: datetime | None = None


def save_execution(tx: WriteTransaction, run: Execution) -> None:
    """Record a run, in one statement. A run recorded already (its caller gave up waiting) takes the new outcome."""
    if tx.dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert
    else:
        from sqlalchemy.dialects.sqlite import insert  # type: ignore[assignment]
    values: dict[str, Any] = {
        "id": run.id,
        "operation": run.operation,
        "source": run.source,
        "client": run.client,
        "channel": run.channel,
        "status": run.status,
        "error_code": run.error["code"] if run.error else None,
        "error": run.error,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "duration_ms": run.duration_ms,
        "request": run.request,
        "result": run.result,
        "steps": list(run.steps),
    }
    values = storable(values)  # one record that cannot be stored would hold up all that come after it
    outcome = ("status", "error_code", "error", "finished_at", "duration_ms")
    tx.execute(
        insert(execution)
        .values(**values)
        .on_conflict_do_update(index_elements=["id"], set_={name: values[name] for name in outcome})
    )


def list_executions(tx: ReadTransaction, wanted: ExecutionFilter, page: Page) -> dict[str, Any]:
    """A page of runs by start."""
    paged = read_page(tx, execution, execution.c.started_at, _conditions(wanted), page)
    return paged.answer([execution_item(row) for row in paged.rows])


def get_execution(tx: ReadTransaction, execution_id: str) -> dict[str, Any]:
    """One run with its request, result and steps; NotFound if there is none."""
    row = tx.execute(select(execution).where(execution.c.id == execution_id)).first()
    if row is None:
        raise NotFound("No such execution", f"No execution {execution_id!r} in the registry")
    return {**execution_item(row), "request": row.request, "result": row.result, "steps": row.steps}


def execution_item(row: Row[Any]) -> dict[str, Any]:
    """A run as a list shows it (contract 5)."""
    return {
        "id": row.id,
        "operation": row.operation,
        "source": row.source,
        "client": row.client,
        "channel": row.channel,
        "status": row.status,
        "error": row.error,
        "started_at": format_time(row.started_at),
        "finished_at": format_time(row.finished_at),
        "duration_ms": row.duration_ms,
    }


def execution_statistics(
    tx: ReadTransaction, *, from_: datetime | None, to: datetime | None, bucket_s: int
) -> dict[str, Any]:
    """Counts, success rate and p50/p95/p99 in ms: in total, per operation, by error code, and over time.

    Aggregated in the database, however many runs there are. `bucket_s`: seconds of one point of the series.
    """
    conditions = _conditions(ExecutionFilter(from_=from_, to=to))
    operations = tx.execute(select(execution.c.operation).where(*conditions).distinct()).scalars().all()
    return {
        "total": _figures(tx, conditions),
        "operations": [
            {"operation": name, **_figures(tx, [*conditions, execution.c.operation == name])}
            for name in sorted(operations)
        ],
        "errors": _errors(tx, conditions),
        "series": _series(tx, conditions, bucket_s),
    }


def _figures(tx: ReadTransaction, conditions: Sequence[ColumnElement[bool]]) -> dict[str, Any]:
    succeeded = func.count().filter(execution.c.status == "succeeded")
    count, good = tx.execute(select(func.count(), succeeded).select_from(execution).where(*conditions)).one()
    return {
        "count": count,
        "succeeded": good,
        "failed": count - good,
        "success_rate": good / count if count else None,
        **{f"p{share}_ms": _percentile(tx, conditions, count, share) for share in PERCENTILES},
    }


def _percentile(tx: ReadTransaction, conditions: Sequence[ColumnElement[bool]], count: int, share: int) -> float | None:
    """The nearest-rank percentile of the durations: the smallest that `share` per cent do not exceed."""
    rank = max(-(-count * share // 100), 1)
    query = select(execution.c.duration_ms).where(*conditions).order_by(execution.c.duration_ms)
    return tx.execute(query.offset(rank - 1).limit(1)).scalar()


def _errors(tx: ReadTransaction, conditions: Sequence[ColumnElement[bool]]) -> dict[str, int]:
    query = (
        select(execution.c.error_code, func.count())
        .where(*conditions, execution.c.error_code.is_not(None))
        .group_by(execution.c.error_code)
        .order_by(execution.c.error_code)
    )
    return {code: count for code, count in tx.execute(query)}


def _series(tx: ReadTransaction, conditions: Sequence[ColumnElement[bool]], bucket_s: int) -> list[dict[str, Any]]:
    if tx.dialect.name == "postgresql":
        seconds = cast(func.floor(func.extract("epoch", execution.c.started_at)), Integer)
    else:
        seconds = cast(func.strftime("%s", execution.c.started_at), Integer)
    bucket = (seconds - seconds % bucket_s).label("bucket")
    failed = func.count().filter(execution.c.status == "failed")
    query = (
        select(bucket, func.count(), failed, func.avg(execution.c.duration_ms))
        .where(*conditions)
        .group_by(bucket)
        .order_by(bucket)
    )
    return [
        {
            "at": format_time(datetime.fromtimestamp(at, UTC)),
            "count": count,
            "failed": bad,
            "mean_ms": mean,
        }
        for at, count, bad, mean in tx.execute(query)
    ]


def _conditions(wanted: ExecutionFilter) -> list[ColumnElement[bool]]:
    return given_conditions(
        (eq, execution.c.operation, wanted.operation),
        (eq, execution.c.channel, wanted.channel),
        (eq, execution.c.status, wanted.status),
        (eq, execution.c.source, wanted.source),
        (ge, execution.c.started_at, wanted.from_),
        (le, execution.c.started_at, wanted.to),
    )
