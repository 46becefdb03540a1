"""Test GET /bo/pins, views, briefings, cases, and backups."""

from __future__ import annotations

import httpx
import pytest

from orchestrator.service import Orchestrator
from tests.backoffice.conftest import Log

pytestmark = pytest.mark.anyio


async def test_stored_records_are_listed(http: httpx.AsyncClient, orchestrator: Orchestrator, log: Log) -> None:
    [first, _] = await log("fib", "Why is it slow?", "It computes everything twice.")
    pages = {"Accept": "text/html", "Origin": "http://127.0.0.1:8765"}
    await http.post("/pins", data={"channel": "fib"}, headers=pages)
    await http.post("/views", data={"name": "python", "address": "/?tag=python"}, headers=pages)
    await orchestrator.run({"operation": "daily_briefing", "query": {"date": "2025-09-29"}})
    await orchestrator.run({"operation": "extract", "query": {"text": "slow"}, "source": "claude"})
    [run] = (await http.get("/bo/ao/executions", params={"operation": "extract"})).json()["items"]
    await http.post(f"/flow/{run['id']}/expected", data={"message": first}, headers=pages)

    async def kept(kind: str, name: str) -> list[str]:
        return [one[name] for one in (await http.get(f"/bo/{kind}")).json()["items"]]

    assert await kept("pins", "channel") == ["fib"]
    assert await kept("views", "address") == ["/?tag=python"]
    assert await kept("briefings", "date") == ["2025-09-29"]
    assert await kept("cases", "message_id") == [first]
