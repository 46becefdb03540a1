"""Test channels found by words: best first, with passages; deleted ones on request."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from orchestrator.service import Orchestrator
from tests.backoffice.conftest import Log, problem_of

pytestmark = pytest.mark.anyio


async def found(http: httpx.AsyncClient, **query: Any) -> dict[str, Any]:
    answer = await http.get("/bo/channels", params=query)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


async def names(http: httpx.AsyncClient, **query: Any) -> list[str]:
    return [item["channel"] for item in (await found(http, **query))["items"]]


@pytest.mark.both_databases
async def test_words_find_the_best_channel_first_or_the_newest_on_request(http: httpx.AsyncClient, log: Log) -> None:
    await log("best", "Why does the redis timeout come?", "The redis timeout is 5 s: raise it.", "redis again")
    await log(
        "newer",
        "The weather in Seoul, and redis in passing among other things",
        start="2025-09-30T10:00",
    )
    assert await names(http, q="redis timeout") == ["best", "newer"]
    assert await names(http, q="redis timeout", order="newest") == ["newer", "best"]
    assert await names(http, q="redis timeout", order="asc") == ["best", "newer"]
    assert await names(http, q="after:2020", order="asc") == ["best", "newer"], "without a query, too"
    assert await names(http, q="after:2020") == ["newer", "best"]


@pytest.mark.both_databases
async def test_a_found_channel_shows_its_passages_and_its_number_of_matches(http: httpx.AsyncClient, log: Log) -> None:
    ids = await log("c", "Why does the redis timeout come?", "no idea", "the redis timeout is 5 s")
    [item] = (await found(http, q="redis timeout"))["items"]
    assert item["match_count"] == 2
    assert {passage["id"] for passage in item["passages"]} == {ids[0], ids[2]}
    assert "**redis**" in item["passages"][0]["snippet"]
    assert (item["message_count"], bool(item["updated_at"])) == (3, True)
    [item] = (await found(http, q="redis timeout", order="newest"))["items"]
    assert item["passages"][0]["id"] in ids
    assert "passages" not in (await found(http))["items"][0]


async def test_the_list_loads_only_the_passage_of_each_row(
    http: httpx.AsyncClient, log: Log, orchestrator: Orchestrator
) -> None:
    await log("c", "Why does the redis timeout come?", "no idea", "the redis timeout is 5 s")
    page = await http.get("/", params={"q": "redis timeout"}, headers={"Accept": "text/html"})
    assert "2 hits" in page.text
    await orchestrator.settle()
    [run] = (await http.get("/bo/ao/executions", params={"operation": "search_sessions"})).json()["items"]
    run = (await http.get(f"/bo/ao/executions/{run['id']}")).json()
    answer = await orchestrator.run({"operation": "search_sessions", "query": run["request"]["query"]})
    [session] = answer["sessions"]
    assert (session["match_count"], len(session["matches"])) == (2, 1)


async def test_pages_of_a_search_neither_repeat_nor_skip(http: httpx.AsyncClient, log: Log) -> None:
    for i in range(5):
        await log(f"c{i}", f"the redis timeout number {i}")
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = await found(http, q="redis timeout", limit=2, **cursor)
        seen += [item["channel"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert sorted(seen) == [f"c{i}" for i in range(5)]
    unknown = await http.get("/bo/channels", params={"q": "redis timeout", "cursor": "no cursor"})
    assert problem_of(unknown, 400)["code"] == "INVALID_REQUEST"


@pytest.mark.both_databases
async def test_deleted_channels_are_listed_with_the_number_of_their_messages(http: httpx.AsyncClient, log: Log) -> None:
    await log("gone", "one", "two")
    await log("here", "three")
    await http.delete("/bo/channels/gone")
    page = await found(http, deleted=True)
    assert [(item["channel"], item["message_count"]) for item in page["items"]] == [("gone", 2)]
    assert await names(http) == ["here"]
    assert await names(http, deleted=True, q="gon") == ["gone"]


async def test_rows_of_a_search_are_complete_for_any_number_of_matches(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    words = "the error is in the database of the shop, and some more words to read here. " * 12
    for i in range(60):
        messages = [{"role": "user", "text": f"step {i}-{j}: {words}"} for j in range(6)]
        request = {"operation": "conversation_log", "channel": f"c{i}", "messages": messages, "source": "cursor"}
        await orchestrator.run({**request, "metadata": {"title": f"Shop {i}", "project": "/home/me/shop"}})
    items = (await found(http, q="error", limit=50))["items"]
    assert len(items) > 30
    for item in items:
        assert item["title"].startswith("Shop ")
        assert (item["project_name"], item["message_count"]) == ("shop", 6)
        assert item["updated_at"]
        assert item["passages"]
    page = (await http.get("/", params={"q": "error"}, headers={"Accept": "text/html"})).text
    assert page.count('href="/channels/c') >= 50, "a full page"
