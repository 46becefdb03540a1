"""Test the graph: its path depends on the request and the results, and external actions are retried."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

from orchestrator.graph import describe_graph
from orchestrator.service import Orchestrator
from registry.registry import Registry
from registry.storage.paging import Page
from registry.storage.records.executions import get_execution, list_executions

pytestmark = pytest.mark.anyio

SAVE: dict[str, Any] = {
    "operation": "save",
    "channel": "c",
    "messages": [
        {"role": "user", "text": "how do I memoize fibonacci?", "timestamp": "2026-01-05T12:00:00Z"},
        {"role": "assistant", "text": "with functools.lru_cache", "timestamp": "2026-01-05T12:00:09Z"},
    ],
}
BRIEFING = {"operation": "daily_briefing", "query": {"date": "2026-01-05"}}


class Flaky:
    """An external system that is unavailable for the first calls."""

    name = "notice board"

    def __init__(self, away: int) -> None:
        self.away, self.texts = away, list[str]()

    async def was_done(self, about: Mapping[str, str]) -> bool | None:
        return None

    async def perform(self, about: Mapping[str, str]) -> str:
        self.texts.append(about["text"])
        if len(self.texts) <= self.away:
            raise ConnectionError("nobody answers")
        return "https://board.test/1"


async def last_run(orchestrator: Orchestrator) -> dict[str, Any]:
    def work(tx: Any) -> dict[str, Any]:
        [item] = list_executions(tx, {}, Page(limit=1))["items"]
        return get_execution(tx, item["id"])

    return await orchestrator.registry.read(work)


def path_of(execution: dict[str, Any]) -> list[str]:
    return [step["node"] for step in execution["steps"]]


async def test_the_path_depends_on_the_request_and_the_results(orchestrator: Orchestrator) -> None:
    await orchestrator.run(SAVE)
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"text": "fibonacci"}, ["plan", "cr_query", "filter", "cr_write"]),
        ({"text": "fibonacci", "mode": "digest"}, ["plan", "cr_query", "filter", "transform", "cr_write"]),
        ({"text": "kubernetes helm chart"}, ["plan", "cr_query"]),
    ]
    for query, expected in cases:
        answer = await orchestrator.run({"operation": "extract", "query": query})
        assert answer["success"] == (expected[-1] == "cr_write")
        assert path_of(await last_run(orchestrator)) == expected


async def test_a_search_without_a_confident_match_is_repeated_with_less(orchestrator: Orchestrator) -> None:
    await orchestrator.run(SAVE)
    said = [{"role": "user", "text": "paint the fence green"}]
    await orchestrator.run(
        {**SAVE, "channel": "other", "messages": said, "metadata": {"project": "/home/me/tidegraph"}}
    )
    for text, given_up in (
        ("continue the fibonacci conversation from 3 May 2020", ["at any time"]),
        ("how do I memoize fibonacci?", []),
        ("how do I memoize fibonacci for the tidegraph?", []),
    ):
        answer = await orchestrator.run({"operation": "extract", "query": {"text": text}})
        assert answer["channel"] == "c"
        run = await last_run(orchestrator)
        again = ["relax", "cr_query", "filter"] if given_up else []
        assert path_of(run) == ["plan", "cr_query", "filter", *again, "cr_write"]
        assert [step["detail"]["asks_again"] for step in run["steps"] if step["node"] == "relax"] == given_up


async def test_every_edge_taken_is_drawn(orchestrator: Orchestrator) -> None:
    drawn = {(edge["from"], edge["to"]) for edge in describe_graph()["edges"]}
    assert {edge for path in describe_graph()["paths"].values() for edge in pairwise(path)} <= drawn
    for request in (SAVE, {"operation": "list"}, {"operation": "tag", "channel": "c", "query": {}}, BRIEFING):
        assert (await orchestrator.run(request))["success"]
        assert set(pairwise(path_of(await last_run(orchestrator)))) <= drawn


@pytest.mark.usefixtures("without_pauses")
async def test_an_external_system_that_is_unavailable_for_a_moment_gets_the_briefing(database_url: str) -> None:
    registry = Registry(database_url)
    board, dead = Flaky(away=2), Flaky(away=99)
    try:
        await registry.save_conversation("c", SAVE["messages"], "cursor")
        orchestrator = Orchestrator(registry, actions=[board])
        answer = await orchestrator.run(BRIEFING)
        assert board.texts == [answer["briefing"]["text"]] * 3
        steps = (await last_run(orchestrator))["steps"]
        assert [step["status"] for step in steps if step["node"] == "external_action"] == ["failed"] * 2 + ["succeeded"]
        assert path_of({"steps": steps}).count("cr_query") == 1
        failed = await Orchestrator(registry, actions=[dead]).run(BRIEFING)
        # Another board of the same name gets no page that the first one has.
        assert (failed["success"], dead.texts) == (True, [])
    finally:
        registry.close()
