"""Count executions in the database: by outcome, operation and source, over time, with percentiles of their durations.

Percentiles are those of durations rounded to two significant digits, so that a million runs are few groups; counts and
means are exact. Executions that are too old to be kept one by one are replaced by such counts per hour.
"""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from operator import add, ge, le, ne
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Integer, case, cast, delete, func, literal_column, select
from sqlalchemy.types import String

from registry.domain import format_time
from registry.errors import ErrorCode
from registry.storage.conditions import Filters, given_conditions
from registry.storage.database import ReadTransaction, WriteTransaction, insert_into
from registry.storage.records.executions import GUESSED, execution_conditions
from registry.storage.tables import execution, execution_rollup

PERCENTILES = (50, 95, 99)
Times = Mapping[int, Mapping[str, float | None]]  # the percentiles of the runs of each bucket, by its start


class Cell(NamedTuple):
    """The number of runs with the same operation, error code and duration, and optionally client."""

    operation: str
    error_code: str | None
    duration_ms: float
    runs: int
    client: str | None = None


class BucketCounts(NamedTuple):
    """Counts of the runs of one bucket of time, which begins at `at` (seconds since 1970)."""

    at: int
    runs: int
    failed: int
    total_ms: float


def execution_statistics(
    tx: ReadTransaction,
    *,
    from_: datetime | None,
    to: datetime | None,
    bucket_s: int,
    without_source: str | None = None,
    in_detail: bool = False,
) -> dict[str, Any]:
    """Return counts, success rate and p50/p95/p99 in ms: in total, per operation, by error code, over time.

    `bucket_s`: seconds of one point of the series; `without_source`: a source whose runs are not counted.
    `in_detail`: also by client, the busiest first, and with percentiles of each point; both without rolled-up runs.
    The answer has `rolled_up`, their number, if there are any.
    """
    conditions = execution_conditions({"from_": from_, "to": to, "without_source": without_source})
    rolled = rolled_cells(tx, from_, to, without_source)
    kept, points, times = _one_by_one(tx, conditions, bucket_s) if in_detail else _counted(tx, conditions, bucket_s)
    cells = [*kept, *rolled]
    operations: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        operations[cell.operation].append(cell)
    points = [*rolled_points(tx, from_, to, bucket_s, without_source), *points]
    return {
        "total": figures_of(cells),
        "operations": [{"operation": name, **figures_of(some)} for name, some in sorted(operations.items())],
        "errors": _errors(cells),
        "series": _series(points, times),
        **({"clients": _client_figures(kept)} if in_detail else {}),
        **({"rolled_up": sum(cell.runs for cell in rolled)} if rolled else {}),
    }


def _counted(
    tx: ReadTransaction, conditions: Sequence[ColumnElement[bool]], bucket_s: int
) -> tuple[list[Cell], list[BucketCounts], Times]:
    """Count the runs in the database, by group and by bucket."""
    columns = (execution.c.operation, execution.c.error_code, execution.c.duration_rounded)
    query = select(*columns, func.count()).where(*conditions).group_by(*columns)
    bucket = bucket_of(tx, bucket_s)
    failed = func.count(func.nullif(func.nullif(execution.c.error_code, ErrorCode.NOT_FOUND.value), GUESSED))
    points = select(bucket, func.count(), failed, func.sum(execution.c.duration_ms)).where(*conditions)
    points = points.group_by(bucket).order_by(bucket)
    return [Cell(*row) for row in tx.execute(query)], [BucketCounts(*row) for row in tx.execute(points)], {}


def _one_by_one(
    tx: ReadTransaction, conditions: Sequence[ColumnElement[bool]], bucket_s: int
) -> tuple[list[Cell], list[BucketCounts], Times]:
    """Count the runs in Python, also by client, with p50, p95 and p99 in ms of each bucket, by its start.

    One pass over few runs is faster than grouping them three times in the database.
    """
    columns = execution.c.operation, execution.c.error_code, execution.c.client, execution.c.duration_ms
    groups: dict[tuple[str, str | None, str | None], list[float]] = defaultdict(list)
    buckets: dict[int, list[float]] = defaultdict(list)
    failed = Counter[int]()
    runs = tx.execute(select(bucket_of(tx, bucket_s), *columns).where(*conditions)).all()
    for at, operation, error_code, client, ms in runs:
        groups[operation, error_code, client].append(ms)
        buckets[at].append(ms)
        if error_code not in (None, ErrorCode.NOT_FOUND, GUESSED):
            failed[at] += 1
    return (
        [
            Cell(operation, code, ms, count, client)
            for (operation, code, client), some in groups.items()
            for ms, count in Counter(float(f"{ms:.1e}") for ms in some).items()
        ],
        [BucketCounts(at, len(some), failed[at], sum(some)) for at, some in buckets.items()],
        {at: percentiles(((ms, 1) for ms in some), len(some)) for at, some in buckets.items()},
    )


def figures_of(cells: Sequence[Cell]) -> dict[str, Any]:
    """Count the runs by outcome, with percentiles of their durations; `guessed` and `not_found` are no failures."""
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
    return outcomes | percentiles(((cell.duration_ms, cell.runs) for cell in cells), count)


def percentiles(durations: Iterable[tuple[float, int]], count: int) -> dict[str, float | None]:
    """Return percentiles by nearest rank: the smallest duration that `share` per cent do not exceed."""
    if not count:
        return {f"p{share}_ms": None for share in PERCENTILES}
    ordered = sorted(durations)
    passed = list(accumulate(runs for _, runs in ordered))
    ranks = {f"p{share}_ms": max(-(-count * share // 100), 1) for share in PERCENTILES}
    return {name: ordered[bisect_left(passed, rank)][0] for name, rank in ranks.items()}


def _errors(cells: Iterable[Cell]) -> dict[str, int]:
    errors: dict[str, int] = defaultdict(int)
    for cell in cells:
        if cell.error_code and cell.error_code != GUESSED:
            errors[cell.error_code] += cell.runs
    return dict(sorted(errors.items()))


def bucket_of(tx: ReadTransaction, bucket_s: int) -> ColumnElement[int]:
    """Return the start of a run's bucket, in seconds since 1970."""
    if tx.dialect.name == "postgresql":
        seconds = cast(func.floor(func.extract("epoch", execution.c.started_at)), Integer)
    else:
        seconds = cast(func.strftime("%s", execution.c.started_at), Integer)
    return (seconds // bucket_s * bucket_s).label("bucket")


def _series(points: Sequence[BucketCounts], times: Times) -> list[dict[str, Any]]:
    by_bucket: dict[int, BucketCounts] = {}
    for point in points:
        found = by_bucket.get(point.at)
        by_bucket[point.at] = BucketCounts(point.at, *map(add, found[1:], point[1:])) if found else point
    return [
        {
            "at": format_time(datetime.fromtimestamp(point.at, UTC)),
            "count": point.runs,
            "failed": point.failed,
            "mean_ms": point.total_ms / point.runs,
            **times.get(point.at, {}),
        }
        for _, point in sorted(by_bucket.items())
    ]


def is_countable(tx: ReadTransaction, wanted: Filters) -> bool:
    """Return True if a period has at most 100 000 executions, so that a figure may read each of them."""
    rows = select(execution.c.number).where(*execution_conditions(wanted)).limit(100_001).subquery()
    return tx.execute(select(func.count()).select_from(rows)).scalar_one() <= 100_000


def _client_figures(cells: Iterable[Cell]) -> list[dict[str, Any]]:
    """Return counts and percentiles of the ten busiest clients; a client's versions count together."""
    clients: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        if cell.client is not None:
            clients[re.split(r"[\s/](?=v?\d)", cell.client, maxsplit=1)[0]].append(cell)
    figures = ({"client": client, **figures_of(some)} for client, some in clients.items())
    return sorted(figures, key=lambda one: (-one["count"], one["client"]))[:10]


_KEY = ("hour", "operation", "source", "error_code", "duration_ms")


def roll_up(tx: WriteTransaction, before: datetime, most: int) -> int:
    """Replace up to `most` of the oldest runs before an instant by counts per hour; return how many."""
    oldest = select(execution.c.number).where(execution.c.started_at < before)
    oldest = oldest.order_by(execution.c.started_at, execution.c.number).limit(most)
    # Another server may do the same: its rows are skipped.
    numbers = tx.execute(oldest.with_for_update(skip_locked=True)).scalars().all()
    if numbers:
        tx.execute(_add_to_rollup(tx, numbers))
        tx.execute(delete(execution).where(execution.c.number.in_(numbers)))
    return len(numbers)


def _add_to_rollup(tx: WriteTransaction, numbers: Sequence[int]) -> Any:
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
    """Return the rolled-up runs of the hours that begin within a period."""
    table = execution_rollup.c
    groups = (table.operation, table.error_code, table.duration_ms)
    query = select(*groups, func.sum(table.runs)).where(*_within(from_, to, without_source)).group_by(*groups)
    return [Cell(operation, code or None, duration, int(runs)) for operation, code, duration, runs in tx.execute(query)]


def rolled_points(
    tx: ReadTransaction, from_: datetime | None, to: datetime | None, bucket_s: int, without_source: str | None = None
) -> list[BucketCounts]:
    """Return the rolled-up runs of each hour, at the start of the bucket in which the hour begins."""
    table = execution_rollup.c
    failed = case((table.error_code.not_in(["", ErrorCode.NOT_FOUND.value, GUESSED]), table.runs), else_=0)
    sums = (cast(func.sum(table.runs), Integer), cast(func.sum(failed), Integer), func.sum(table.total_ms))
    query = select(table.hour, *sums).where(*_within(from_, to, without_source)).group_by(table.hour)
    return [BucketCounts(int(hour.timestamp()) // bucket_s * bucket_s, *sums) for hour, *sums in tx.execute(query)]


def _within(from_: datetime | None, to: datetime | None, without_source: str | None) -> list[ColumnElement[bool]]:
    table = execution_rollup.c
    return given_conditions((ge, table.hour, from_), (le, table.hour, to), (ne, table.source, without_source))
