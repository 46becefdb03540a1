"""Test the activity on the Registry page."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import date, timedelta
from typing import Any

import httpx
import pytest

from backoffice.pages.viewer.today import year_map
from orchestrator.service import Orchestrator
from registry.domain import now
from registry.registry import Registry

pytestmark = pytest.mark.anyio


@pytest.fixture
async def orchestrator(database_url: str) -> AsyncIterator[Orchestrator]:
    registry = Registry(database_url)
    yield Orchestrator(registry)
    registry.close()


@pytest.fixture
def http(http: httpx.AsyncClient) -> httpx.AsyncClient:
    http.cookies.set("zone", "Asia/Seoul")
    return http


async def test_a_day_at_the_end_of_the_calendar_is_refused(http: httpx.AsyncClient) -> None:
    for day in ("0001-01-01", "9999-12-31", "someday"):
        assert (await http.get(f"/today?date={day}")).status_code == 400, day


async def say(orchestrator: Orchestrator, channel: str, days_ago: int, **meta: Any) -> None:
    at = (now() - timedelta(days=days_ago)).isoformat()
    messages = [{"role": "user", "text": f"About {channel}", "timestamp": at}]
    request = {"operation": "conversation_log", "channel": channel, "messages": messages, "metadata": meta}
    answer = await orchestrator.run({**request, "source": meta["source"]})
    assert answer["success"], answer


async def test_the_list_has_a_heading_for_each_day(http: httpx.AsyncClient, orchestrator: Orchestrator) -> None:
    for channel, days_ago in (("one", 0), ("two", 0), ("three", 1), ("four", 40)):
        await say(orchestrator, channel, days_ago, source="cursor")
    page = (await http.get("/")).text
    headings = re.findall(r'<h2 class="day">([^<]+)', page)
    assert [heading.strip() for heading in headings[:2]] == ["Today", "Yesterday"]
    assert len(headings) == 3
    yesterday = (await http.get("/", params={"from": "yesterday", "to": "yesterday"})).text
    assert re.findall(r'data-main href="/channels/(\w+)\?list=', yesterday) == ["three"]


async def test_activity_shows_sources_projects_and_messages_of_each_day(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    await say(orchestrator, "one", 0, source="cursor", project="/home/me/shop")
    await say(orchestrator, "two", 0, source="claude")
    await say(orchestrator, "old", 30, source="codex")
    page = (await http.get("/overview")).text
    marks = re.findall(r'aria-label="(\d{4}-\d\d-\d\d): (\d+) messages?"', page)
    assert [count for _, count in marks] == ["1", "2"]
    assert all(name in page for name in ("cursor", "claude", ">shop</a>"))
    assert "codex" not in page
    assert "/overview" in (await http.get("/")).text


@pytest.mark.both_databases
async def test_until_something_was_asked_the_overview_leads_to_clients_and_asks_about_a_conversation(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    said = [{"role": role, "text": f"The basket, part {n}"} for n in (1, 2) for role in ("user", "assistant")]
    await orchestrator.run({"operation": "conversation_log", "messages": said, "metadata": {"title": "A lost basket"}})
    await say(orchestrator, "one", 0, source="cursor")
    for language, question in (
        ("en", "continue the conversation about A lost basket"),
        ("ko", "A lost basket 대화 이어서 하자"),
    ):
        page = (await http.get("/overview", headers={"Accept-Language": language})).text
        assert 'href="/settings"' in page
        assert f'value="{question}"' in page
        assert 'action="/flow/try"' in page
    answer = await http.post("/flow/try", data={"operation": "extract", "text": question})
    assert "A lost basket" in (await http.get(answer.headers["Location"])).text
    assert question not in (await http.get("/overview", headers={"Accept-Language": language})).text


async def test_insights_have_a_table_behind_the_map_of_hours(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    monday = {"role": "user", "text": "The week begins", "timestamp": "2026-03-02T14:30:00+09:00"}
    await orchestrator.run({"operation": "conversation_log", "messages": [monday]})
    page = re.sub(r"\s+", " ", (await http.get("/insights", params={"last": "all"})).text)
    assert '<th scope="row">14</th><td class="number">1</td><td class="number">0</td>' in page


async def test_sources_are_linked_from_every_page(http: httpx.AsyncClient, orchestrator: Orchestrator) -> None:
    for address in ("/", "/flow"):
        assert 'href="/settings"' in (await http.get(address)).text
    assert ('action="/settings/sync"' in (await http.get("/")).text) == orchestrator.registry.is_embedded


def test_the_level_of_a_day_is_its_quartile() -> None:
    today = date(2026, 3, 4)
    days = year_map({"2026-03-02": 10_000, "2026-03-03": 1, "2026-03-01": 3, "2026-02-28": 40, "2024-01-01": 5}, today)
    levels = {day.date: day.level for day in days if day.messages}
    assert levels == {"2026-02-28": 3, "2026-03-01": 2, "2026-03-02": 4, "2026-03-03": 1}
    assert days[-1].date == "2026-03-04"
    assert {day.weekday for day in days if day.week == 0} == set(range(7))
