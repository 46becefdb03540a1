"""Old executions are deleted, and nothing else."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from orchestrator.recording import recorder
from orchestrator.recording.recorder import delete_old_runs, deleting_old_runs
from orchestrator.service import Orchestrator
from registry.domain import now
from registry.registry import Registry
from registry.storage.paging import Page
from registry.storage.records import executions
from registry.storage.records.executions import delete_executions, list_executions
from registry.storage.records.extract_results import list_results
from tests.registry.monitor.test_statistics import START, make_runs, record

pytestmark = pytest.mark.anyio


async def count_executions(registry: Registry) -> int:
    page = await registry.read(lambda tx: list_executions(tx, {}, Page(limit=1)))
    return int(page["total"])


@pytest.mark.both_databases
async def test_the_oldest_runs_before_an_instant_are_deleted_in_batches(registry: Registry) -> None:
    await record(registry, make_runs(5))
    limit = START + timedelta(seconds=3 * 37)  # the fourth run began at this very instant
    batches = [await registry.write(lambda tx: delete_executions(tx, limit, 2)) for _ in range(3)]
    assert batches == [2, 1, 0]
    assert await count_executions(registry) == 2


@pytest.mark.both_databases
async def test_two_servers_may_delete_at_once(registry: Registry) -> None:
    await record(registry, make_runs(60))
    end = START + timedelta(days=1)
    done = await asyncio.gather(*(registry.write(lambda tx: delete_executions(tx, end, 10)) for _ in range(6)))
    done += [await registry.write(lambda tx: delete_executions(tx, end, 60))]
    assert sum(done) == 60


@pytest.mark.both_databases
async def test_conversations_and_delivered_results_stay(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    orchestrator = Orchestrator(registry)
    message = {"role": "user", "text": "fibonacci"}
    await orchestrator.run({"operation": "save", "channel": "c", "messages": [message], "source": "cursor"})
    await orchestrator.run({"operation": "extract", "channel": "c", "query": {"text": "fibonacci"}})
    assert await delete_old_runs(registry, 1) == 0, "the runs are of today"
    monkeypatch.setattr(executions, "now", lambda: now() + timedelta(days=3))
    async with deleting_old_runs(registry, 0):
        assert await count_executions(registry) == 2
    async with deleting_old_runs(registry, 1):
        while await count_executions(registry):  # noqa: ASYNC110 - only the registry says so
            await asyncio.sleep(0.01)
    assert len(await registry.get_conversations("c")) == 1
    assert (await registry.read(lambda tx: list_results(tx, "c", Page())))["total"] == 1


async def test_a_clock_that_is_far_ahead_deletes_nothing(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    orchestrator = Orchestrator(registry)
    await orchestrator.run({"operation": "list"})
    for module in (executions, recorder):
        monkeypatch.setattr(module, "now", lambda: now() + timedelta(days=400))
    await orchestrator.run({"operation": "list"})
    assert await delete_old_runs(registry, 90) == 0
    assert await count_executions(registry) == 2
