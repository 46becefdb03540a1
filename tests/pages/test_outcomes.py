"""Test which searches count as executions, and how guesses differ from answers."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from orchestrator.service import Orchestrator
from registry.errors import StorageError
from registry.storage.database import Database
from tests.pages.conftest import window
from tests.pages.seeds import LOGIN
from tests.pages.test_live import say

pytestmark = pytest.mark.anyio
HTMX = {"HX-Request": "true"}


async def runs(http: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await http.get("/bo/ao/executions", params=query)).json()["items"]
    return items


async def test_a_search_while_typing_is_no_execution_and_the_finished_one_is(http: httpx.AsyncClient) -> None:
    for words in ("c", "ca", "cache"):
        page = await http.get("/", params={"q": words, "typing": "true"}, headers=HTMX)
        assert f'data-list="/?q={words}"' in page.text, "the address has no parameter of typing"
    await http.get(f"/channels/{LOGIN}", params={"q": "rotat", "typing": "true"}, headers=HTMX)
    assert await runs(http, source="backoffice") == []
    assert "channel" in (await http.get("/", params={"q": "cache"})).text
    await http.get(f"/channels/{LOGIN}", params={"q": "rotation"})
    assert [run["operation"] for run in await runs(http, source="backoffice")] == ["search", "search_sessions"]


async def test_the_operators_own_searches_are_not_among_the_runs_unless_asked_for(http: httpx.AsyncClient) -> None:
    await http.get("/", params={"q": "cache"})
    [own] = await runs(http, source="backoffice")
    assert own["id"] not in (await http.get("/flow")).text
    assert own["id"] in (await http.get("/flow", params={"source": "backoffice"})).text


async def test_hints_are_not_among_the_runs_unless_asked_for(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    given = {"operation": "hint", "query": {"text": "Make the refresh tokens rotate"}, "source": "claude-code"}
    await orchestrator.run({**given, "channel": None}, "claude-code/2.1")
    shown = (await http.get("/flow")).text
    assert "Make the refresh tokens rotate" not in shown
    assert "Make the refresh tokens rotate" not in (await http.get("/palette", params={"q": "Make the refresh"})).text
    address = re.search(r'href="(/flow\?[^"]+)">Show hints', shown)
    assert address
    assert "Make the refresh tokens rotate" in (await http.get(address[1])).text


async def test_the_error_of_a_failed_search_replaces_the_old_list(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise StorageError("Could not read the registry.", "no such host")

    monkeypatch.setattr(Database, "read", broken)
    answer = await http.get("/", params={"q": "cache"}, headers=HTMX)
    assert (answer.status_code, answer.headers.get("HX-Retarget")) == (500, None)
    assert answer.headers["HX-Reselect"] == "#problem"
    further = await http.get("/", params={"q": "cache", "cursor": "50"}, headers=HTMX)
    assert further.headers["HX-Retarget"] == "#notice", "the rows so far stay"


async def guess(http: httpx.AsyncClient, orchestrator: Orchestrator) -> dict[str, Any]:
    query = {"text": "login page broken"}
    answer = await orchestrator.run({"operation": "extract", "query": query, "source": "claude"}, "claude-desktop/1.2")
    assert answer.get("confidence") == "low", answer
    return (await runs(http, limit=1))[0]


async def test_an_answer_of_low_confidence_is_a_guess_everywhere(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    before = (await http.get("/bo/ao/statistics")).json()["total"]
    run = await guess(http, orchestrator)
    assert (run["status"], run["error"]) == ("guessed", None)
    assert run["delivered"] > 0
    assert [one["id"] for one in await runs(http, status="guessed")] == [run["id"]]
    assert run["id"] not in {one["id"] for one in await runs(http, status="succeeded")}
    figures = (await http.get("/bo/ao/statistics")).json()
    assert figures["total"]["guessed"] == before["guessed"] + 1
    assert figures["total"]["succeeded"] == before["succeeded"]
    assert figures["total"]["failed"] == before["failed"]
    assert "guessed" not in figures["errors"]
    assert sum(point["failed"] for point in figures["series"]) == figures["total"]["failed"]
    for address in (f"/flow/{run['id']}", "/flow?status=guessed"):
        assert 'class="status guessed"' in (await http.get(address)).text


async def test_a_refused_call_shows_its_question(http: httpx.AsyncClient, orchestrator: Orchestrator) -> None:
    await orchestrator.run({"operation": "extract", "query": {"text": "the redis timeout", "limit": 0}})
    [run] = await runs(http, limit=1)
    assert (run["status"], run["asked"]) == ("failed", "the redis timeout")
    assert "the redis timeout" in (await http.get(f"/flow/{run['id']}")).text


async def test_a_search_typed_slowly_is_one_execution(server: str, browser: Browser) -> None:
    async with window(browser, script="") as page, httpx.AsyncClient(base_url=server, timeout=60) as http:
        await page.goto(server)
        await page.focus("main input[name=q]")
        await page.keyboard.type("token", delay=250)
        await expect(page.locator("main mark").first).to_be_visible()
        await expect(page).to_have_url(re.compile(r"\?q=token$"))
        while not await runs(http, source="backoffice"):
            await page.wait_for_timeout(100)
        assert [run["asked"] for run in await runs(http, source="backoffice")] == ["token"]


async def test_the_first_conversation_appears_without_a_reload(empty_server: str, page: Page) -> None:
    async with page.expect_request("**/bo/events*"):
        await page.goto(empty_server)
    await say(empty_server, "the_first_one", "Hello registry")
    await expect(page.locator("[data-main]")).to_contain_text("Hello registry")
