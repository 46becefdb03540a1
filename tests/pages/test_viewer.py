"""Test the Registry Viewer in a real browser."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import closing
from urllib.parse import unquote

import httpx
import pytest
from playwright.async_api import Browser, Locator, Page, Response, expect

from registry.errors import StorageError
from registry.registry import Registry
from registry.storage.database import Database
from tests.pages.axe import violations
from tests.pages.conftest import assert_still, copied, serving, watch_movement, window
from tests.pages.seeds import AGENT, FIBONACCI, HOSTILE, LOGIN, LONG, seed
from tests.seeded import Seeded

pytestmark = pytest.mark.anyio
AGENT_PAGE = f"/channels/{AGENT.replace('/', '%2F')}"


async def test_conversations_are_found_while_typing(server_to_read: str, page: Page) -> None:
    await page.goto(server_to_read)
    await page.keyboard.press("/")
    await page.keyboard.type("rotation")
    await expect(page.locator(".channel")).to_have_count(1)
    await expect(page).to_have_url(re.compile(r"\?q=rotation"))
    await expect(page.locator("main [data-search]")).to_be_focused()
    await page.click(".hit")
    await expect(page.locator(".message:target")).to_contain_text("And rotation?")


async def test_the_list_loads_more_while_scrolling(server_to_read: str, page: Page) -> None:
    await page.goto(server_to_read)
    await page.locator(".channel").nth(49).scroll_into_view_if_needed()
    await expect(page.locator(".channel")).to_have_count(75)
    await expect(page.locator(".more")).to_have_count(0)


async def test_back_returns_to_the_list_as_it_was_left(server_to_read: str, page: Page) -> None:
    await page.goto(server_to_read)
    await page.fill("[data-search]", "vectors")
    await page.wait_for_url("**/?q=vectors*")
    rows, current = page.locator("#rows [data-main]"), page.locator("#rows [aria-current]")
    titles = await rows.locator(".title").all_inner_texts()
    for row in (20, 22):
        await rows.nth(row).click()
        await expect(page.locator("#detail h1")).to_have_text(titles[row])
        await expect(page.locator("#beside")).to_be_attached()
    scrolled = await page.locator(".scroll").evaluate("(list) => list.scrollTop")
    assert scrolled > 0
    await page.go_back()
    await expect(page.locator("#detail h1")).to_have_text(titles[20])
    await expect(current).to_contain_text(titles[20])
    await page.go_back()
    await expect(page.locator("#overview")).to_be_visible()
    await expect(current).to_have_count(0)
    assert await page.input_value("[data-search]") == "vectors"
    assert await page.locator(".scroll").evaluate("(list) => list.scrollTop") == scrolled
    await page.set_viewport_size({"width": 390, "height": 844})
    await rows.nth(20).click()
    await page.click(".back")
    await page.wait_for_url("**/?q=vectors*")


async def test_a_conversation_is_opened_and_read_by_keys(server_to_read: str, page: Page) -> None:
    await page.goto(server_to_read)
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await page.keyboard.press("k")
    await expect(page.locator("[data-main]").nth(1)).to_be_focused()
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await expect(page.locator("h1")).to_have_text("Refresh tokens")
    await page.wait_for_load_state()
    await page.keyboard.press("n")
    await expect(page.locator(".message").first).to_be_focused()
    await page.keyboard.press("?")
    await expect(page.locator("#help")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator("#help")).to_be_hidden()


async def test_times_are_in_the_readers_zone_and_inferred_ones_are_marked(server_to_read: str, page: Page) -> None:
    await page.goto(server_to_read + AGENT_PAGE)
    times = page.locator(".message time")
    await expect(times.first).to_have_text("2025-10-03 23:30:15")
    guessed = page.locator("time.inferred")
    await expect(guessed).to_have_count(2)
    assert "inferred" in str(await guessed.first.get_attribute("title"))


async def test_a_conversation_of_one_day_shows_its_date_once(server_to_read: str, page: Page) -> None:
    facts = page.locator("[data-facts]")
    await page.goto(f"{server_to_read}/channels/{LOGIN}")
    await expect(facts).to_contain_text("2025-10-01 23:30 – 23:32")
    await page.goto(f"{server_to_read}/channels/{LONG}")
    await expect(facts).to_contain_text("2025-09-29 23:30 – 2025-09-30 02:49")


async def test_a_block_of_code_is_copied(server_to_read: str, page: Page) -> None:
    await page.goto(f"{server_to_read}/channels/{FIBONACCI}")
    block = page.locator(".code").first
    await block.hover()
    await block.locator(".copy").click()
    await copied(page, "def fib(n):\n    if n < 2:")


async def test_the_prompt_for_another_ai_is_copied(server_to_read: str, page: Page) -> None:
    await page.goto(f"{server_to_read}/channels/{LOGIN}")
    await page.click("text=Continue in…")
    await page.click(".panel[open] .primary")
    shown = str(await page.locator("#prompt").text_content())
    prompt = await copied(page, shown[:40])
    for part in ("`extract`", f'{{"channel": "{LOGIN}", "query": {{"limit": 50}}}}'):
        assert part in prompt
    boxes = "(links) => links.map((link) => link.getBoundingClientRect().toJSON())"  # at once: the labels change
    cursor, claude, *_ = await page.locator(".panel[open] a.button").evaluate_all(boxes)
    assert claude["x"] >= cursor["x"] + cursor["width"] + 4 or claude["y"] >= cursor["y"] + cursor["height"]
    link = await page.get_attribute("text=Open Cursor", "href") or ""
    assert link.startswith("cursor://anysphere.cursor-deeplink/prompt?text=")
    assert unquote(link.partition("text=")[2]) == prompt
    await page.click("[aria-label='Copy the command for Codex']")
    assert await copied(page, "ctxr resume") == f"ctxr resume {LOGIN} --in codex --run"


async def test_a_page_keeps_its_title_when_the_overview_loads(server_to_read: str, page: Page) -> None:
    await page.goto(server_to_read)
    await expect(page.locator("#overview")).to_be_visible()
    assert (await page.title()).startswith("Conversations")


async def test_hostile_texts_are_shown_as_text(server_to_read: str, page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.goto(f"{server_to_read}/channels/{HOSTILE}")
    await expect(page.locator(".message").first).to_contain_text("<script>document.title='pwned'</script>")
    assert "pwned'" in await page.title(), "the title is shown as text"
    assert await page.title() != "pwned"
    assert await page.locator(".prose :is(img, script, style, iframe, [id], [style], [onerror])").count() == 0
    assert all(address.startswith(server_to_read) for address in asked)


async def test_a_list_ends_after_some_pages_and_continues_on_its_own_page(seeded_file: Seeded, page: Page) -> None:
    url = await seeded_file(seed)
    with closing(Registry(url)) as registry:
        for i in range(160):
            message = {"role": "user", "text": f"Question {i} about parsers"}
            await registry.save_conversation(f"parser_{i}", [message], "cursor", {})
        story = [{"role": "user", "text": f"Chapter {i}"} for i in range(100)]
        await registry.save_conversation("story", story, "cursor", {"title": "A long story"})
    with serving(url) as server:
        await page.goto(server)
        rows = page.locator("#rows [data-row]")
        more = page.locator("#rows .more")
        for count in (100, 150):
            await more.scroll_into_view_if_needed()
            await expect(rows).to_have_count(count)
        await more.scroll_into_view_if_needed()
        await page.wait_for_timeout(300)
        await expect(rows).to_have_count(150)
        assert await page.evaluate("document.querySelectorAll('*').length") < 5_000
        await page.get_by_role("link", name="A long story").click()
        await page.locator("#messages .later").scroll_into_view_if_needed()
        await expect(page.locator("#messages")).to_contain_text("Chapter 70")
        await more.click()
        await expect(page).to_have_url(re.compile("cursor="))
        await expect(page.locator("#rows")).to_contain_text("Question 1 about parsers")


async def test_a_long_conversation_is_scrolled_from_end_to_end(server_to_read: str, page: Page) -> None:
    await page.goto(f"{server_to_read}/channels/{LONG}")
    await expect(page.locator(".message").first).to_be_visible()
    last = page.locator(".message", has_text="step 299")
    await scroll_to(page, "End", last)
    await last.scroll_into_view_if_needed()
    await expect(page.locator(".message")).not_to_have_count(300)  # messages far away are not in the document
    assert await page.evaluate("document.querySelectorAll('*').length") < 5_000
    first = page.locator(".message", has_text="step 0:")
    await scroll_to(page, "Home", first)
    await expect(first).to_be_in_viewport()


async def test_the_outline_shows_nearby_questions_and_the_present_one(server_to_read: str, page: Page) -> None:
    await page.set_viewport_size({"width": 1440, "height": 800})
    await page.goto(f"{server_to_read}/channels/{LONG}")
    questions, current = page.locator("[data-question]"), page.locator("[data-question][aria-current]")
    await expect(questions).to_have_count(100)  # of 150
    await expect(current).to_have_count(1)
    await page.goto(f"{server_to_read}/channels/{LONG}?at=latest#end")
    await expect(page.locator(".message", has_text="step 299")).to_be_in_viewport()
    await expect(current).to_have_count(1)
    await expect(current).to_be_in_viewport()
    assert int((await current.inner_text()).partition("step ")[2].split(":")[0]) > 260
    await page.locator(".outline nav").evaluate("(outline) => outline.scrollTo(0, 0)")
    await questions.filter(has_text="step 4:").click()
    await expect(page.locator(".message:target")).to_contain_text("step 4:")


async def test_the_outline_opens_over_a_narrow_page_at_the_present_question(server_to_read: str, page: Page) -> None:
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.goto(f"{server_to_read}/channels/{LONG}?at=latest#end")
    await expect(page.locator(".message", has_text="step 299")).to_be_in_viewport()
    outline = page.locator("section.outline")
    await expect(outline).to_be_hidden()
    await page.get_by_role("button", name="Outline").click()
    await expect(page.locator("[data-question][aria-current]")).to_be_in_viewport()
    await page.keyboard.press("Escape")
    await expect(outline).to_be_hidden()
    await page.get_by_role("button", name="Outline").click()
    await page.locator("[data-question]", has_text="step 290:").click()
    await expect(page.locator(".message:target")).to_contain_text("step 290:")
    await expect(outline).to_be_hidden()


async def test_the_keyboard_passes_the_list_and_the_year_and_is_never_covered(server_to_read: str, page: Page) -> None:
    focused = "document.activeElement.matches('%s, %s *')"
    await page.goto(f"{server_to_read}/channels/{LOGIN}")
    await expect(page.locator("#beside")).to_be_attached()
    for key in ("Tab", "Enter", "Tab"):
        await page.keyboard.press(key)
    assert await page.evaluate(focused % ("#detail", "#detail")), "the first link leads past the list"
    await page.goto(f"{server_to_read}/insights?last=all")
    await page.locator(".year").focus()
    await page.keyboard.press("Tab")
    assert not await page.evaluate(focused % (".year", ".year")), "hundreds of days are no stops"
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.goto(server_to_read)
    for _ in range(30):
        await page.keyboard.press("j")
    ends = [await page.locator(one).bounding_box() for one in ("[data-main]:focus", ".rail")]
    assert ends[0]
    assert ends[1]
    assert ends[0]["y"] + ends[0]["height"] <= ends[1]["y"], "the bar at the bottom covers no focused row"


async def scroll_to(page: Page, key: str, message: Locator) -> None:
    """Press a key until a message is in view; the browser stops scrolling when loaded content changes the height."""
    for _ in range(600):
        if await message.count():
            return
        await page.keyboard.press(key)
        await page.wait_for_timeout(30)


async def test_a_search_hit_is_opened_and_read_on_in_both_directions(server_to_read: str, page: Page) -> None:
    await page.goto(f"{server_to_read}/channels/{LONG}")
    await page.fill("[data-find]", "step 150")
    await page.locator(".hits a", has_text="step 150").click()
    target = page.locator(".message:target")
    await expect(target).to_contain_text("step 150")
    await expect(target).to_be_in_viewport()
    await page.wait_for_function("() => CSS.highlights.get('words')?.size > 0")
    before = await page.locator(".message").count()
    await page.evaluate("scrollTo(0, 0)")
    await page.click(".more.earlier")
    await expect(page.locator(".message").first).to_contain_text("step 104")
    await expect(page.locator(".message").nth(before + 39)).to_be_attached()
    await expect(page.locator(".more.earlier")).to_have_count(1)


async def test_a_deleted_message_is_restored(server: str, page: Page) -> None:
    await page.goto(f"{server}/channels/{LOGIN}")
    message = page.locator(".message").nth(1)
    await message.locator(".about > summary").click()
    await expect(message.locator(".facts")).to_contain_text("Stored by")
    await message.locator("text=Delete message").click()
    await expect(message).to_contain_text("Message deleted.")
    await message.locator("text=Undo").click()
    await expect(message).to_contain_text("HttpOnly")


async def test_a_message_is_deleted_and_restored_without_scripts(server: str, browser: Browser) -> None:
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(f"{server}/channels/{LOGIN}")
    await expect(page.get_by_role("link", name="Latest")).to_be_visible()
    for useless in ("Copy as context", "Unfold all", "Light or dark"):
        await expect(page.get_by_role("button", name=useless)).to_be_hidden()
    await page.locator(".about > summary").nth(1).click()
    await page.locator("text=Delete message").nth(1).click()
    await expect(page.locator("#detail > h2")).to_have_text("Deleted messages")
    await page.click("text=Restore")
    await expect(page.locator(".message")).to_have_count(4)
    await expect(page.locator(".message:target")).to_contain_text("HttpOnly")
    await context.close()


async def test_details_of_a_message_are_shown_over_the_page_and_move_nothing(server_to_read: str, page: Page) -> None:
    await page.set_viewport_size({"width": 1280, "height": 600})
    for address, number in ((f"/channels/{LOGIN}", 3), (AGENT_PAGE, 2)):
        await page.goto(server_to_read + address)
        await page.evaluate("document.querySelectorAll('.strip').forEach((strip) => strip.open = true)")
        places = "[...document.querySelectorAll('.message')].map((one) => one.getBoundingClientRect().top + scrollY)"
        before = await page.evaluate(places)
        about = page.locator(".about").nth(number)
        await about.locator("summary").click()
        await expect(about.locator(".facts dl")).to_be_visible()
        assert await page.evaluate(places) == before
        await about.locator("text=Delete message").scroll_into_view_if_needed()
        await expect(about.locator("text=Delete message")).to_be_in_viewport()


async def test_a_folded_message_is_unfolded_and_shown_whole(server_to_read: str, page: Page) -> None:
    await page.goto(server_to_read + AGENT_PAGE)
    await page.locator(".strip > summary").click()
    tests = page.locator(".message.tool").nth(1)
    await tests.locator(".fold > summary").click()
    await tests.locator("text=Show the other").click()
    await expect(tests.locator("text=Show the other")).to_have_count(0)
    assert str(await tests.text_content()).count("FAILED") == 120
    wide = "one => one.querySelector('.prose').offsetWidth / one.offsetWidth"
    assert await tests.evaluate(wide) > 0.9, "the time is above the text and takes no width"


async def test_a_conversation_is_named_deleted_and_restored_in_place(server: str, page: Page) -> None:
    await page.goto(f"{server}/channels/{LOGIN}")
    await page.click("[aria-label='More actions']")
    await page.fill("input[name=title]", "Cookies")
    await page.fill("input[name=nickname]", "fib")
    await page.click("#head form.named > button")
    await expect(page.locator("#notice")).to_contain_text("nickname")
    await page.fill("input[name=nickname]", "cookies")
    await page.focus("input[name=tags]")
    await expect(page.locator("#known-tags option")).to_have_count(2)
    await page.fill("input[name=tags]", "auth, py")
    assert "auth, python" in await page.eval_on_selector_all("#known-tags option", "all => all.map((one) => one.value)")
    await page.fill("input[name=tags]", "auth, web")
    await page.click("#head form.named > button")
    await expect(page.locator("h1")).to_have_text("Cookies")
    await expect(page.locator("#notice")).to_be_empty()
    await expect(page.locator("#head .tag")).to_have_text(["#auth", "#web"])
    await page.click("[aria-label='More actions']")
    await page.click("[data-delete]")
    await expect(page.locator("#head .notice")).to_contain_text("Deleted.")
    await page.click("text=Undo")
    await expect(page.locator(".message")).to_have_count(4)


async def test_what_was_typed_and_clicked_while_the_server_was_away_is_done_when_it_is_back(
    server: str, page: Page
) -> None:
    await page.goto(f"{server}/channels/{LOGIN}")
    await page.click("[aria-label='More actions']")
    await page.fill("input[name=title]", "Cookies")
    await page.route("**/*", lambda route: route.abort())
    await page.click("#head form.named > button")
    await expect(page.locator("#notice")).to_contain_text("The server does not answer")
    await page.fill(".list [data-search]", "피보나치")
    await page.wait_for_timeout(300)  # longer than the pause before a search
    await page.unroute("**/*")
    await expect(page.locator("#detail h1")).to_have_text("Cookies")
    await expect(page.locator(".list [data-main]")).to_have_count(1)
    await expect(page.locator("#notice")).to_be_empty()

    await page.route("**/*", lambda route: route.abort())
    await page.locator(".list [data-main]").click()
    await expect(page.locator("#notice")).to_contain_text("The server does not answer")
    await page.unroute("**/*")
    await expect(page.locator("#detail h1")).to_have_text("피보나치 메모이제이션")


async def test_language_and_colour_scheme_are_kept(server_to_read: str, page: Page) -> None:
    await page.goto(server_to_read)
    await page.click("[data-cookie='lang=ko']")
    await expect(page.locator("html")).to_have_attribute("lang", "ko")
    await page.wait_for_load_state()
    await page.click("[data-theme-switch]")
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await page.goto(f"{server_to_read}/channels/{LOGIN}")
    await expect(page.locator("html")).to_have_attribute("lang", "ko")
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")


async def test_a_chosen_day_is_in_the_readers_zone(server_to_read: str, page: Page) -> None:
    await page.goto(server_to_read)
    await page.click("summary[aria-label='Filters']")
    await page.fill("input[name=from]", "2025-10-03T00:00")
    await page.fill("input[name=to]", "2025-10-03T23:59")
    # 14:30 UTC is 23:30 in Seoul; an hour later would be the next day there.
    await expect(page.locator(".day")).to_have_count(1)
    await expect(page.locator(".day")).to_have_text("Fri 2025-10-03")
    await page.fill("input[name=from]", "2025-10-04T00:00")
    await page.fill("input[name=to]", "2025-10-04T23:59")
    await expect(page.locator(".channel")).to_have_count(0)


async def test_a_first_visit_to_a_period_is_in_the_readers_zone_too(server_to_read: str, page: Page) -> None:
    await page.context.clear_cookies()
    await page.goto(f"{server_to_read}/insights?from=2025-09-30T15:00:00Z")
    await expect(page.locator("input[name=from]")).to_have_value("2025-10-01T00:00")


async def test_an_empty_registry_says_what_to_do(empty_server: str, page: Page) -> None:
    await page.goto(empty_server)
    for step in ("Sync now", "Clients on this machine", "Playground"):
        await expect(page.locator(".steps")).to_contain_text(step)
    box = await page.locator(".steps").bounding_box()
    assert box
    assert box["width"] > 400, "the steps use the whole page"


async def test_the_field_of_a_file_is_in_the_pages_language_and_names_the_file(
    empty_server: str, page: Page, axe: str
) -> None:
    await page.context.add_cookies([{"name": "lang", "value": "ko", "url": empty_server}])
    await page.goto(f"{empty_server}/settings")
    field = page.get_by_label("파일 선택")
    await expect(field).to_have_css("opacity", "0")  # the browser's own button is not seen
    await field.set_input_files({"name": "export.zip", "mimeType": "application/zip", "buffer": b""})
    await expect(page.locator("label.button")).to_have_text("export.zip")
    assert await violations(page, axe) == []


async def test_the_first_steps_are_ticked_off_while_the_page_is_open(empty_server: str, page: Page) -> None:
    await page.goto(empty_server)
    await expect(page.locator(".steps li")).to_have_count(3)
    await expect(page.locator(".steps .done")).to_have_count(0)
    await page.get_by_role("button", name="Add five sample conversations").click()
    await expect(page.locator("#rows [data-row]")).to_have_count(5)
    await expect(page.locator(".steps .done")).to_have_text(re.compile("5 conversations"))
    await page.locator(".steps [name=text]").fill("How long do tokens live?")
    async with page.expect_response("**/steps"):
        await page.request.get(f"{empty_server}/bo/search?q=tokens")
    await expect(page.locator(".steps [name=text]")).to_have_value("How long do tokens live?")
    await expect(page.locator(".steps [name=text]")).to_be_focused()
    asked: dict[str, str | float | bool] = {"operation": "extract", "text": "How long do tokens live?"}
    await page.request.post(f"{empty_server}/flow/try", form=asked, headers={"Origin": empty_server})
    await expect(page.locator(".steps .done")).to_have_count(2)
    await expect(page.locator(".steps .done").last).to_contain_text("Ask something")
    await page.get_by_role("button", name="Remove the sample conversations").click()
    await expect(page.locator(".steps .done")).to_have_text([re.compile("Ask something")])
    await page.goto(f"{empty_server}/settings/trash")
    await expect(page.locator("main [data-row]")).to_have_count(5)


async def test_a_page_recovers_from_an_unreachable_registry(
    server: str, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise StorageError("Could not read the registry.", "no such host")

    with monkeypatch.context() as patch:
        patch.setattr(Database, "read", broken)
        await page.goto(server)
        await expect(page.locator("h1")).to_have_text("The registry cannot be reached")
        for told in ("no such host", "ctxr doctor"):
            await expect(page.locator("main")).to_contain_text(told)
    await expect(page.locator(".channel").first).to_be_visible()


NARROW, WIDE = 390, 1280
PATHS = (
    (f"/channels/{FIBONACCI}", "light", NARROW),
    (AGENT_PAGE, "light", WIDE),
    (f"/channels/{LOGIN}?q=rotation", "dark", NARROW),
    (f"/channels/{LOGIN}?deleted=1", "light", NARROW),
    ("/", "dark", NARROW),
    ("/?q=cache", "light", WIDE),
    ("/nowhere", "dark", NARROW),
    ("/docs", "light", NARROW),
    ("/today", "light", NARROW),
    ("/insights", "light", WIDE),
    ("/insights", "dark", NARROW),
    ("/flow", "light", NARROW),
    ("/settings", "dark", NARROW),
    ("/settings/access", "light", NARROW),
)
"""Every page in a small window, in one of the two schemes; of each layout, one in a large window too."""


@pytest.fixture(scope="module")
async def reader(browser: Browser) -> AsyncIterator[Page]:
    """Open a browser window for all pages that are only looked at."""
    async with window(browser) as page:
        await watch_movement(page)
        yield page


@pytest.fixture(scope="module", params=PATHS, ids=lambda one: "-".join(map(str, one)))
async def seen(
    request: pytest.FixtureRequest, reader: Page, server_to_read: str
) -> AsyncIterator[tuple[Page, int, int]]:
    """Return a page, its width, and the bytes it took."""
    path, scheme, width = request.param
    await reader.set_viewport_size({"width": width, "height": 844})
    await reader.emulate_media(color_scheme=scheme)
    sizes: list[int] = []

    def note_size(answer: Response) -> None:
        sizes.append(int(answer.headers.get("content-length", 0)))

    reader.on("response", note_size)
    await reader.goto(server_to_read + path)
    await expect(reader.locator("[hx-trigger=load]")).to_have_count(0)  # parts that load after the page
    yield reader, width, sum(sizes)
    reader.remove_listener("response", note_size)


async def test_a_page_fits_and_moves_nothing(seen: tuple[Page, int, int]) -> None:
    page, width, size = seen
    assert await page.evaluate("document.documentElement.scrollWidth") <= width
    await assert_still(page)
    assert 0 < size < 360_000


async def test_a_page_is_accessible(seen: tuple[Page, int, int], axe: str) -> None:
    page, *_ = seen
    await page.evaluate("document.querySelectorAll('.fold, .panel, .strip').forEach((fold) => fold.open = true)")
    assert await violations(page, axe) == []


async def test_an_answer_shows_how_long_it_took(http: httpx.AsyncClient) -> None:
    shown = (await http.get(f"/channels/{LOGIN}")).text
    assert re.findall(r'<span class="cost">([^<]+)', shown) == ["40.0 s", "40.0 s"]
    assert 'class="cost"' not in (await http.get(f"/channels/{AGENT}")).text, "its client stored no time"
