"""Test updates of open pages in a real browser."""

from __future__ import annotations

from urllib.parse import quote

import httpx
import pytest
from playwright.async_api import Page, Route, expect

from registry.access import Level
from registry.registry import Registry
from registry.storage.safety.tokens import create_token, revoke_token
from tests.pages.conftest import serving
from tests.pages.seeds import FIBONACCI, LOGIN, seed
from tests.seeded import Seeded

pytestmark = pytest.mark.anyio


async def say(server: str, channel: str, text: str, project: str | None = None) -> None:
    async with httpx.AsyncClient(timeout=60) as http:
        given = {"channel": channel, "messages": [{"role": "user", "text": text}], "meta": {"project": project}}
        answer = await http.post(f"{server}/bo/conversations", json=given)
    assert answer.status_code == 201


async def test_a_list_and_a_conversation_grow_while_open_and_nothing_moves(server: str, page: Page) -> None:
    # A message logged before the page listens is shown as well.
    held: list[Route] = []
    await page.route("**/bo/events*", lambda route: held.append(route))
    async with page.expect_request("**/bo/events*"):
        await page.goto(server)
    await say(server, "brand_new", "Something new", "/home/ann/greenhouse")
    for route in held:
        await route.continue_()
    await page.unroute("**/bo/events*")
    await expect(page.locator(".channel.arrived")).to_contain_text("Something new")
    await expect(page.locator(".channel").first).to_contain_text("Something new")
    await expect(page.locator(".shelf")).to_contain_text("greenhouse")

    await page.hover(".channel >> nth=1")
    await say(server, "brand_newer", "While one points at the list")
    await expect(page.locator("button[data-news]")).to_have_text("Show what is new (1)")
    await page.click("button[data-news]")
    await expect(page.locator(".channel").first).to_contain_text("While one points at the list")

    await page.goto(f"{server}/channels/{FIBONACCI}")
    first = page.locator(".message").first
    await first.scroll_into_view_if_needed()
    before = await first.bounding_box()
    await say(server, FIBONACCI, "한 가지 더 물어볼게요.")
    await expect(page.locator(".from-here + .message")).to_contain_text("한 가지 더")
    assert await first.bounding_box() == before


async def test_edits_of_another_window_are_shown(server: str, page: Page) -> None:
    async with httpx.AsyncClient(base_url=server, timeout=60) as http:
        await page.goto(server)
        rows = page.locator(f".channel[data-id='{FIBONACCI}']")
        await expect(rows).to_have_count(1)
        oldest = await page.locator(".channel").last.get_attribute("data-id")
        for channel in (FIBONACCI, oldest):
            await http.delete(f"/bo/channels/{quote(channel or '', safe='')}")
            await expect(page.locator(f".channel[data-id='{channel}']")).to_have_count(0)

        await page.goto(f"{server}/channels/{LOGIN}?list=project%3D/home/me/shop")
        await http.patch(f"/bo/channels/{LOGIN}", json={"title": "Renamed elsewhere", "tags": ["moved"]})
        row = page.locator(f".channel[data-id='{LOGIN}']")
        await expect(row).to_contain_text("Renamed elsewhere")
        await expect(row).to_contain_text("#moved")
        await expect(page.locator("#head h1")).to_have_text("Renamed elsewhere")
        await http.delete(f"/bo/channels/{LOGIN}")
        await expect(page.locator("#head")).to_contain_text("Deleted. It won't appear")


async def test_a_lost_connection_is_shown_and_missed_messages_are_loaded(server: str, page: Page) -> None:
    await page.route("**/bo/events*", lambda route: route.fulfill(status=503))
    await page.goto(f"{server}/channels/{FIBONACCI}")
    await expect(page.locator("#notice")).to_contain_text("Connection lost")
    place = await page.locator("h1").bounding_box()
    await say(server, FIBONACCI, "Said while nobody listened.")
    await page.unroute("**/bo/events*")
    await expect(page.locator(".from-here + .message")).to_contain_text("Said while nobody listened.")
    await expect(page.locator("#notice")).to_be_empty()
    assert await page.locator("h1").bounding_box() == place


async def test_a_filtered_list_grows_only_by_what_matches_it(server: str, page: Page) -> None:
    async with page.expect_request("**/bo/events*"):
        await page.goto(f"{server}/?project=/home/me/shop")
    rows = page.locator(".channel")
    before = await rows.count()
    await say(server, "elsewhere", "Of another project", "/home/me/garden")
    await say(server, "here", "Of this project", "/home/me/shop")
    await expect(rows.first).to_contain_text("Of this project")
    await expect(rows).to_have_count(before + 1)

    await rows.nth(1).hover()
    await say(server, "elsewhere", "More of another project", "/home/me/garden")
    await say(server, "here too", "More of this project", "/home/me/shop")
    await expect(page.locator("button[data-news]")).to_have_text("Show what is new (1)")
    await page.mouse.move(0, 0)
    await expect(rows.first).to_contain_text("More of this project")
    await expect(rows).to_have_count(before + 2)


async def test_a_list_that_was_filtered_later_or_empty_grows_too(server: str, page: Page) -> None:
    async with page.expect_request("**/bo/events*"):
        await page.goto(f"{server}/?q=zyxquokka")
    await page.fill(".list [data-search]", "")
    await expect(page.locator(".channel").first).to_be_visible()
    await say(server, "new", "After the search")
    await expect(page.locator(".channel").first).to_contain_text("After the search")

    async with page.expect_request("**/bo/events*"):
        await page.goto(f"{server}/channels/{LOGIN}?list=project%3D/home/me/empty")
    await page.click("[aria-label='More actions']")
    await page.fill("input[name=title]", "Half a title")
    await say(server, "first", "The first of its project", "/home/me/empty")
    await expect(page.locator(".channel")).to_have_count(1)
    assert await page.input_value("input[name=title]") == "Half a title"


async def test_a_reader_whose_token_is_revoked_while_reading_is_led_to_the_sign_in(
    seeded_file: Seeded, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backoffice.admission.RECHECK_S", 0.1)
    url = await seeded_file(seed)
    registry = Registry(url)
    made = await registry.write(lambda tx: create_token(tx, "me", Level.READ))
    await registry.write(lambda tx: create_token(tx, "other", Level.READ))  # without any, the server would be open
    with serving(url) as server:
        await page.goto(f"{server}/channels/{FIBONACCI}")
        await page.fill("[name=token]", made.secret)
        async with page.expect_response("**/bo/events*"):
            await page.keyboard.press("Enter")
        await page.wait_for_load_state("networkidle")
        await registry.write(lambda tx: revoke_token(tx, "me"))
        await expect(page.locator("[role=alert]")).to_contain_text("your session ended")
        assert page.url == f"{server}/login?next=/channels/{FIBONACCI}"
    registry.close()
