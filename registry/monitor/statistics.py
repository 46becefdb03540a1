"""Count executions in the database: by outcome, operation and source, over time, with percentiles of their durations.

Percentiles are those of durations rounded to two significant digits, so that a million runs are few groups; counts and
means are exact.
"""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any, Literal, NamedTuple

from sqlalchemy import ColumnElement, Integer, cast, func, select

from registry.domain import format_time
from registry.errors import ErrorCode
from registry.storage.database import ReadTransaction
from registry.storage.records.executions import GUESSED, execution_conditions
from registry.storage.tables import execution

PERCENTILES = (50, 95, 99)
PERCENTILE_NAMES = [f"p{share}_ms" for share in PERCENTILES]


class Cell(NamedTuple):
    """The runs of one bucket of time with the same operation, error code, client and rounded duration."""

    at: int  # start of the bucket, in seconds since 1970
    operation: str
    error_code: str | None
    client: str | None
    duration_ms: float
    runs: int
    total_ms: float


def execution_statistics(
    tx: ReadTransaction,
    *,
    from_: datetime | None,
    to: datetime | None,
    bucket_s: int,
    offset_s: int = 0,
    without_source: str | None = None,
) -> dict[str, Any]:
    """Return counts, success rate and p50/p95/p99 in ms: in total, per operation and client, by error code, over time.

    `bucket_s`: seconds of one point of the series; `offset_s`: seconds by which its days begin before those of UTC;
    `without_source`: a source whose runs are not counted.
    """
    columns = execution.c
    bucket = _bucket(tx, columns.started_at, bucket_s=bucket_s, offset_s=offset_s)
    key = (bucket, columns.operation, columns.error_code, columns.client, columns.duration_rounded)
    conditions = execution_conditions({"from_": from_, "to": to, "without_source": without_source})
    query = select(*key, func.count(), func.sum(columns.duration_ms)).where(*conditions).group_by(*key)
    cells = [Cell(*row) for row in tx.execute(query)]
    return {
        "total": _figures(cells),
        "operations": [{"operation": name, **_figures(some)} for name, some in _grouped(cells, "operation")],
        "errors": _errors(cells),
        "series": [_point(at, some) for at, some in _grouped(cells, "at")],
        "clients": _client_figures(cells),
    }


def _grouped(cells: Iterable[Cell], by: Literal["at", "operation"]) -> list[tuple[Any, list[Cell]]]:
    groups: dict[Any, list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[getattr(cell, by)].append(cell)
    return sorted(groups.items())


def _figures(cells: Sequence[Cell]) -> dict[str, Any]:
    """Count the runs by outcome, with percentiles of their durations; `guessed` and `not_found` are not failures."""
    runs = Counter[str | None]()
    for cell in cells:
        runs[cell.error_code] += cell.runs
    count, not_found, guessed = runs.total(), runs[ErrorCode.NOT_FOUND], runs[GUESSED]
    failed = count - runs[None] - not_found - guessed
    outcomes = {
        "count": count,
        "succeeded": count - guessed - not_found - failed,
        "guessed": guessed,
        "not_found": not_found,
        "failed": failed,
        "success_rate": (count - failed) / count if count else None,
    }
    return outcomes | _percentiles(cells, count)


def _percentiles(cells: Iterable[Cell], count: int) -> dict[str, float | None]:
    """Return percentiles by nearest rank: the smallest duration that `share` per cent do not exceed."""
    if not count:
        return dict.fromkeys(PERCENTILE_NAMES)
    runs = Counter[float]()  # durations are rounded: few values, which sort faster than the cells
    for cell in cells:
        runs[cell.duration_ms] += cell.runs
    ordered = sorted(runs.items())
    passed = list(accumulate(number for _, number in ordered))
    ranks = [max(-(-count * share // 100), 1) for share in PERCENTILES]
    return {name: ordered[bisect_left(passed, rank)][0] for name, rank in zip(PERCENTILE_NAMES, ranks, strict=True)}


def _errors(cells: Iterable[Cell]) -> dict[str, int]:
    errors: dict[str, int] = defaultdict(int)
    for cell in cells:
        if cell.error_code and cell.error_code != GUESSED:
            errors[cell.error_code] += cell.runs
    return dict(sorted(errors.items()))


def _bucket(
    tx: ReadTransaction, instant: ColumnElement[datetime], *, bucket_s: int, offset_s: int
) -> ColumnElement[int]:
    """Return the start of an instant's bucket, in seconds since 1970."""
    if tx.dialect.name == "postgresql":
        seconds = cast(func.floor(func.extract("epoch", instant)), Integer)
    else:
        seconds = cast(func.strftime("%s", instant), Integer)
    return ((seconds + offset_s) // bucket_s * bucket_s - offset_s).label("bucket")


def _point(at: int, cells: Sequence[Cell]) -> dict[str, Any]:
    figures = _figures(cells)
    mean = sum(cell.total_ms for cell in cells) / figures["count"]
    shown = {name: figures[name] for name in ("count", "failed", *PERCENTILE_NAMES)}
    return {"at": format_time(datetime.fromtimestamp(at, UTC)), "mean_ms": mean, **shown}


def _client_figures(cells: Iterable[Cell]) -> list[dict[str, Any]]:
    """Return counts and percentiles of the ten busiest clients; a client's versions count together."""
    clients: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        if cell.client is not None:
            clients[re.split(r"[\s/](?=v?\d)", cell.client, maxsplit=1)[0]].append(cell)
    figures = ({"client": client, **_figures(some)} for client, some in clients.items())
    return sorted(figures, key=lambda one: (-one["count"], one["client"]))[:10]
