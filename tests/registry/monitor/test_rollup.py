"""Old executions are rolled up into totals: figures stay correct, and nothing else is deleted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.recording import recorder
from orchestrator.recording.recorder import roll_up_older, rolling_up
from orchestrator.service import Orchestrator
from registry.domain import now
from registry.monitor.statistics import roll_up
from registry.registry import Registry
from registry.storage.database import WriteTransaction
from registry.storage.paging import Page
from registry.storage.records import executions
from registry.storage.records.executions import Execution, list_executions
from registry.storage.records.extract_results import list_results
from tests.registry.monitor.test_statistics import START, make_runs, record, statistics
from tests.seeded import Seeded

pytestmark = pytest.mark.anyio
MIDDLE = START.replace(second=0) + timedelta(hours=2)
"""A full hour, at two thirds of 300 runs."""


async def three_hundred_runs(orchestrator: Orchestrator) -> None:
    await record(orchestrator.registry, list(map(with_rounded_duration, make_runs(300))))


@pytest.fixture
async def filled(seeded: Seeded) -> AsyncIterator[Registry]:
    registry = Registry(await seeded(three_hundred_runs))
    yield registry
    registry.close()


async def count_executions(registry: Registry) -> int:
    page = await registry.read(lambda tx: list_executions(tx, {}, Page(limit=1)))
    return int(page["total"])


async def roll_up_before_middle(registry: Registry, limit: int = 1000) -> int:
    return await registry.write(lambda tx: roll_up(tx, MIDDLE, limit))


def with_rounded_duration(run: Execution) -> Execution:
    """Return the run with a duration of two digits, which rounding does not change."""
    fields = {name: getattr(run, name) for name in run.__dataclass_fields__}
    return Execution(**fields | {"duration_ms": float(f"{run.duration_ms:.1e}")})


async def test_a_run_that_began_at_the_very_instant_of_the_limit_is_kept(registry: Registry) -> None:
    await record(registry, make_runs(2))
    assert await registry.write(lambda tx: roll_up(tx, START, 10)) == 0
    assert await registry.write(lambda tx: roll_up(tx, START + timedelta(seconds=37), 10)) == 1
    assert await count_executions(registry) == 1


@pytest.mark.both_databases
async def test_figures_are_the_same_before_and_after(filled: Registry) -> None:
    periods: list[dict[str, Any]] = [{}, {"from_": START.replace(second=0), "to": MIDDLE + timedelta(minutes=20)}]
    queries = [{"bucket_s": bucket_s, **period} for bucket_s in (60, 3600, 86_400) for period in periods]
    figures = [await statistics(filled, **each) for each in queries]
    assert await roll_up_before_middle(filled) == 194
    for each, before in zip(queries, figures, strict=True):
        after = await statistics(filled, **each)
        assert after.pop("rolled_up") == 194
        series = after.pop("series"), before.pop("series")
        assert after == before
        by_hour = [sum_by_hour_or_day(some, max(each["bucket_s"], 3600)) for some in series]
        assert by_hour[0] == pytest.approx(by_hour[1])
        first_hour = await statistics(filled, **{**each, "to": START + timedelta(minutes=5)})
        assert 0 < first_hour["rolled_up"] < 194


def sum_by_hour_or_day(series: list[dict[str, Any]], bucket_s: int) -> dict[str, float]:
    """Sum runs, failures and milliseconds by hour or day, because rolled-up runs have no minute."""
    found: dict[str, float] = {}
    for point in series:
        period = point["at"][: 13 if bucket_s == 3600 else 10]
        for name, value in (("n", point["count"]), ("f", point["failed"]), ("ms", point["mean_ms"] * point["count"])):
            found[f"{period} {name}"] = found.get(f"{period} {name}", 0) + value
    return found


async def test_rolling_up_in_batches_gives_the_same_totals(filled: Registry) -> None:
    batches = [await roll_up_before_middle(filled, 50) for _ in range(5)]
    assert batches == [50, 50, 50, 44, 0]
    assert await count_executions(filled) == 106
    figures = await statistics(filled)
    assert figures["total"]["count"] == 300
    assert sum(point["count"] for point in figures["series"]) == 300


async def test_a_late_record_is_added_to_its_rolled_up_hour(registry: Registry) -> None:
    first, second = with_rounded_duration(make_runs(2)[0]), with_rounded_duration(make_runs(2)[0])
    for run in (first, second):
        await record(registry, [run])
        assert await roll_up_before_middle(registry) == 1
    total = (await statistics(registry))["total"]
    assert (total["count"], total["p99_ms"]) == (2, max(first.duration_ms, second.duration_ms))


async def test_an_interrupted_rollup_neither_loses_nor_doubles_runs(filled: Registry) -> None:
    before = (await statistics(filled))["total"]

    def cut_off(tx: WriteTransaction) -> None:
        roll_up(tx, MIDDLE, 100)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await filled.write(cut_off)
    assert await count_executions(filled) == 300
    assert (await statistics(filled))["total"] == before


async def test_concurrent_rollups_count_each_run_once(filled: Registry) -> None:
    done = await asyncio.gather(*(roll_up_before_middle(filled, 60) for _ in range(6)))
    while more := await roll_up_before_middle(filled):
        done.append(more)
    assert sum(done) == 194
    assert (await statistics(filled))["total"]["count"] == 300


@pytest.mark.both_databases
async def test_rolling_up_keeps_conversations_and_delivered_results(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    orchestrator = Orchestrator(registry)
    message = {"role": "user", "text": "fibonacci"}
    await orchestrator.run({"operation": "save", "channel": "c", "messages": [message], "source": "cursor"})
    await orchestrator.run({"operation": "extract", "channel": "c", "query": {"text": "fibonacci"}})
    assert await roll_up_older(registry, 1) == 0, "the runs are of today"
    monkeypatch.setattr(executions, "now", lambda: now() + timedelta(days=3))
    async with rolling_up(registry, 0):
        assert await count_executions(registry) == 2
    async with rolling_up(registry, 1):
        while await count_executions(registry):
            pass
    assert len(await registry.get_conversations("c")) == 1
    assert (await registry.read(lambda tx: list_results(tx, "c", Page())))["total"] == 1
    assert (await statistics(registry))["total"]["count"] == 2


async def test_a_clock_that_is_far_ahead_rolls_up_nothing(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    orchestrator = Orchestrator(registry)
    await orchestrator.run({"operation": "list"})
    for module in (executions, recorder):
        monkeypatch.setattr(module, "now", lambda: now() + timedelta(days=400))
    await orchestrator.run({"operation": "list"})
    assert await roll_up_older(registry, 90) == 0
    assert await count_executions(registry) == 2
