"""Figures about recalled chats."""

from __future__ import annotations

import pytest

from orchestrator.service import Orchestrator
from registry.monitor.activity import recall_figures
from registry.registry import Registry

pytestmark = [pytest.mark.anyio, pytest.mark.both_databases]


async def test_recall_figures_name_the_longest_and_most_recalled_chats_hours_and_tokens(
    registry: Registry,
) -> None:
    orchestrator = Orchestrator(registry)
    for channel, count in (("long", 3), ("never recalled", 2), ("short", 1)):
        messages = [
            {"role": "user", "text": f"about baskets {n}", "timestamp": f"2026-01-05T22:{40 + n}:00Z"}
            for n in range(count)
        ]
        assert (await orchestrator.run({"operation": "save", "channel": channel, "messages": messages}))["success"]
    for request in (
        {"operation": "extract", "channel": "short"},
        {"operation": "fetch", "query": {"session_id": "short"}},
        {"operation": "fetch", "query": {"session_id": "long"}},
    ):
        assert (await orchestrator.run(request))["success"]
    await orchestrator.settle()
    figures = await registry.read(lambda tx: recall_figures(tx, 9 * 60 + 30))
    assert [one["channel"] for one in figures["longest"]] == ["long", "never recalled", "short"]
    assert [(one["channel"], one["recalled"]) for one in figures["most_recalled"]] == [("short", 2), ("long", 1)]
    assert {one["hour"]: one["messages"] for one in figures["hours"] if one["messages"]} == {8: 6}
    assert figures["tokens"]["delivered"] > 0
    assert figures["tokens"]["kept"] > 0
