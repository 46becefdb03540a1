"""Test that recurring problems are shown with their conversations."""

from __future__ import annotations

import httpx
import pytest

from tests.backoffice.conftest import Log

pytestmark = pytest.mark.anyio

FAULT = "npm run build says\nTypeError: Cannot read properties of undefined (reading '{}')"


async def test_a_problem_of_two_conversations_is_shown_with_both(http: httpx.AsyncClient, log: Log) -> None:
    [first, _] = await log("shop", FAULT.format("map"), "Guard the list.", project="/home/me/shop")
    await log("blog", FAULT.format("id"), "It is not loaded yet.", project="/home/me/blog")
    await log("alone", "RuntimeError: only here and once", "Hm.")
    page = (await http.get("/insights/problems", headers={"Accept": "text/html"})).text
    assert "Cannot read properties of undefined" in page
    assert "2 conversations, 2 projects" in page
    assert f"/channels/shop?at={first}#{first}" in page.replace("&amp;", "&")
    assert "only here and once" not in page


@pytest.mark.both_databases
async def test_a_registry_without_any_problem_says_so(http: httpx.AsyncClient) -> None:
    page = (await http.get("/insights/problems", headers={"Accept": "text/html"})).text
    assert "No matches" in page
    assert "recurring" not in page


async def test_insights_link_to_problems_without_scripts(http: httpx.AsyncClient) -> None:
    page = (await http.get("/insights", headers={"Accept": "text/html"})).text
    assert '<noscript><a href="/insights/problems">Recurring problems</a></noscript>' in page
