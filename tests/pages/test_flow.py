"""Test the flow monitor in a real browser."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from tests.pages.axe import violations
from tests.pages.conftest import assert_still, watch_movement
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, write

pytestmark = pytest.mark.anyio


async def ask(server: str, text: str) -> str:
    """Search for some words; return the id of that run."""
    async with httpx.AsyncClient(base_url=server, timeout=60) as http:
        await http.get("/bo/search", params={"q": text})
        item = (await http.get("/bo/ao/executions", params={"limit": 1})).json()["items"][0]
        return str(item["id"])


async def extract(server: str, text: str) -> str:
    """Extract by some words; return the id of that run."""
    async with httpx.AsyncClient(base_url=server, timeout=60) as http:
        await http.post("/bo/ao/run", json={"operation": "extract", "query": {"text": text}})
    return await last_extract(server)


async def last_extract(server: str) -> str:
    async with httpx.AsyncClient(base_url=server, timeout=60) as http:
        answer = await http.get("/bo/ao/executions", params={"operation": "extract"})
        return str(answer.json()["items"][0]["id"])


async def test_a_new_run_appears_in_the_open_list_and_waits_while_paused(server: str, page: Page) -> None:
    async with page.expect_request("**/bo/events*"):
        await page.goto(f"{server}/flow")
    rows = page.locator("[data-id]")
    before = await rows.count()
    first = await ask(server, "cache")
    await expect(rows.first).to_have_attribute("data-id", first)
    await expect(rows).to_have_count(before + 1)
    await page.click("[data-live]")
    await expect(page.locator("[data-live]")).to_have_text("Resume")
    second = await ask(server, "retry")
    await expect(page.locator("[data-live]")).to_contain_text("1 new")
    await expect(rows.first).to_have_attribute("data-id", first)
    await page.click("[data-live]")
    await expect(rows.first).to_have_attribute("data-id", second)


async def test_a_filtered_list_of_runs_grows_and_counts_only_what_matches_it(server: str, page: Page) -> None:
    run = await last_extract(server)
    async with page.expect_request("**/bo/events*"):
        await page.goto(f"{server}/flow/{run}?list=operation%3Dextract")
    rows, button = page.locator("#rows [data-id]"), page.locator("[data-live]")
    await expect(rows).to_have_count(1)
    await ask(server, "retry")
    first = await extract(server, "cache")
    await expect(rows.first).to_have_attribute("data-id", first)
    await expect(rows).to_have_count(2)
    await button.click()
    await ask(server, "socket")
    await extract(server, "token")
    await expect(button).to_have_text("Resume (1 new)")
    await button.click()
    await expect(rows).to_have_count(3)


async def test_a_running_run_is_shown_at_the_foot_of_the_window_and_moves_nothing(server: str, page: Page) -> None:
    await page.goto(f"{server}/flow")
    first = page.locator("#rows > li").first
    before = await first.bounding_box()
    run = '<section id="running"><h2>Running now</h2><ol class="runs"><li class="run">extract</li></ol></section>'
    await page.route("**/flow/running", lambda route: route.fulfill(body=run, content_type="text/html"))
    await expect(page.locator("#running")).to_be_in_viewport(ratio=1)
    assert await first.bounding_box() == before


async def test_a_chosen_filter_is_in_the_address_and_applies_to_new_runs(server: str, page: Page) -> None:
    await page.goto(f"{server}/flow")
    await page.click("summary[aria-label='Filters']")
    await page.select_option("[name=operation]", "extract")
    await expect(page.locator("#rows [data-id]")).to_have_count(1)
    await expect(page).to_have_url(re.compile("operation=extract"))
    await expect(page.locator("[data-live]")).to_be_visible()
    await ask(server, "cache")
    await page.select_option("[name=operation]", "search")
    await expect(page.locator("[data-id]")).to_have_count(1)


async def test_older_runs_load_while_scrolling(server_to_read: str, page: Page) -> None:
    await page.goto(f"{server_to_read}/flow")
    await page.locator("[data-id]").nth(49).scroll_into_view_if_needed()
    await expect(page.locator("[data-id]")).to_have_count(76)


async def test_a_run_is_opened_by_keys_and_links_to_the_message(server_to_read: str, page: Page) -> None:
    await page.goto(f"{server_to_read}/flow?operation=extract")
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await expect(page.locator("h1")).to_contain_text("피보나치")
    await page.click(".technical > summary")
    await expect(page.locator(".node.taken")).to_have_count(4)
    await page.locator(".verdicts a").first.click()
    await expect(page.locator(".message:target")).to_contain_text("피보나치")


async def test_the_chart_covers_the_period_and_a_selection_on_it_narrows_it(server: str, page: Page) -> None:
    await ask(server, "cache")
    before = datetime.now(UTC)
    await page.goto(f"{server}/insights?last=24h")
    box = await page.locator(".u-over").bounding_box()
    assert box
    right, y = box["x"] + box["width"] - 1, box["y"] + 40
    await page.mouse.move(right, y)
    await page.mouse.down()
    await page.mouse.move(right - box["width"] / 2, y, steps=4)
    await page.mouse.up()
    await expect(page).to_have_url(re.compile(r"from=.+&to=.+"))
    chosen = parse_qs(urlsplit(page.url).query)
    start, end = (datetime.fromisoformat(chosen[name][0]) for name in ("from", "to"))
    assert timedelta(hours=12) <= end - start <= timedelta(hours=13)
    assert timedelta(0) <= end - before <= timedelta(hours=1), "the selection includes the whole last bucket"
    await expect(page.locator(".summary.figures")).to_be_visible()


async def test_the_chart_follows_the_light_and_dark_scheme(server_to_read: str, page: Page) -> None:
    await page.goto(f"{server_to_read}/insights")
    await expect(page.locator(".chart canvas")).to_have_count(1)
    before = await page.evaluate("document.querySelector('canvas').toDataURL()")
    await page.click("[data-theme-switch]")
    await page.wait_for_function("before => document.querySelector('canvas').toDataURL() !== before", arg=before)


@pytest.fixture
def clients(empty_home: Path) -> Path:
    """Return a home folder with clients, one with a history that has something unknown in it."""
    for folder in (".cursor", ".gemini", ".codex/sessions"):
        (empty_home / folder).mkdir(parents=True)
    talk = Dialogue(session_id(7))
    talk.user("Why does the basket lose its items?")
    talk.says("It makes a new list each time.", "msg_1")
    talk.add("hologram", content="?")
    write(empty_home / ".claude", talk)
    return empty_home


async def test_a_sync_is_started_and_its_outcome_is_shown(server: str, page: Page, clients: Path) -> None:
    await page.goto(f"{server}/settings")
    store = page.locator(".store", has_text="Claude Code")
    await expect(store).to_contain_text("not read yet")
    await page.click("text=Sync now")
    await expect(page.locator(".outcome")).to_contain_text("2 new messages")
    await expect(store).to_contain_text("1 session")
    await store.locator("summary").click()
    await expect(store.locator(".reasons")).to_contain_text("record hologram unknown to this reader")
    await expect(page.locator("button", has_text="Sync now")).to_be_enabled()


async def test_a_client_is_connected_by_three_clicks_after_its_changes_were_shown(
    server: str, page: Page, clients: Path
) -> None:
    settings = clients / ".cursor" / "mcp.json"
    settings.write_text('{"mcpServers": {"other": {"command": "x"}}}\n', encoding="utf-8")
    await page.goto(server)
    await page.get_by_role("link", name="Settings").click()
    cursor = page.locator(".client", has_text="Cursor")
    await expect(cursor.locator(".status.missing")).to_have_count(2)
    await cursor.get_by_role("button", name="Connect Cursor").click()
    await expect(page.locator(".gi", has_text='"context-registry"')).to_be_visible()
    assert "context-registry" not in settings.read_text(encoding="utf-8"), "nothing is written before the preview"
    await page.get_by_role("button", name="Write the changes").click()
    await expect(cursor.locator(".status.installed")).to_have_count(2)
    assert json.loads(settings.read_text(encoding="utf-8"))["mcpServers"].keys() == {"other", "context-registry"}
    await cursor.get_by_role("button", name="Disconnect Cursor").click()
    await expect(page.locator(".gd", has_text='"context-registry"')).to_be_visible()
    settings.write_text('{"mcpServers": {"new": {"command": "y"}}}\n', encoding="utf-8")
    await page.get_by_role("button", name="Write the changes").click()
    await expect(page.locator("main h2")).to_have_text(
        "Disconnect Cursor"
    )  # the file has changed since: it is shown again
    await page.get_by_role("button", name="Write the changes").click()
    await expect(cursor.locator(".status.missing")).to_have_count(2)
    assert json.loads(settings.read_text(encoding="utf-8")) == {"mcpServers": {"new": {"command": "y"}}}


async def test_an_empty_monitor_says_what_to_do(empty_server: str, page: Page) -> None:
    for address in ("/flow", "/insights"):
        await page.goto(empty_server + address)
        await expect(page.locator(".empty code").first).to_have_text("ctxr search hello")
    await page.goto(f"{empty_server}/flow")
    await expect(page.locator("[data-live]")).to_be_visible()
    await ask(empty_server, "hello")
    await expect(page.locator("[data-id]")).to_have_count(1)


async def test_the_monitor_is_accessible_fits_the_window_and_nothing_moves(
    server: str, page: Page, clients: Path, axe: str
) -> None:
    await watch_movement(page)
    run = await last_extract(server)
    await ask(server, "cache")
    async with httpx.AsyncClient(base_url=server, timeout=60) as http:
        await http.post("/bo/ao/run", json={"operation": "extract", "channel": "nobody/" + "long" * 40})
    for address, theme, width in (
        (f"/flow/{run}", "dark", 390),
        (f"/flow/{run}", "light", 1280),
        ("/settings/trash", "dark", 390),
        ("/settings/forget", "light", 390),
        ("/flow/try", "dark", 390),
        ("/flow/exec_none", "light", 390),
        ("/?from=garbage", "light", 390),
    ):
        await page.set_viewport_size({"width": width, "height": 844})
        await page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        await page.goto(server + address)
        assert await page.evaluate("document.documentElement.scrollWidth") <= width, address
        await assert_still(page, 0.02)
        assert await violations(page, axe) == [], address


async def test_enter_searches_without_scripts_too(server_to_read: str, browser: Browser) -> None:
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(server_to_read)
    await page.fill("main [name=q]", "cookie")
    await page.press("main [name=q]", "Enter")
    await expect(page).to_have_url(re.compile("q=cookie"))
    await page.goto(f"{server_to_read}/flow")
    await page.click("summary[aria-label='Filters']")
    await page.fill(".filters [name=channel]", "nobody")
    await page.press(".filters [name=channel]", "Enter")
    await expect(page.locator(".list .empty h2")).to_have_text("No matching runs")
    await context.close()


async def test_a_run_to_check_is_marked_once_when_it_is_open(server: str, page: Page) -> None:
    missed = {"operation": "extract", "query": {"text": "quokka xyzzy"}}
    await page.request.post(f"{server}/bo/ao/run", data=missed)
    await page.goto(f"{server}/flow")
    await page.locator("#to-check [data-main]").first.click()
    await expect(page.locator("#detail h1")).to_be_visible()
    marked = page.locator(".list [data-main][aria-current]")
    await expect(marked).to_have_count(1)
    await page.reload()
    await expect(marked).to_have_count(1)
    await expect(page.locator("#to-check [aria-current]")).to_have_count(1)
