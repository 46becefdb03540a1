"""Figures of executions in a period: latencies over time, by client, volumes, and recurring errors.

Figures that read every execution are left out where a period has more than MOST (`is_countable`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import Integer, cast, func, select

from registry.domain import format_time
from registry.monitor.rollup import Cell
from registry.monitor.statistics import bucket_of, figures_of, percentiles
from registry.storage.database import ReadTransaction
from registry.storage.records.executions import ExecutionFilter, execution_conditions
from registry.storage.tables import execution

MOST = 100_000
_VARIES = re.compile(r"\'[^\']*\'|\"[^\"]*\"|\b(?:conv|exec|ext)_\w+|\d[\d.,:]*")


def is_countable(tx: ReadTransaction, wanted: ExecutionFilter) -> bool:
    """Return whether every record may be read."""
    rows = select(execution.c.number).where(*execution_conditions(wanted)).limit(MOST + 1).subquery()
    return tx.execute(select(func.count()).select_from(rows)).scalar_one() <= MOST


def latencies(tx: ReadTransaction, wanted: ExecutionFilter, bucket_s: int) -> dict[str, dict[str, float | None]]:
    """Return p50, p95 and p99 in ms of each bucket with executions, by the bucket's start."""
    query = select(bucket_of(tx, bucket_s), execution.c.duration_ms).where(*execution_conditions(wanted))
    durations: dict[int, list[float]] = defaultdict(list)
    for at, duration_ms in tx.execute(query.order_by(execution.c.started_at)):
        durations[at].append(duration_ms)
    return {
        format_time(datetime.fromtimestamp(at, UTC)): percentiles(((one, 1) for one in some), len(some))
        for at, some in durations.items()
    }


def client_figures(tx: ReadTransaction, wanted: ExecutionFilter, most: int) -> list[dict[str, Any]]:
    """Return counts and percentiles by client, the busiest first; a client's versions count together."""
    columns = execution.c.client, execution.c.error_code, execution.c.duration_rounded, func.count()
    conditions = [*execution_conditions(wanted), execution.c.client.is_not(None)]
    cells: dict[str, list[Cell]] = defaultdict(list)
    for client, error_code, duration_ms, runs in tx.execute(select(*columns).where(*conditions).group_by(*columns[:3])):
        cells[_without_version(client)].append(Cell("", "", error_code, duration_ms, runs))
    figures = ({"client": client, **figures_of(some)} for client, some in cells.items())
    return sorted(figures, key=lambda one: (-one["count"], one["client"]))[:most]


def _without_version(client: str) -> str:
    return re.split(r"[\s/](?=v?\d)", client, maxsplit=1)[0]


class Volumes(NamedTuple):
    """Messages stored, duplicates recognised and messages delivered in a period."""

    stored: int
    duplicates: int
    delivered: int


def volumes(tx: ReadTransaction, wanted: ExecutionFilter) -> Volumes:
    """Sum up the results of executions."""
    result = execution.c.result
    parts = result["new_count"], result["duplicate_count"], result["metadata", "filtered_count"]
    sums = (func.coalesce(func.sum(cast(part.as_string(), Integer)), 0) for part in parts)
    return Volumes(*map(int, tx.execute(select(*sums).where(*execution_conditions(wanted))).one()))


class ErrorGroup(NamedTuple):
    """Failures of one operation that read alike but for names and numbers."""

    operation: str
    code: str
    pattern: str
    runs: int
    first: datetime
    last: datetime
    example: str  # id of the newest one


def error_groups(tx: ReadTransaction, wanted: ExecutionFilter, most: int) -> list[ErrorGroup]:
    """Return the failures of a period by pattern, those that came last first. Nothing found is no failure."""
    message = execution.c.error["message"].as_string()
    columns = execution.c.operation, execution.c.error_code, message
    seen = func.count(), func.min(execution.c.started_at), func.max(execution.c.started_at), func.max(execution.c.id)
    conditions = [*execution_conditions(wanted), execution.c.status == "failed"]
    query = select(*columns, *seen).where(*conditions).group_by(*columns).order_by(seen[2].desc()).limit(500)
    groups: dict[tuple[str, str, str], ErrorGroup] = {}
    for operation, code, text, count, first, last, example in tx.execute(query):
        key = operation, code, _VARIES.sub("…", text or "")
        known = groups.get(key)
        groups[key] = (
            known._replace(runs=known.runs + count, first=min(known.first, first))
            if known
            else ErrorGroup(*key, count, first, last, example)
        )
    return list(groups.values())[:most]
