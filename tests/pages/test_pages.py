"""Test the pages' HTTP answers: content, refusals, and size."""

from __future__ import annotations

import json
import re
from io import BytesIO
from typing import Any
from urllib.parse import quote, unquote, unquote_plus
from zipfile import ZipFile

import httpx
import pytest

from orchestrator.service import Orchestrator
from registry.storage.records.extract_results import RESUMED, save_result
from tests.pages.seeds import AGENT, FIBONACCI, HOSTILE, LOGIN, LONG

pytestmark = pytest.mark.anyio
HTML = {"Accept": "text/html"}
HTMX = {"HX-Request": "true"}
ADDRESSES = ["/", "/?q=cache", f"/channels/{FIBONACCI}", "/channels/claude-code%2F6f1c2a", "/nowhere"]


async def text_of(http: httpx.AsyncClient, address: str, status: int = 200) -> str:
    answer = await http.get(address)
    assert answer.status_code == status, answer.text
    return answer.text


async def ids_of(http: httpx.AsyncClient, channel: str) -> list[str]:
    answer = await http.get("/bo/conversations", params={"channel": channel, "order": "asc"})
    return [item["id"] for item in answer.json()["items"]]


async def test_no_page_loads_anything_from_other_sites(http: httpx.AsyncClient) -> None:
    for address in ADDRESSES:
        answer = await http.get(address)
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "<script>" not in answer.text
        assert " style=" not in answer.text
        assert "//" not in " ".join(part for part in answer.text.split('"') if part.startswith("//"))


async def test_the_list_is_filtered_by_the_address(http: httpx.AsyncClient) -> None:
    whole = await text_of(http, "/")
    assert "75 conversations" in whole
    for shown in ("피보나치 메모이제이션", "fib", "python", "numbers", "cursor", "Refresh tokens"):
        assert shown in whole
    assert "1 conversation<" in await text_of(http, "/?source=cursor")
    assert "3 conversations" in await text_of(http, "/?project=shop&source=&tag=&q=")
    assert "1 conversation<" in await text_of(http, "/?tag=성능")
    assert "3 conversations" in await text_of(http, "/?from=2025-10-01")
    nothing = await text_of(http, "/?q=zzzqqq")
    assert "No matches" in nothing
    assert "No conversation has these words." in nothing
    for narrowed in ("zzzqqq&source=cursor", "zzzqqq+tag:python"):
        assert "Remove a filter" in await text_of(http, f"/?q={narrowed}")


async def test_a_day_is_in_the_readers_zone_once_the_browser_has_sent_it(http: httpx.AsyncClient) -> None:
    # The login was discussed on October 1 at 14:30 UTC, which is 04:30 on October 2 in Kiritimati.
    day = "/?from=2025-10-02&to=2025-10-02"
    assert LOGIN not in await text_of(http, day)
    http.cookies.set("zone", "Pacific/Kiritimati")
    page = await text_of(http, day)
    assert LOGIN in page
    assert 'name="from" value="2025-10-02T00:00"' in page
    assert 'name="to" value="2025-10-02T23:59"' in page
    assert LOGIN not in await text_of(http, "/?to=2025-10-01")
    instants = await text_of(http, "/?from=2025-10-01T14:00Z&to=2025-10-01T15:00Z")
    assert LOGIN in instants, "an instant is not shifted"
    assert "active from: 2025-10-02 04:00" in " ".join(re.sub("<[^>]*>", "", instants).split())


async def test_without_a_known_zone_a_field_says_utc(http: httpx.AsyncClient) -> None:
    assert "Active from<noscript> (UTC)</noscript>" in await text_of(http, "/")
    for named, said in (("Asia/Seoul", "Active from</span>"), ("../../etc/passwd", "Active from (UTC)</span>")):
        http.cookies.set("zone", named)
        assert said in await text_of(http, "/")
    await text_of(http, "/?from=0001-01-01&to=9999-12-31")
    await text_of(http, "/?from=someday", 400)


async def test_a_search_shows_where_the_words_are_and_links_there(http: httpx.AsyncClient) -> None:
    page = await text_of(http, "/?q=rotation")
    found = (await ids_of(http, LOGIN))[2]
    assert f'href="/channels/{LOGIN}?list=q%3Drotation&amp;at={found}&amp;q=rotation#{found}"' in page
    assert "<mark>rotation</mark>" in page


async def sessions_found(http: httpx.AsyncClient, text: str) -> list[dict[str, Any]]:
    request = {"operation": "search_sessions", "query": {"text": text, "limit": 50}}
    found: list[dict[str, Any]] = (await http.post("/bo/ao/run", json=request)).json()["sessions"]
    return found


async def test_the_list_finds_conversations_in_the_order_of_search_sessions(http: httpx.AsyncClient) -> None:
    cases: list[str] = ["cache 테스트 retry", "피보나치 함수가 느린 이유", "check the user", "Refresh tokens"]
    for words in cases:
        page = await text_of(http, f"/?q={words}")
        expected = await sessions_found(http, words)
        assert rows_of(page) == [session["channel"] for session in expected]
        for session in (one for one in expected if one["match_count"]):
            count = session["match_count"]
            assert f'<span class="number">{count} hit{"s" * (count > 1)}</span>' in page


def rows_of(page: str) -> list[str]:
    return [unquote(name) for name in re.findall(r'data-main href="/channels/([^"?]+)', page)]


async def test_the_list_can_be_ordered_by_newest(http: httpx.AsyncClient) -> None:
    newest = rows_of(await text_of(http, "/?q=cache+vectors+token&order=newest"))
    words = {"q": "cache vectors token", "order": "newest"}
    listed = (await http.get("/bo/channels", params=words)).json()["items"]
    assert newest[:20] == [item["channel"] for item in listed]
    assert newest != rows_of(await text_of(http, "/?q=cache+vectors+token"))


async def test_a_ranked_list_continues_on_its_next_page(http: httpx.AsyncClient) -> None:
    first = await text_of(http, "/?q=vectors")
    address = first.split('class="more" href="')[1].split('"')[0].replace("&amp;", "&")
    rest = await text_of(http, address)
    assert len({*rows_of(first), *rows_of(rest)}) == 70


async def test_filters_of_a_search_are_shown_as_chips_and_can_be_removed(http: httpx.AsyncClient) -> None:
    page = await text_of(http, "/?q=rotation+token+source:claude&project=shop")
    field = page[page.index("data-chips ") : page.index("data-search")]
    chips = re.findall(r'<span class="chip">(\w+): <bdi>(.*?)</bdi><a href="(.*?)"', field)
    assert [(kind, text) for kind, text, _ in chips] == [("project", "shop"), ("client", "claude")]
    rests = [unquote_plus(address) for _, _, address in chips]
    assert rests == ["/?q=rotation token source:claude", "/?project=shop&amp;q=rotation token"]
    assert "time: <bdi>yesterday</bdi>" in await text_of(http, "/?q=cache yesterday")
    assert "tag:api" in page, "the page has a help of the query language"


async def test_a_pasted_id_opens_its_page(http: httpx.AsyncClient) -> None:
    message = (await ids_of(http, LOGIN))[0]
    run = (await http.get("/bo/ao/executions", params={"limit": 1})).json()["items"][0]["id"]
    places = {
        message: f"/messages/{message}",
        run: f"/flow/{run}",
        LOGIN: f"/channels/{LOGIN}",
        AGENT: f"/channels/{quote(AGENT, safe='')}",
    }
    for pasted, place in places.items():
        answer = await http.get("/", params={"q": f" {pasted} "})
        assert (answer.status_code, answer.headers["Location"]) == (303, place)
        assert (await http.get("/", params={"q": pasted}, headers=HTMX)).headers["HX-Redirect"] == place
    assert "No matches" in await text_of(http, "/?q=conv_01nothing_at_all")


async def test_the_list_continues_on_its_next_page(http: httpx.AsyncClient) -> None:
    first = await text_of(http, "/?source=gemini")
    address = first.split('class="more" href="')[1].split('"')[0].replace("&amp;", "&")
    rest = await text_of(http, address)
    assert first.count('class="channel"') == 50
    assert rest.count('class="channel"') == 20
    assert 'class="more"' not in rest


async def test_suggestions_are_existing_projects_and_tags(http: httpx.AsyncClient) -> None:
    assert '<option value="shop">' in await text_of(http, "/suggestions/project")
    assert '<option value="성능">' in await text_of(http, "/suggestions/tag")
    await text_of(http, "/suggestions/nothing", 400)


async def test_a_long_conversation_is_loaded_in_parts(http: httpx.AsyncClient) -> None:
    ids = await ids_of_long(http)
    first = await text_of(http, f"/channels/{LONG}")
    assert shown_ids(first) == ids[:40]
    latest = await text_of(http, f"/channels/{LONG}?at=latest")
    assert shown_ids(latest) == ids[-40:]
    middle = await text_of(http, f"/channels/{LONG}?at={ids[150]}")
    assert shown_ids(middle) == ids[144:190]
    for kind, expected in (("earlier", ids[104:144]), ("later", ids[190:230])):
        address = middle.split(f'class="more {kind}" href="')[1].split('"')[0].replace("&amp;", "&")
        assert shown_ids(await text_of(http, address)) == expected


async def ids_of_long(http: httpx.AsyncClient) -> list[str]:
    answer = await http.get("/bo/conversations", params={"channel": LONG, "order": "asc", "limit": 1000})
    return [item["id"] for item in answer.json()["items"]]


def shown_ids(page: str) -> list[str]:
    return [
        part.split('"')[0] for part in page.split('<article class="message')[1:] for part in [part.split(' id="')[1]]
    ]


async def test_tool_calls_and_thoughts_are_folded_and_show_their_outcome(http: httpx.AsyncClient) -> None:
    page = await text_of(http, f"/channels/{AGENT.replace('/', '%2F')}")
    assert page.count('<details class="fold">') == 3
    for shown in ("Edit src/login.py", "completed", "failed", "1.2 s", '<span class="gi">+    check(user)</span>'):
        assert shown in page
    assert page.count('class="inferred"') == 2
    assert "Show the other " in page


async def test_a_message_has_its_own_address(http: httpx.AsyncClient) -> None:
    one = (await ids_of(http, AGENT))[0]
    answer = await http.get(f"/messages/{one}")
    assert answer.headers["Location"] == f"/channels/claude-code%2F6f1c2a?at={one}#{one}"
    await text_of(http, f"/channels/{LOGIN}?at={one}", 404)
    await text_of(http, "/messages/conv_nothing", 404)


async def test_a_found_row_shows_its_passage_in_place_of_tags(http: httpx.AsyncClient) -> None:
    row = re.compile(rf'data-id="{FIBONACCI}".*?</article>', re.DOTALL)
    [listed], [found] = [row.findall(await text_of(http, address)) for address in ("/", "/?q=메모이제이션")]
    assert "#성능" in listed
    assert "#성능" not in found
    assert "<mark>메모이제이션</mark>" in found


async def test_an_undone_message_is_marked_wherever_it_is_shown(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    mark = 'aria-label="undone or replaced"'
    addresses = {
        "outline": f"/channels/{LONG}?at=latest",
        "find": f'/channels/{LONG}?q="step 298:"',
        "list": '/?q="step 298:"',
        "palette": '/palette?q="step 298:"',
    }
    marks = {name: (await text_of(http, address)).count(mark) for name, address in addresses.items()}
    assert not any(marks.values()), marks
    [undone] = (await http.get("/bo/conversations", params={"channel": LONG, "q": '"step 298:"'})).json()["items"]
    assert (await orchestrator.run({"operation": "supersede", "query": {"id": undone["id"]}}))["success"]
    for name, address in addresses.items():
        assert mark in await text_of(http, address), name
    assert "undone or replaced</span>" in await text_of(http, f"/channels/{LONG}?at={undone['id']}")


async def test_a_message_shows_its_origin(http: httpx.AsyncClient) -> None:
    first = (await ids_of(http, FIBONACCI))[0]
    facts = await text_of(http, f"/messages/{first}/facts")
    for shown in (first, "Stored by", "a tool call", "cursor"):
        assert shown in facts


async def test_a_conversation_is_searched_by_words_and_by_characters(http: httpx.AsyncClient) -> None:
    assert "2 hits" in await text_of(http, f"/channels/{LOGIN}?q=rotation"), '"rotates" matches, too'
    assert "1 hit<" in await text_of(http, f'/channels/{LOGIN}?q=okie("refr')
    assert "Nothing found here" in await text_of(http, f"/channels/{LOGIN}?q=zebra")


async def test_title_nickname_and_tags_are_set_by_a_form(http: httpx.AsyncClient) -> None:
    given = {"title": " Tokens ", "nickname": "", "tags": "auth, 보안, "}
    answer = await http.post(f"/channels/{LOGIN}", data=given)
    assert (answer.status_code, answer.headers["Location"]) == (303, f"/channels/{LOGIN}")
    item = (await http.get(f"/bo/channels/{LOGIN}")).json()
    assert (item["title"], item["nickname"], item["tags"]) == ("Tokens", None, ["auth", "보안"])


async def test_two_windows_that_name_a_conversation_keep_the_changes_of_both(http: httpx.AsyncClient) -> None:
    address = f"/channels/{quote(FIBONACCI, safe='')}"
    shown = await text_of(http, address)
    form = dict(re.findall(r'<input[^>]* name="((?:was_)?(?:title|nickname|tags))" value="([^"]*)"', shown))
    assert len(form) == 6
    for changed in ({"title": "Renamed", "tags": "python, 성능, first"}, {"nickname": "", "tags": "python, second"}):
        await http.post(address, data={**form, **changed})
    item = (await http.get(f"/bo/channels/{quote(FIBONACCI, safe='')}")).json()
    assert (item["title"], item["nickname"], item["tags"]) == ("Renamed", None, ["first", "python", "second"])


async def test_another_site_cannot_submit_our_forms(http: httpx.AsyncClient) -> None:
    answer = await http.post("/deletions", data={"channel": LOGIN}, headers={"Origin": "http://evil.example"})
    assert answer.status_code == 400
    await text_of(http, f"/channels/{LOGIN}")


async def test_a_deleted_conversation_is_restored_whole(http: httpx.AsyncClient) -> None:
    answer = await http.post("/deletions", data={"channel": LOGIN})
    assert answer.headers["Location"] == f"/channels/{LOGIN}"
    deleted = await text_of(http, f"/channels/{LOGIN}")
    assert "Undo" in deleted
    assert "4 messages" in deleted
    assert len(shown_ids(deleted)) == 4, "a deleted conversation still has its messages at its address"
    assert (await http.post("/restorations", data={"channel": LOGIN})).headers["Location"] == f"/channels/{LOGIN}"
    assert len(shown_ids(await text_of(http, f"/channels/{LOGIN}"))) == 4
    assert "<mark>rotation</mark>" in await text_of(http, "/?q=rotation")
    assert (await http.post("/restorations", data={"channel": "nothing"})).status_code == 404


async def test_messages_deleted_before_their_conversation_stay_deleted(http: httpx.AsyncClient) -> None:
    first, second, third, fourth = await ids_of(http, LOGIN)
    await http.post(f"/messages/{second}/deletion")
    await http.post("/deletions", data={"channel": LOGIN})
    await http.post(f"/messages/{third}/deletion")
    await http.post("/restorations", data={"channel": LOGIN})
    assert shown_ids(await text_of(http, f"/channels/{LOGIN}")) == [first, fourth]
    found = (await http.get("/bo/search", params={"q": "HttpOnly"})).json()["items"]
    assert second not in [item["id"] for item in found]
    await http.post(f"/messages/{second}/restoration")
    assert shown_ids(await text_of(http, f"/channels/{LOGIN}")) == [first, second, fourth]


async def test_after_restoring_one_message_the_whole_conversation_can_be_restored(
    http: httpx.AsyncClient,
) -> None:
    first, *_ = await ids_of(http, LOGIN)
    await http.post("/deletions", data={"channel": LOGIN})
    await http.post(f"/messages/{first}/restoration")
    assert shown_ids(await text_of(http, f"/channels/{LOGIN}")) == [first]
    await http.post("/restorations", data={"channel": LOGIN})
    assert len(shown_ids(await text_of(http, f"/channels/{LOGIN}"))) == 4


async def test_a_conversation_is_exported_as_a_file(http: httpx.AsyncClient) -> None:
    answer = await http.get("/exports/claude-code%2F6f1c2a")
    assert answer.headers["Content-Disposition"] == "attachment; filename*=UTF-8''claude-code%2F6f1c2a.md"
    assert 'channel: "claude-code/6f1c2a"' in answer.text
    assert "\n# Check the user before a login\n" in answer.text
    assert "Shall I change the test?" in answer.text
    exported: dict[str, Any] = json.loads(await text_of(http, f"/exports/{HOSTILE}?kind=json"))
    assert exported["session"]["channel"] == HOSTILE
    assert len(exported["messages"]) == 2
    exported = json.loads(await text_of(http, "/exports/claude-code%2F6f1c2a?kind=json"))
    assert {one["tool"]["name"] for one in exported["messages"] if one["role"] == "tool"} >= {"Bash", "Edit"}
    assert (await text_of(http, "/exports/claude-code%2F6f1c2a?kind=html")).count("(inferred)") == 2
    assert (await http.get(f"/exports/{HOSTILE}?kind=pdf")).content.startswith(b"%PDF-")
    await text_of(http, f"/exports/{HOSTILE}?kind=docx", 400)


async def test_a_browser_gets_errors_as_pages_and_a_program_as_json(http: httpx.AsyncClient) -> None:
    nothing = await text_of(http, "/channels/nothing", 404)
    assert "<h1>Not found</h1>" in nothing
    assert '<a href="/settings/trash">Trash</a>' in nothing
    assert "This cannot be shown" in await text_of(http, "/?limit=x", 400)
    assert "This was not done" in (await http.post("/views", data={"name": "x", "address": "/login"})).text
    for address, headers in (("/bo/channels/nothing", HTML), ("/channels/nothing", {"Accept": "application/json"})):
        answer = await http.get(address, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "NOT_FOUND")


async def test_a_page_is_korean_for_a_korean_browser(http: httpx.AsyncClient) -> None:
    answer = await http.get("/", headers={"Accept-Language": "ko-KR"})
    assert '<html lang="ko">' in answer.text
    assert "대화 75개" in answer.text


async def test_browsers_cache_scripts_and_styles_until_they_change(http: httpx.AsyncClient) -> None:
    page = await text_of(http, "/")
    sheet = page.split('<link rel="stylesheet" href="')[1].split('"')[0]
    answer = await http.get(sheet)
    assert "?v=" in sheet
    assert "immutable" in answer.headers["Cache-Control"]
    assert (await http.get("/static/../rooms.py")).status_code == 404


@pytest.mark.both_databases
async def test_deleted_conversations_are_listed_restored_or_deleted_for_good(http: httpx.AsyncClient) -> None:
    await http.post("/selections", data={"do": "delete", "channel": [LOGIN, FIBONACCI]})
    trash = await text_of(http, "/settings/trash")
    assert rows_of(trash) == [LOGIN, FIBONACCI]
    assert trash.partition("<main")[0].count("aria-current") == 1
    await http.post("/restorations", data={"channel": FIBONACCI})
    answer = await http.post("/removals", data={"channel": LOGIN})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/settings/trash")
    assert "No deleted conversations" in await text_of(http, "/settings/trash")
    await text_of(http, f"/channels/{LOGIN}?deleted=1", 404)
    await text_of(http, f"/channels/{FIBONACCI}")


async def test_several_conversations_are_tagged_and_exported_at_once(http: httpx.AsyncClient) -> None:
    answer = await http.post("/selections", data={"do": "tag", "tag": "old, 성능", "channel": [LOGIN, AGENT]})
    assert answer.headers["Location"] == "/?tag=old"
    assert set(rows_of(await text_of(http, "/?tag=old"))) == {LOGIN, AGENT}
    with_a_deleted_one = {"do": "tag", "tag": "new", "channel": [LOGIN, "deleted meanwhile", AGENT]}
    answer = await http.post("/selections", data=with_a_deleted_one)
    assert answer.status_code == 404
    assert "deleted meanwhile" in answer.text
    assert set(rows_of(await text_of(http, "/?tag=new"))) == {LOGIN, AGENT}
    answer = await http.post("/selections", data={"do": "export", "channel": [LOGIN, AGENT]})
    with ZipFile(BytesIO(answer.content)) as archive:
        assert archive.namelist() == [f"{LOGIN}.md", "claude-code%2F6f1c2a.md"]
        assert b"And rotation?" in archive.read(f"{LOGIN}.md")
    await text_of(http, "/channels/" + LOGIN)


async def test_a_long_conversation_has_an_outline_of_its_questions(http: httpx.AsyncClient) -> None:
    page = await text_of(http, f"/channels/{LONG}")
    assert "150 questions" in page
    last = (await ids_of_long(http))[298]
    assert f'href="/channels/{LONG}?at={last}#{last}"' in page
    outline = page[page.index('<section class="outline"') : page.index("</nav></section>")]
    assert outline.count("<") - 2 * outline.count("<a ") <= 12, (
        "one element for each question, as there may be thousands"
    )


async def test_a_further_part_is_sent_without_what_the_page_has(http: httpx.AsyncClient) -> None:
    answer = await http.get(f"/channels/{LONG}?at=latest", headers={"HX-Request": "true"})
    assert shown_ids(answer.text) == (await ids_of_long(http))[-40:]
    assert "data-question" not in answer.text, "the outline is not sent again with each part"


async def test_a_conversation_whose_folder_is_not_here_has_no_commits(http: httpx.AsyncClient) -> None:
    page = await text_of(http, f"/margin/{LOGIN}")
    assert "Commits" not in page


async def test_a_conversation_shows_its_files_and_related_conversations(
    http: httpx.AsyncClient,
) -> None:
    said = [{"role": "user", "text": "Does login check the user before it runs the tests?"}]
    await http.post("/bo/ao/run", json={"operation": "conversation_log", "channel": "like it", "messages": said})
    page = await text_of(http, f"/margin/{quote(AGENT, safe='')}")
    assert 'title="src/login.py"' in page
    related = page[page.index("Related") :]
    assert 'href="/channels/like%20it"' in related
    assert AGENT not in related


async def test_a_conversation_shows_who_asked_for_it(http: httpx.AsyncClient) -> None:
    for query in ({"text": "rotation"}, {"limit": 50}):
        sent = {"operation": "extract", "channel": LOGIN, "query": query, "source": "claude"}
        await http.post("/bo/ao/run", json=sent)
    page = await text_of(http, f"/margin/{LOGIN}")
    delivered = page[page.index("Delivered to") :]
    assert re.findall(r"<span>(.+?)</span>", delivered) == ["claude", "rotation"]


async def test_an_empty_filtered_list_does_not_offer_the_latest_conversations(http: httpx.AsyncClient) -> None:
    page = await text_of(http, "/?q=yesterday+retry")
    assert "No matches" in page
    assert "these are the latest conversations there" not in page


async def test_a_conversation_shows_the_client_it_was_resumed_in(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    await orchestrator.registry.write(
        lambda tx: save_result(
            tx, "ext_1", record_type=RESUMED, channel=LOGIN, items=[], metadata={"client": "codex", "session_id": "s"}
        )
    )
    delivered = (await text_of(http, f"/margin/{LOGIN}")).partition("Delivered to")[2]
    assert re.findall(r"<span>(.+?)</span>", delivered) == ["codex"]


async def test_invisible_characters_are_shown_on_pages(http: httpx.AsyncClient) -> None:
    hidden = "before\u202eafter \U000e0041\U000e0042 zero\u200b\u200bwidth"
    messages = [{"role": "user", "text": hidden}, {"role": "assistant", "text": f"`{hidden}`"}]
    sent = {"operation": "conversation_log", "channel": "h", "messages": messages, "metadata": {"title": hidden}}
    assert (await http.post("/bo/ao/run", json=sent)).status_code == 200
    for address in ("/channels/h", "/", "/?q=width"):
        page = await text_of(http, address)
        assert "⟦U+202E⟧" in page
        assert not re.search("[\u202e\u200b\U000e0041]", page)


async def test_forgetting_is_previewed_and_its_receipt_is_shown(http: httpx.AsyncClient) -> None:
    ids = await ids_of(http, FIBONACCI)
    assert f"/settings/forget?channel={FIBONACCI}" in await text_of(http, f"/channels/{FIBONACCI}")
    asked = await text_of(http, f"/settings/forget?channel={FIBONACCI}")
    assert "To be deleted forever" in asked
    assert f"{len(ids)} messages" in asked
    assert len(await ids_of(http, FIBONACCI)) == len(ids)
    done = await http.post("/settings/forget", data={"channel": FIBONACCI})
    assert done.status_code == 200
    assert re.search("Receipt <code>fgt_", done.text)
    await text_of(http, f"/channels/{FIBONACCI}", 404)


async def test_one_message_of_a_conversation_is_forgotten(http: httpx.AsyncClient) -> None:
    first, *others = await ids_of(http, LOGIN)
    assert "To be deleted forever" in await text_of(http, f"/settings/forget?id={first}")
    assert (await http.post("/settings/forget", data={"id": first})).status_code == 200
    assert await ids_of(http, LOGIN) == others


async def test_the_page_says_why_something_cannot_be_forgotten(http: httpx.AsyncClient) -> None:
    assert "To be deleted forever" not in await text_of(http, "/settings/forget")
    assert "Nothing matches" in await text_of(http, "/settings/forget?matching=nobody+said+that")
    assert "before" in await text_of(http, "/settings/forget?before=soonish")
    assert (await http.post("/settings/forget", data={})).status_code == 400
