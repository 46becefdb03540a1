"""Statistics of executions."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from registry.domain import new_id
from registry.monitor.statistics import execution_statistics
from registry.registry import Registry
from registry.storage.database import WriteTransaction
from registry.storage.records.executions import Execution, save_execution

pytestmark = [pytest.mark.anyio, pytest.mark.both_databases]
START = datetime(2025, 9, 29, 12, 0, 30, tzinfo=UTC)
ALL: dict[str, object] = {}


def make_runs(count: int) -> list[Execution]:
    chance = random.Random(7)
    codes = [None] * 8 + ["NOT_FOUND", "TIMEOUT"]
    made = []
    for i in range(count):
        code = chance.choice(codes)
        made.append(
            Execution(
                id=new_id("exec"),
                operation=chance.choice(["extract", "search"]),
                source=chance.choice(["cursor", "claude"]),
                client=None,
                channel=chance.choice(["a", "a", "b", None]),
                status={None: "succeeded", "NOT_FOUND": "not_found"}.get(code, "failed"),
                error={"code": code, "message": "no", "details": ""} if code else None,
                started_at=START + timedelta(seconds=37 * i),
                finished_at=START + timedelta(seconds=37 * i),
                duration_ms=round(chance.expovariate(1 / 120), 3),
                request={},
                result=None,
                steps=[],
            )
        )
    return made


async def record(registry: Registry, some: list[Execution]) -> None:
    def work(tx: WriteTransaction) -> None:
        for run in some:
            save_execution(tx, run)

    await registry.write(work)


async def statistics(registry: Registry, **period: Any) -> dict[str, Any]:
    query = {"from_": None, "to": None, "bucket_s": 60, **period}
    return await registry.read(lambda tx: execution_statistics(tx, **query))


def percentile(durations: list[float], share: int) -> float:
    return sorted(durations)[max(-(-len(durations) * share // 100), 1) - 1]


def rounded(duration_ms: float) -> float:
    return float(f"{duration_ms:.1e}")


async def test_percentiles_use_rounded_durations_and_counts_and_means_are_exact(registry: Registry) -> None:
    made = make_runs(300)
    await record(registry, made)
    periods: list[dict[str, datetime]] = [
        {},
        {"from_": START + timedelta(seconds=1000), "to": START + timedelta(hours=2)},
    ]
    for period in periods:
        found = await statistics(registry, **period)
        within = [run for run in made if not period or period["from_"] <= run.started_at <= period["to"]]
        for row in found["operations"]:
            durations = [rounded(run.duration_ms) for run in within if run.operation == row["operation"]]
            assert (row["count"], row["p50_ms"], row["p95_ms"], row["p99_ms"]) == (
                len(durations),
                *(percentile(durations, share) for share in (50, 95, 99)),
            )
        total = sum(point["mean_ms"] * point["count"] for point in found["series"])
        assert total == pytest.approx(sum(run.duration_ms for run in within))


async def test_a_run_that_is_recorded_again_counts_with_its_last_duration(registry: Registry) -> None:
    [run] = make_runs(1)
    late = {name: getattr(run, name) for name in run.__dataclass_fields__} | {"duration_ms": 30_000.0}
    await record(registry, [run, Execution(**late)])
    total = (await statistics(registry))["total"]
    assert (total["count"], total["p50_ms"]) == (1, 30_000)
