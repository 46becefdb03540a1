"""Executions too old to be kept one by one: their figures stay right, and nothing else goes."""

from __future__ import annotations

import asyncio
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
from tests.registry.monitor.test_statistics import START, record, registry, runs, statistics

__all__ = ["registry"]
pytestmark = pytest.mark.anyio
MIDDLE = START.replace(second=0) + timedelta(hours=2)
"""A full hour, two thirds of the way through 300 runs."""


async def left(registry: Registry) -> int:
    page = await registry.read(lambda tx: list_executions(tx, {}, Page(limit=1)))
    return int(page["total"])


async def rolled(registry: Registry, most: int = 1000) -> int:
    return await registry.write(lambda tx: roll_up(tx, MIDDLE, most))


def rounded(run: Execution) -> Execution:
    """The same run with a duration that rounding does not change."""
    fields = {name: getattr(run, name) for name in run.__dataclass_fields__}
    return Execution(**fields | {"duration_ms": float(f"{run.duration_ms:.1e}")})


async def test_a_run_that_began_at_that_very_instant_is_kept(registry: Registry) -> None:
    await record(registry, runs(2))
    assert await registry.write(lambda tx: roll_up(tx, START, 10)) == 0
    assert await registry.write(lambda tx: roll_up(tx, START + timedelta(seconds=37), 10)) == 1
    assert await left(registry) == 1


async def test_figures_are_the_same_before_and_after(registry: Registry) -> None:
    periods: list[dict[str, Any]] = [{}, {"from_": START.replace(second=0), "to": MIDDLE + timedelta(minutes=20)}]
    asked = [{"bucket_s": bucket_s, **period} for bucket_s in (60, 3600, 86_400) for period in periods]
    await record(registry, list(map(rounded, runs(300))))
    figures = [await statistics(registry, **each) for each in asked]
    assert await rolled(registry) == 194
    for each, before in zip(asked, figures, strict=True):
        after = await statistics(registry, **each)
        assert after.pop("rolled_up") == 194
        series = after.pop("series"), before.pop("series")
        assert after == before
        by_hour = [summed(some, max(each["bucket_s"], 3600)) for some in series]
        assert by_hour[0] == pytest.approx(by_hour[1])
        first_hour = await statistics(registry, **{**each, "to": START + timedelta(minutes=5)})
        assert 0 < first_hour["rolled_up"] < 194


def summed(series: list[dict[str, Any]], bucket_s: int) -> dict[str, float]:
    """Runs, failures and milliseconds in all by the hour or day: rolled up runs know no minute."""
    found: dict[str, float] = {}
    for point in series:
        stretch = point["at"][: 13 if bucket_s == 3600 else 10]
        for name, value in (("n", point["count"]), ("f", point["failed"]), ("ms", point["mean_ms"] * point["count"])):
            found[f"{stretch} {name}"] = found.get(f"{stretch} {name}", 0) + value
    return found


async def test_it_comes_to_the_same_in_one_go_or_in_many(registry: Registry) -> None:
    await record(registry, runs(300))
    batches = [await rolled(registry, 50) for _ in range(5)]
    assert batches == [50, 50, 50, 44, 0]
    assert await left(registry) == 106
    figures = await statistics(registry)
    assert figures["total"]["count"] == 300
    assert sum(point["count"] for point in figures["series"]) == 300


async def test_a_late_record_of_an_hour_that_is_rolled_up_is_added(registry: Registry) -> None:
    first, second = rounded(runs(2)[0]), rounded(runs(2)[0])
    for run in (first, second):
        await record(registry, [run])
        assert await rolled(registry) == 1
    total = (await statistics(registry))["total"]
    assert (total["count"], total["p99_ms"]) == (2, max(first.duration_ms, second.duration_ms))


async def test_what_is_cut_off_in_the_middle_is_neither_lost_nor_counted_twice(registry: Registry) -> None:
    await record(registry, runs(300))
    before = (await statistics(registry))["total"]

    def cut_off(tx: WriteTransaction) -> None:
        roll_up(tx, MIDDLE, 100)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await registry.write(cut_off)
    assert await left(registry) == 300
    assert (await statistics(registry))["total"] == before


async def test_two_servers_at_it_count_each_run_once(registry: Registry) -> None:
    await record(registry, runs(300))
    done = await asyncio.gather(*(rolled(registry, 60) for _ in range(6)))
    while more := await rolled(registry):
        done.append(more)
    assert sum(done) == 194
    assert (await statistics(registry))["total"]["count"] == 300


async def test_conversations_and_what_was_delivered_of_them_stay(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    orchestrator = Orchestrator(registry)
    message = {"role": "user", "text": "fibonacci"}
    await orchestrator.run({"operation": "save", "channel": "c", "messages": [message], "source": "cursor"})
    await orchestrator.run({"operation": "extract", "channel": "c", "query": {"text": "fibonacci"}})
    assert await roll_up_older(registry, 1) == 0, "they are of today"
    monkeypatch.setattr(executions, "now", lambda: now() + timedelta(days=3))
    async with rolling_up(registry, 0):
        assert await left(registry) == 2
    async with rolling_up(registry, 1):
        while await left(registry):
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
    assert await left(registry) == 2
