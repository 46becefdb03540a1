"""Test the page of briefings: read by day, and made."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import date, timedelta

import httpx
import pytest

from orchestrator.service import Orchestrator
from registry.registry import Registry
from tests.backoffice.application import application, client_of

pytestmark = pytest.mark.anyio
DAY = "2026-01-05"


class BriefingTarget:
    """An external system that accepts briefings or refuses them."""

    def __init__(self, name: str, error: str = "") -> None:
        self.name, self.error = name, error

    async def was_done(self, about: Mapping[str, str]) -> bool | None:
        return None

    async def perform(self, about: Mapping[str, str]) -> str:
        if self.error:
            raise ValueError(self.error)
        return "page 7"


@pytest.fixture
async def http(database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    registry = Registry(database_url)
    orchestrator = Orchestrator(registry, actions=[BriefingTarget("wiki"), BriefingTarget("notes", "the disk is full")])
    said = {"role": "user", "text": "Let's go with <b>Redis</b>.", "timestamp": f"{DAY}T12:00:00Z"}
    assert (await orchestrator.run({"operation": "save", "channel": "shop", "messages": [said]}))["success"]
    async with client_of(application(orchestrator), accept="text/html", origin="http://127.0.0.1:8765") as client:
        yield client
    registry.close()


async def test_a_briefing_is_made_and_read_on_the_page(http: httpx.AsyncClient) -> None:
    today = (await http.get("/today")).text
    assert "No conversations on this day" in today
    assert "Make the briefing" not in today
    assert "No briefing of this day yet" in (await http.get("/today", params={"date": DAY})).text
    made = await http.post("/today", data={"date": DAY})
    assert made.status_code == 303
    page = (await http.get(made.headers["location"])).text
    assert f"Briefing of {DAY}" in page
    assert "written by the program" in page
    assert "<b>Redis" not in page
    assert "wiki: page 7" in page
    assert "notes: ValueError: the disk is full" in page
    assert (await http.get("/today")).text.count(f">{DAY}</a>") == 1


async def test_the_page_links_to_the_previous_and_next_day(http: httpx.AsyncClient) -> None:
    page = (await http.get("/today", params={"date": DAY})).text
    assert 'data-id="shop"' in page
    assert 'data-id="shop"' not in (await http.get("/today")).text
    for side in (-1, 1):
        beside = date.fromisoformat(DAY) + timedelta(days=side)
        assert f'href="/today?date={beside}"' in page
    assert "The day after" not in (await http.get("/today")).text, "there is none yet"
    assert (await http.get("/today", params={"date": "someday"})).status_code == 400


async def test_a_day_without_conversations_says_so(http: httpx.AsyncClient) -> None:
    refused = await http.post("/today", data={"date": "2020-01-01"})
    assert refused.status_code == 404
    assert "No conversations on that day" in refused.text
