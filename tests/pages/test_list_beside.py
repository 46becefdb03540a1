"""Test that the list next to an opened conversation or run keeps its filters."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urlencode

import httpx
import pytest
from playwright.async_api import Page, expect

from orchestrator.service import Orchestrator
from tests.pages.seeds import FIBONACCI, LOGIN, LONG

pytestmark = pytest.mark.anyio


def rows_of(page: str) -> list[str]:
    """Return the addresses of a list's items."""
    return [unescape(address) for address in re.findall(r'data-main href="([^"#]+)', page[: page.index('id="detail"')])]


def links_within(page: str, path: str) -> list[str]:
    """Return the links of an opened item to its own page."""
    return [unescape(link) for link in re.findall(rf'href="({path}(?:\?[^"]*)?)"', page[page.index('id="detail"') :])]


async def text_of(http: httpx.AsyncClient, address: str) -> str:
    answer = await http.get(address)
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_an_opened_conversation_has_its_filtered_list_next_to_it(http: httpx.AsyncClient) -> None:
    for filters in (
        {"source": "codex"},
        {"source": "codex", "q": "step"},
        {"project": "/home/me/shop", "to": "2025-09-30"},
    ):
        listed = await text_of(http, f"/?{urlencode(filters)}")
        [row] = rows_of(listed)
        opened = await text_of(http, row)
        assert rows_of(opened) == [row]
        assert f'href="/?{urlencode(filters).replace("&", "&amp;")}"' in opened, "the link back leads to the same list"
        own = links_within(opened, f"/channels/{LONG}")
        assert len(own) > 100, "the outline, further messages, deleted ones"
        assert [link for link in own if urlencode({"list": urlencode(filters)}) not in link] == []


async def test_a_filter_of_the_list_that_is_not_understood_is_named(http: httpx.AsyncClient) -> None:
    answer = await http.get(f"/channels/{LOGIN}", params={"list": "from=someday"})
    assert (answer.status_code, "someday" in answer.text) == (400, True)


async def test_a_search_is_recorded_once_and_not_again_with_each_opened_conversation(http: httpx.AsyncClient) -> None:
    await http.get(f"/channels/{LOGIN}", params={"list": "q=rotation"})
    assert (await http.get("/bo/ao/executions", params={"source": "backoffice"})).json()["items"] == []


async def test_a_form_of_an_opened_conversation_leads_back_to_the_same_list(http: httpx.AsyncClient) -> None:
    here = f"/channels/{LOGIN}?list=source%3Dclaude"
    from_here = {"Referer": f"http://127.0.0.1:8765{here}"}
    for form in ("/pins", "/deletions", "/restorations"):
        answer = await http.post(form, data={"channel": LOGIN}, headers=from_here)
        assert answer.headers["Location"] == here
    elsewhere = {"Referer": "http://127.0.0.1:8765/flow/exec_1?list=status%3Dfailed"}
    answer = await http.post("/restorations", data={"channel": LOGIN}, headers=elsewhere)
    assert answer.headers["Location"] == f"/channels/{LOGIN}", "filters of runs are none of conversations"


async def test_an_opened_run_has_its_filtered_list_next_to_it(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    await orchestrator.run({"operation": "extract", "query": {"text": "cookie"}, "source": "cursor"})
    listed = await text_of(http, "/flow?operation=extract&source=cursor")
    [row] = rows_of(listed)
    opened = await text_of(http, row)
    assert rows_of(opened) == [row]
    assert 'class="back" href="/flow?operation=extract&amp;source=cursor"' in opened
    path = row.partition("?")[0]
    answer = await http.post(f"{path}/rating", data={"useful": "true"}, headers={"Referer": f"http://127.0.0.1{row}"})
    assert answer.headers["Location"] == f"{row}#rating"
    answer = await http.post(f"{path}/again", headers={"Referer": f"http://127.0.0.1{row}"})
    assert answer.headers["Location"].partition("?")[2] == row.partition("?")[2]


async def test_a_list_that_is_searched_next_to_a_conversation_keeps_it_open(server_to_read: str, page: Page) -> None:
    await page.goto(f"{server_to_read}/?source=claude")
    await page.locator(".list [data-main]").first.click()
    await expect(page.locator("#detail h1")).to_have_text("Refresh tokens")
    await page.reload()
    await expect(page.locator(".list [data-main]")).to_have_count(1)
    await expect(page.locator("#detail h1")).to_have_text("Refresh tokens")

    await page.fill(".list [data-search]", "rotation")
    await expect(page).to_have_url(re.compile("rotation"))
    await expect(page.locator("#detail h1")).to_have_text("Refresh tokens")
    await expect(page.locator(".list [data-main]")).to_have_attribute("aria-current", "true")
    await expect(page).to_have_title(re.compile("Refresh tokens"))
    await page.reload()
    await expect(page.locator(".list [data-search]")).to_have_value("rotation")
    await expect(page.locator("#detail h1")).to_have_text("Refresh tokens")

    await page.go_back()
    await expect(page).to_have_url(f"{server_to_read}/?source=claude")
    await expect(page.locator(".list [data-search]")).to_have_value("")
    await expect(page.locator("h1")).to_have_text("Conversations")
    await page.go_forward()
    await expect(page.locator("#detail h1")).to_have_text("Refresh tokens")
    await expect(page.locator(".list [data-search]")).to_have_value("rotation")


async def test_removing_a_filter_and_sorting_keep_the_conversation_open(server_to_read: str, page: Page) -> None:
    await page.goto(f"{server_to_read}/?source=claude&q=rotation")
    await page.locator(".list [data-main]").first.click()
    await expect(page.locator("#detail h1")).to_have_text("Refresh tokens")
    await page.locator(".listed a", has_text="Newest").click()
    await expect(page).to_have_url(re.compile(r"/channels/.*order%3Dnewest"))
    await expect(page.locator("#detail h1")).to_have_text("Refresh tokens")
    await page.locator(".list .chip a").click()
    await expect(page.locator(".list .chip")).to_have_count(0)
    await expect(page.locator(".list select[name=source]")).to_have_value("")
    await expect(page.locator("#detail h1")).to_have_text("Refresh tokens")
    await page.fill(".list [data-search]", "")
    await expect(page.locator(".list [data-main]")).not_to_have_count(1)


async def test_words_of_a_slow_search_are_kept_when_a_row_is_opened_on_a_phone(server_to_read: str, page: Page) -> None:
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.goto(server_to_read)
    await page.route("**/?q=*", lambda _: None)  # its answer would come later
    async with page.expect_request("**/?q=rotation*"):
        await page.fill(".list [data-search]", "rotation")
    await page.locator(f"[data-id='{FIBONACCI}'] [data-main]").click()
    await expect(page.locator("#detail h1")).to_have_text("피보나치 메모이제이션")
    await page.unroute("**/?q=*")
    await page.wait_for_load_state()
    await page.locator(".back").click()
    await expect(page.locator(".list [data-search]")).to_have_value("rotation")
    await expect(page.locator(".list [data-main]")).to_have_count(1)
    await page.wait_for_load_state()  # leaving a page while it loads cuts off a script that the next one needs
    await page.go_back()
    await expect(page.locator("#detail h1")).to_have_text("피보나치 메모이제이션")
    await page.wait_for_load_state()
    await page.go_back()
    await expect(page.locator(".list [data-search]")).to_have_value("rotation")


async def test_back_after_another_search_shows_the_list_of_its_address(server_to_read: str, page: Page) -> None:
    await page.goto(f"{server_to_read}/?tag=python")
    await page.locator(".list [data-main]").first.click()
    await expect(page.locator("#detail h1")).to_have_text("피보나치 메모이제이션")
    await page.fill(".list [data-search]", "nothing has zyxquokka")
    await expect(page.locator(".list .empty")).to_be_visible()
    await page.go_back()
    await expect(page.locator(".list [data-main]")).to_have_count(1)
    assert FIBONACCI in str(await page.locator(".list [data-main]").get_attribute("href"))


async def test_the_row_that_was_clicked_last_is_opened_and_is_one_step_of_the_history(
    server_to_read: str, page: Page
) -> None:
    await page.goto(server_to_read)
    await page.route(f"**/channels/{LOGIN}*", lambda _: None)  # its answer would come later
    async with page.expect_request(f"**/channels/{LOGIN}*"):
        await page.locator(f"[data-id='{LOGIN}'] [data-main]").click()
    async with page.expect_event("requestfailed", lambda request: LOGIN in request.url):
        await page.locator(f"[data-id='{FIBONACCI}'] [data-main]").dblclick()
    await expect(page.locator("#detail h1")).to_have_text("피보나치 메모이제이션")
    async with page.expect_event("requestfinished", lambda request: request.url.endswith(FIBONACCI)):
        await page.locator(f"[data-id='{FIBONACCI}'] [data-main]").click()
    await page.go_back()
    await expect(page).to_have_url(f"{server_to_read}/")
