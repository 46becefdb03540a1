"""Test the workspace: the rail, the list and details; old addresses; a run's page."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.async_api import Page, expect

from orchestrator.semantic.endpoint import Endpoint
from orchestrator.semantic.meaning import Meaning
from orchestrator.service import Orchestrator
from registry.domain import now
from tests.pages.seeds import FIBONACCI, LOGIN

pytestmark = pytest.mark.anyio
BACKOFFICE = Path(__file__).parents[2] / "backoffice"


def test_every_icon_is_in_the_sprite_and_every_vendored_file_has_its_licence() -> None:
    sprite = (BACKOFFICE / "static/vendor/icons.svg").read_text(encoding="utf-8")
    known = set(re.findall(r'<symbol id="([\w-]+)"', sprite))
    templates = "".join(file.read_text(encoding="utf-8") for file in BACKOFFICE.glob("templates/**/*.html"))
    assert set(re.findall(r'icon\("([\w-]+)"[,)]', templates)) - known == set()
    code = "".join(file.read_text(encoding="utf-8") for file in BACKOFFICE.glob("pages/**/*.py"))
    assert {one for one in known if f'"{one}"' not in templates + code} == set(), "every icon is used"
    folder = BACKOFFICE / "static/vendor"
    notes = (folder / "README.md").read_text(encoding="utf-8")
    for file in folder.iterdir():
        assert file.name in notes or file.name == "README.md", file.name
    for licence in re.findall(r"\((\S+-LICENSE\.txt)\)", notes):
        assert (folder / licence).stat().st_size > 300


async def test_large_text_is_not_cut(server_to_read: str, page: Page) -> None:
    client = await page.context.new_cdp_session(page)
    await client.send("Page.enable")
    await client.send("Page.setFontSizes", {"fontSizes": {"standard": 32}})
    for width in (1440, 390):
        await page.set_viewport_size({"width": width, "height": 844})
        await page.goto(f"{server_to_read}/?q=cache")
        lines = await page.locator("#rows [data-main]").first.evaluate(
            "(row) => [...row.children, row].map((one) => one.getBoundingClientRect().height)"
        )
        assert lines[0] > 32
        assert lines[0] + lines[1] <= lines[2], "a row grows with its text"
        await page.locator(".rooms a").last.click()
        await page.wait_for_url("**/settings")


async def test_old_addresses_lead_to_the_new_pages(http: httpx.AsyncClient) -> None:
    cases: list[tuple[str, str]] = [
        ("/flow/statistics", "/insights"),
        ("/usage", "/insights"),
        ("/problems", "/insights"),
        ("/activity", "/insights"),
        ("/flow/sources", "/settings"),
        ("/backups", "/settings/backups"),
        ("/deleted", "/settings/trash"),
        ("/forget?channel=c", "/settings/forget?channel=c"),
        (f"/related/{LOGIN}", f"/channels/{LOGIN}"),
        (f"/commits/{LOGIN}", f"/channels/{LOGIN}"),
    ]
    for old, new in cases:
        answer = await http.get(old)
        assert (answer.status_code, answer.headers["Location"]) == (301, new)
        assert (await http.get(new)).status_code == 200


async def test_the_first_row_is_near_the_top_and_a_row_has_44_pixels(server_to_read: str, page: Page) -> None:
    for width, height, most in [(1440, 900, 160), (390, 844, 220)]:
        await page.set_viewport_size({"width": width, "height": height})
        for address in ("/", "/?source=gemini&q=vectors", "/flow"):
            await page.goto(server_to_read + address)
            box = await page.locator(".channel, .run").first.bounding_box()
            assert box, address
            assert box["y"] <= most, address
            assert box["height"] == 44, address
        await page.goto(f"{server_to_read}/today")
        field, menu = [await page.locator(one).first.bounding_box() for one in (".list .field", ".list .field .menu")]
        assert field
        assert menu
        assert field["height"] <= 40, "the filters fit in one line"
        assert menu["y"] - field["y"] < 10
        assert "Today" in await page.locator(".list .chips").inner_text()
        await page.goto(f"{server_to_read}/channels/{LOGIN}")
        is_wide = width > 900
        for selector, is_seen in ((".list", is_wide), ("#detail", True), (".rooms", True), (".find", True)):
            assert await page.locator(selector).is_visible() == is_seen, selector


async def test_a_row_shows_the_match_and_no_label_is_cut_on_a_phone(server: str, page: Page) -> None:
    words = "The nightly job printed a long line about nothing much before it said quokkaword and stopped."
    await page.request.post(
        f"{server}/bo/conversations", data={"channel": "night", "messages": [{"role": "user", "text": words}]}
    )
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.goto(f"{server}/?q=quokkaword")
    row, hit = [await page.locator(selector).first.bounding_box() for selector in (".under", ".under mark")]
    assert row
    assert hit
    assert hit["x"] + hit["width"] <= row["x"] + row["width"]
    for address, labels in (("/", ".rooms span"), ("/settings", ".tabs a"), (f"/channels/{LOGIN}", ".role")):
        await page.goto(server + address)
        cut = "labels => labels.filter(one => one.scrollWidth > one.clientWidth || one.offsetHeight > 40).length"
        assert await page.locator(labels).evaluate_all(cut) == 0, address
        ends = await page.locator(labels).evaluate_all("labels => labels.map(one => one.getBoundingClientRect().right)")
        assert max(ends) <= 390, address


async def test_a_row_opens_beside_the_list_and_back_returns_to_the_list(server_to_read: str, page: Page) -> None:
    await page.goto(f"{server_to_read}/?q=rotation")
    row = page.locator(".list [data-main]").first
    await row.click()
    await expect(page.locator("#detail h1")).to_have_text("Refresh tokens")
    await expect(page.locator(".list [data-search]")).to_have_value("rotation")
    await expect(row).to_have_attribute("aria-current", "true")
    assert urlsplit(page.url).path == f"/channels/{LOGIN}"
    await expect(page.locator(".message:target")).to_contain_text("And rotation?")
    await page.go_back()
    await expect(page.locator("h1")).to_have_text("Conversations")
    assert "q=rotation" in page.url


async def test_selected_rows_open_a_bar_with_their_number(server_to_read: str, page: Page) -> None:
    await page.goto(server_to_read)
    await expect(page.locator("#several")).to_be_hidden()
    for number in (0, 1):
        await page.locator(".channel").nth(number).hover()
        await page.locator(".channel input").nth(number).check()
    await expect(page.locator("#several")).to_contain_text("2 selected")
    await expect(page.locator("#several")).to_be_in_viewport()
    await page.context.add_cookies([{"name": "lang", "value": "ko", "url": server_to_read}])
    await page.reload()
    await page.locator(".channel input").first.check()
    await expect(page.locator("#several")).to_contain_text("1개 선택")


async def test_the_palette_opens_a_message_and_stores_no_run(server_to_read: str, page: Page) -> None:
    await page.goto(f"{server_to_read}/insights")
    await page.keyboard.press("Control+k")
    await page.keyboard.type("HttpOnly")
    await expect(page.locator("#palette-rows mark").first).to_have_text("HttpOnly")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(page.locator(".message:target")).to_contain_text("HttpOnly")
    async with httpx.AsyncClient(base_url=server_to_read, timeout=60) as http:
        shown = (await http.get("/palette", params={"q": "set"})).text
        assert 'href="/settings"' in shown
        runs = (await http.get("/bo/ao/executions", params={"source": "backoffice", "q": "HttpOnly"})).json()["items"]
    operations = {run["operation"] for run in runs}
    assert operations <= {"search"}, "typing in the palette is no execution, the search on the opened page is"


async def test_the_palette_runs_commands_of_the_open_conversation_on_a_phone_too(server: str, page: Page) -> None:
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    for width in (1440, 390):
        await page.set_viewport_size({"width": width, "height": 844})
        await page.goto(f"{server}/channels/{LOGIN}")
        await page.locator("[data-palette-open]").click()
        await page.keyboard.type("in codex")
        await expect(page.locator("#palette-rows button").first).to_have_text("Continue in Codex")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("Copied")).to_be_visible()
        copied = await page.evaluate("navigator.clipboard.readText()")
        assert copied == f"ctxr resume {LOGIN} --in codex --run"
    await page.keyboard.press("Escape")
    await page.locator("[data-palette-open]").click()
    await page.keyboard.type("delete")
    await page.locator("#palette-rows").get_by_text("Delete", exact=True).click()
    await expect(page.get_by_text("Deleted. It won't appear")).to_be_visible()


async def test_the_palette_completes_the_search_language(server_to_read: str, page: Page) -> None:
    await page.goto(server_to_read)
    await page.keyboard.press("Control+k")
    for typed, completion in (("refresh proj", "refresh project:"), ("sh", "refresh project:shop")):
        await page.keyboard.type(typed)
        await page.get_by_role("button", name=completion, exact=True).click()
        await expect(page.locator("#palette input")).to_have_value(completion)
    await expect(page.locator("#palette-rows a").first).to_contain_text("Refresh tokens")


async def test_the_palette_opens_projects_views_and_pinned_conversations(http: httpx.AsyncClient) -> None:
    await http.post("/pins", data={"channel": FIBONACCI})
    await http.post("/views", data={"name": "About tokens", "address": "/?q=tokens"})
    for words, address in (
        ("shop", "/?project=%2Fhome%2Fme%2Fshop"),
        ("about t", "/?q=tokens"),
        ("fib", f"/channels/{FIBONACCI}?at=latest"),
    ):
        assert f'href="{address}"' in (await http.get("/palette", params={"q": words})).text


async def run_page(http: httpx.AsyncClient, orchestrator: Orchestrator, text: str, **request: Any) -> str:
    asked = {"operation": "extract", "query": {"text": text}, "source": "claude", **request}
    await orchestrator.run(asked, "claude-desktop/1.2")
    run = (await http.get("/bo/ao/executions", params={"limit": 1})).json()["items"][0]
    page = (await http.get(f"/flow/{run['id']}")).text
    detail = page[page.index('<div id="detail"') : page.index('class="technical"')]
    return re.sub(r"\s+", " ", detail)


async def test_an_answer_shows_its_runner_up_and_the_deciding_word(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    case = await run_page(http, orchestrator, "where should the refresh token live: cookie or local storage")
    assert "Answered from “Refresh tokens”" in case
    assert 'class="verdict succeeded"' in case
    assert "word: <bdi>cookie</bdi>" in case


async def test_a_run_that_stores_is_no_answer(http: httpx.AsyncClient) -> None:
    runs = await http.get("/bo/ao/executions", params={"operation": "conversation_log", "limit": 1})
    page = (await http.get(f"/flow/{runs.json()['items'][0]['id']}")).text
    assert "Done." in page
    assert "Answered from" not in page
    assert "<h2>Conversation</h2>" in page


async def test_the_description_of_a_runner_up_is_true(http: httpx.AsyncClient, orchestrator: Orchestrator) -> None:
    for channel in ("plan-a", "plan-b"):
        turn = [{"role": "user", "text": "The quagga enclosure needs a wombat gate."}]
        await orchestrator.run(
            {"operation": "conversation_log", "channel": channel, "messages": turn, "source": "codex"}
        )
    case = await run_page(http, orchestrator, "quagga wombat")
    assert "the runner-up matches as well" in case
    assert "match better" not in case
    assert "Only the answer mentions" not in case
    assert "little of the question" not in case
    assert "Why this is a guess" not in case
    assert case.count("The quagga enclosure needs a wombat gate.") >= 4, "the best line of each candidate"


async def test_a_run_without_a_result_says_why_at_its_top(http: httpx.AsyncClient, orchestrator: Orchestrator) -> None:
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("refresh token cookie yesterday", {}, "Without time “yesterday”"),
        ("refresh token cookie yesterday", {}, "A guess: nothing of it is from that time"),
        ("refresh token cookie tag:nobody", {}, "Without tag “nobody”"),
        ("refresh token cookie tag:nobody", {}, "Nothing found: no conversation has this tag: nobody"),
        ("refresh token cookie source:gemini", {}, "Without client “gemini”"),
        ("refresh token cookie", {"channel": FIBONACCI}, "The conversation that the call named does not have it."),
        ("refresh token cookie", {"channel": "none"}, "No channel &#39;none&#39; in the registry"),
        ("zyxquokka plomberg", {}, "these words occur nowhere: zyxquokka, plomberg"),
        ("HttpOnly -SameSite", {}, "Without “-SameSite”"),
        ("rotate the family of quokkas", {}, "does not mention: quokkas"),
    ]
    for text, request_, expected in cases:
        case = await run_page(http, orchestrator, text, **request_)
        assert expected in case
        assert 'class="verdict succeeded"' not in case
        assert 'class="status succeeded"' not in case


async def test_an_answer_chosen_only_by_its_day_is_a_guess_everywhere(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    asked_for = "The quokka list stutters."
    for channel, text, day in (("board", "It loses bytes.", 1), ("list-a", asked_for, 5), ("list-b", asked_for, 6)):
        at = (now() - timedelta(days=day)).isoformat()
        turn = [{"role": "user", "text": text, "timestamp": at}]
        await orchestrator.run(
            {"operation": "conversation_log", "channel": channel, "messages": turn, "source": "codex"}
        )
    case = await run_page(http, orchestrator, "the quokka list that stutters, yesterday")
    assert "contains none of the words: it was chosen by the conditions only" in case
    assert 'class="verdict guessed"' in case
    assert "The nearest message contains" not in case
    assert case.index("Without time “yesterday”") < case.index('class="candidates"')
    assert 'id="to-check"' in (await http.get("/flow")).text


async def test_a_guessed_list_shows_its_candidates(http: httpx.AsyncClient, orchestrator: Orchestrator) -> None:
    case = await run_page(http, orchestrator, "the cache of the wombat enclosure", operation="search_sessions")
    assert 'class="verdict guessed"' in case
    assert "Best guess" in case
    assert "Runner-up" in case
    assert "“–”" not in case


async def test_a_list_shows_no_data_of_an_image(http: httpx.AsyncClient, orchestrator: Orchestrator) -> None:
    image = f"![a chart](data:image/png;base64,{'iVBOR' * 60}) what is wrong here?"
    turn = [{"role": "user", "text": image}]
    await orchestrator.run({"operation": "conversation_log", "channel": "chart", "messages": turn, "source": "codex"})
    rows = (await http.get("/")).text
    assert "a chart" in rows
    assert "data:image" not in rows
    await http.post("/deletions", data={"channel": "chart"})
    assert "data:image" not in (await http.get("/settings/trash")).text


async def test_remembered_sentences_are_labelled_in_the_readers_language(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    await orchestrator.run({"operation": "remember", "query": {"text": "Answer briefly."}, "source": "codex"})
    http.cookies["lang"] = "ko"
    for address in ("/", "/channels/remembered"):
        assert "기억해 둔 내용" in (await http.get(address)).text


async def test_a_deleted_conversation_without_a_title_is_listed_by_its_first_question(http: httpx.AsyncClient) -> None:
    await http.post("/deletions", data={"channel": "gemini_session_7"})
    assert "Question 7 about vectors" in (await http.get("/settings/trash")).text
    assert "Question 7 about vectors" in (await http.get("/bo/channels?deleted=true")).text


async def test_a_run_without_a_result_says_if_the_conversation_is_in_the_trash(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    await http.post("/deletions", data={"channel": LOGIN})
    case = await run_page(http, orchestrator, "revoke family rotate")
    assert "Nothing found, except in the trash." in case
    assert "In the trash:" in case
    assert f"/channels/{LOGIN}?deleted=1" in case
    assert f'action="/restorations"><input type="hidden" name="channel" value="{LOGIN}">' in case
    guess = await run_page(http, orchestrator, "revoke the rotation: cache 배포")
    assert 'class="verdict guessed"' in guess
    assert "a conversation in the trash matches better" in guess
    assert "In the trash:" in guess


async def test_a_condition_is_removed_and_the_run_repeated_by_one_click(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    case = await run_page(http, orchestrator, "refresh token cookie yesterday")
    run = re.findall(r'action="/flow/(exec_\w+)/again"', case)[0]
    answer = await http.post(f"/flow/{run}/again", data={"text": "refresh token cookie"})
    repeated = answer.headers["Location"].removeprefix("/flow/").partition("?")[0]
    shown = (await http.get(f"/bo/ao/executions/{repeated}")).json()
    assert (shown["asked"], shown["source"]) == ("refresh token cookie", "backoffice")
    assert shown["channel"] == LOGIN
    named = await run_page(http, orchestrator, "refresh token cookie", channel=FIBONACCI)
    run = re.findall(r'action="/flow/(exec_\w+)/again"', named)[0]
    answer = await http.post(f"/flow/{run}/again", data={"drop": "channel"})
    repeated = answer.headers["Location"].removeprefix("/flow/").partition("?")[0]
    assert (await http.get(f"/bo/ao/executions/{repeated}")).json()["channel"] == LOGIN


async def test_the_expected_message_is_searched_and_stored_by_one_click(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    await orchestrator.run({"operation": "extract", "query": {"text": "zyxquokka"}, "source": "claude"})
    run = (await http.get("/bo/ao/executions", params={"limit": 1})).json()["items"][0]["id"]
    shown = (await http.get(f"/flow/{run}", params={"should": "rotation"})).text
    [message, *_] = re.findall(r'name="message" value="(conv_\w+)"', shown)
    answer = await http.post(f"/flow/{run}/expected", data={"message": message})
    assert answer.headers["Location"] == f"/flow/{run}?expected={message}#expected"
    assert "Kept as a test case:" in (await http.get(answer.headers["Location"])).text


async def test_the_sign_in_page_has_no_other_links(http: httpx.AsyncClient) -> None:
    page = (await http.get("/login")).text
    assert "<h1>Sign in</h1>" in page
    assert 'class="rooms"' not in page
    assert page.count("data-palette-open") == 0


async def test_the_trash_is_emptied_by_three_clicks(server: str, page: Page) -> None:
    for channel in (LOGIN, FIBONACCI):
        await page.request.delete(f"{server}/bo/channels/{channel}?soft=true")
    await page.goto(server)
    await page.get_by_role("link", name="Trash").click()
    await expect(page.locator("article.stored")).to_have_count(2)
    # one line each, as soon as fonts and icons are there
    await page.wait_for_function("() => document.querySelector('article.stored').offsetHeight < 60")
    await page.locator("summary", has_text="Empty trash").click()
    await page.get_by_role("button", name="Yes, delete forever").click()
    await expect(page.locator("main")).to_contain_text("No deleted conversations")


async def test_insights_fit_their_cards_and_headings(server_to_read: str, page: Page) -> None:
    await page.goto(f"{server_to_read}/insights?last=all")
    is_cut = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.outerHTML)"
    assert await page.locator(".year").evaluate_all(is_cut) == []
    assert await page.locator("table.figures thead th.number:visible").evaluate_all(is_cut) == []
    await page.set_viewport_size({"width": 1100, "height": 900})
    await page.locator(".maps summary").click()
    assert await page.evaluate("document.documentElement.scrollWidth") == 1100


async def test_a_search_before_the_model_is_loaded_says_so(
    http: httpx.AsyncClient, orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    orchestrator.meaning = Meaning(orchestrator.registry, Endpoint("http://127.0.0.1:9/v1", "toy"))
    loading = asyncio.create_task(asyncio.sleep(60))
    monkeypatch.setattr(orchestrator.meaning, "_warm_up_task", loading)
    words_only = "Found by words only"
    assert words_only in (await http.get("/?q=rotation")).text
    assert words_only not in (await http.get("/")).text
    loading.cancel()
    await asyncio.wait([loading])
    assert words_only not in (await http.get("/?q=rotation")).text


async def test_a_first_search_is_repeated_in_the_zone_of_the_reader(server_to_read: str, page: Page) -> None:
    await page.context.clear_cookies()
    loaded: list[str] = []
    page.on("request", lambda asked: loaded.append(asked.url) if asked.is_navigation_request() else None)
    await page.goto(f"{server_to_read}/?q=yesterday+rotation")
    await page.wait_for_function("() => performance.getEntriesByType('navigation')[0].type === 'reload'")
    assert len(loaded) == 2


async def test_the_chart_has_its_colours_with_reduced_motion(server_to_read: str, page: Page) -> None:
    await page.emulate_media(reduced_motion="reduce", color_scheme="light")
    await page.goto(f"{server_to_read}/insights?last=all")
    runs = page.locator(".u-legend .u-series", has_text="Runs").locator(".u-marker")
    await expect(runs).to_have_css("border-color", "rgb(67, 56, 202)")


@pytest.mark.both_databases
async def test_answers_to_check_are_listed_first_until_they_are_rated(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    await orchestrator.run({"operation": "extract", "query": {"text": "xyzquokka"}, "source": "eval"})
    assert 'id="to-check"' not in (await http.get("/flow")).text, "runs of test cases are not listed"
    for _ in range(3):
        await orchestrator.run({"operation": "extract", "query": {"text": "zyxquokka"}, "source": "claude"})
    run, *_ = (await http.get("/bo/ao/executions", params={"status": "not_found"})).json()["items"]
    page = (await http.get("/flow")).text
    assert page.count('id="to-check"') == 1
    assert "×3" in page, "the same question is one row"
    await http.post(f"/flow/{run['id']}/rating", data={"useful": "false"})
    assert 'id="to-check"' not in (await http.get("/flow")).text, "one rating is for all equal questions"
    await orchestrator.run({"operation": "extract", "query": {"text": "zyxquokka"}, "source": "claude"})
    assert 'id="to-check"' in (await http.get("/flow")).text, "a question asked again is listed again"


async def test_projects_of_one_name_are_told_apart_by_their_folders(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    for number, project in enumerate(("/srv/ann/web", "/srv/bob/web", "/srv/ann/api")):
        turn = [{"role": "user", "text": f"hello {number}"}]
        about = {"channel": f"c{number}", "metadata": {"project": project}}
        await orchestrator.run({"operation": "conversation_log", "messages": turn, **about})
    page = (await http.get("/")).text
    for name in ("ann/web", "bob/web", "api"):
        assert f"<span>{name}</span>" in page


async def test_a_conversation_within_a_minute_has_one_time(http: httpx.AsyncClient, orchestrator: Orchestrator) -> None:
    for channel, minutes in (("short", (0, 0)), ("long", (0, 5))):
        turn = [{"role": "user", "text": f"{channel} {at}", "timestamp": f"2026-05-04T09:0{at}:00Z"} for at in minutes]
        await orchestrator.run({"operation": "conversation_log", "channel": channel, "messages": turn})
    times = [(await http.get(f"/channels/{channel}")).text.count("2026-05-04 09:") for channel in ("short", "long")]
    assert times[1] == times[0] + 1
