"""Old ordinary runs are shortened; unusual ones stay whole."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from registry.registry import Registry
from registry.storage.database import WriteTransaction
from registry.storage.paging import Page
from registry.storage.records.executions import (
    GUESSED,
    NEWEST,
    Execution,
    get_execution,
    list_executions,
    rate_execution,
)
from registry.storage.records.executions import save_execution as save
from registry.storage.tables import execution

pytestmark = pytest.mark.anyio

AT = datetime(2026, 3, 4, 9, tzinfo=UTC)
IDS = [f"conv_{number:026}" for number in range(20)]
STEPS = [
    {
        "node": node,
        "started_at": f"2026-03-04T09:00:00.{after:03}Z",
        "duration_ms": 7.25,
        "status": "succeeded",
        "error": None,
        "detail": {"delivered": IDS, "candidates": list(range(30))},
    }
    for after, node in enumerate(("plan", "cr_query", "filter", "cr_write"))
]
RESULT: dict[str, Any] = {"messages": IDS, "metadata": {"filtered_count": 20}, "confidence": "high"}
ORDINARY = Execution(
    id="",
    operation="extract",
    source="claude-code",
    client="claude-code 2.1",
    channel="claude-code_session_20260304_090000",
    status="succeeded",
    error=None,
    started_at=AT,
    finished_at=AT + timedelta(milliseconds=30),
    duration_ms=30.0,
    request={"query": {"text": "why does the basket lose its items", "limit": 20}},
    result=RESULT,
    steps=STEPS,
)
UNUSUAL = {
    "failed": replace(ORDINARY, status="failed", error={"code": "STORAGE_ERROR", "message": "", "details": ""}),
    "guessed": replace(ORDINARY, status=GUESSED),
    "slow": replace(ORDINARY, duration_ms=1500.0),
    "rated": ORDINARY,
}


async def test_an_ordinary_run_takes_at_most_600_bytes_and_an_unusual_one_stays_whole(registry: Registry) -> None:
    def fill(tx: WriteTransaction) -> None:
        for name, run in UNUSUAL.items():
            save(tx, replace(run, id=f"exec_{name}"))
        rate_execution(tx, "exec_rated", useful=False)
        for number in range(NEWEST + 100):
            save(tx, replace(ORDINARY, id=f"exec_{number:026}"))

    await registry.write(fill)
    oldest, newest = f"exec_{0:026}", f"exec_{NEWEST + 99:026}"
    for run_id in (newest, *(f"exec_{name}" for name in UNUSUAL)):
        run = await registry.read(lambda tx, run_id=run_id: get_execution(tx, run_id))  # type: ignore[misc]
        assert [step["detail"] for step in run["steps"]] == [step["detail"] for step in STEPS], run_id
    brief = await registry.read(lambda tx: get_execution(tx, oldest))
    assert brief["steps"] == [{**step, "duration_ms": 7.2, "detail": {}} for step in STEPS]
    assert brief["request"] == ORDINARY.request
    query = select(execution).where(execution.c.id == oldest)
    row = await registry.read(lambda tx: tx.execute(query).one())
    assert sum(len(str(value)) for value in row) <= 600
    listed = await registry.read(lambda tx: list_executions(tx, {}, Page(1000)))
    assert {one["delivered"] for one in listed["items"] if one["status"] == "succeeded"} == {20}
