"""Test pins and saved views, and details of runs and conversations."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import AsyncMock

import httpx
import pytest

from orchestrator.service import Orchestrator
from registry.domain import Message, Role, now
from registry.storage.conversations.belonging import list_views
from tests.pages.seeds import FIBONACCI, read_in
from tests.pages.test_markdown import PIXEL

pytestmark = pytest.mark.anyio


async def newest(http: httpx.AsyncClient, operation: str) -> str:
    answer = await http.get("/bo/ao/executions", params={"operation": operation, "limit": 1})
    return str(answer.json()["items"][0]["id"])


async def test_a_pinned_conversation_is_on_the_first_page_until_it_is_unpinned(http: httpx.AsyncClient) -> None:
    for pinned in ("true", "true"):
        answer = await http.post("/pins", data={"channel": FIBONACCI, "pinned": pinned})
        assert answer.status_code == 303
    home = (await http.get("/")).text
    for page in (home, (await http.get("/flow")).text):
        assert "<h2>Pinned</h2>" in page
        assert "<span>fib</span></a>" in page
    assert "Unpin" in (await http.get(f"/channels/{FIBONACCI}")).text
    await http.post("/pins", data={"channel": FIBONACCI, "pinned": "false"})
    assert "<h2>Pinned</h2>" not in (await http.get("/")).text


async def test_a_list_is_saved_under_a_name_and_deleted(http: httpx.AsyncClient, orchestrator: Orchestrator) -> None:
    assert "Save this view" in (await http.get("/", params={"tag": "python"})).text
    for address in ("/?tag=go", "/?tag=python"):
        saved = await http.post("/views", data={"name": "<b>뱀</b>", "address": address})
        assert saved.headers["Location"] == address
    for page in ("/", "/flow"):
        shown = (await http.get(page)).text
        assert re.search(r'<a href="/\?tag=python">.*<span>&lt;b&gt;뱀&lt;/b&gt;</span></a>', shown)
        assert "/?tag=go" not in shown
    for elsewhere in ("https://evil.example/?q=x", "//evil.example/?q=x", "/login?next=x"):
        assert (await http.post("/views", data={"name": "x", "address": elsewhere})).status_code == 400
    [view] = await orchestrator.registry.read(list_views)
    assert (await http.post(f"/views/{view['id']}/deletion")).status_code == 303
    assert (await http.post(f"/views/{view['id']}/deletion")).status_code == 404
    assert "뱀" not in (await http.get("/")).text


async def test_a_run_is_rated_on_the_page_and_by_the_api(http: httpx.AsyncClient) -> None:
    run = await newest(http, "extract")
    assert "Was it useful?" in (await http.get(f"/flow/{run}")).text
    await http.post(f"/flow/{run}/rating", data={"useful": "true"})
    assert 'value="true" aria-pressed="true"' in (await http.get(f"/flow/{run}")).text
    answer = await http.post(f"/bo/ao/executions/{run}/rating", json={"useful": False})
    assert answer.json() == {"useful": False}
    assert (await http.post("/bo/ao/executions/exec_none/rating", json={"useful": True})).status_code == 404
    assert 'value="false" aria-pressed="true"' in (await http.get(f"/flow/{run}")).text


async def test_a_hint_rated_not_useful_is_not_given_again_in_that_project(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    cause = "HikariPool: connection is not available, RefundService.refund calls the PG cancel api"
    said = [{"role": "user", "text": cause}, {"role": "assistant", "text": "Move the call out of the transaction."}]
    talk = {"channel": "refunds", "messages": said, "meta": {"project": "/home/me/shop"}}
    await orchestrator.run({"operation": "conversation_log", **talk})
    prompt = {"text": "fix: HikariPool connection is not available, RefundService.refund calls the PG cancel api"}

    async def hint(query: dict[str, Any], folder: str) -> str:
        answer = await orchestrator.run({"operation": "hint", "query": {**query, "folder": folder}})
        return str(answer["hint"])

    assert await hint(prompt, "/home/me/shop")
    run = await newest(http, "hint")
    assert "Was it useful?" in (await http.get(f"/flow/{run}")).text
    await http.post(f"/flow/{run}/rating", data={"useful": "true"})
    assert await hint(prompt, "/home/me/shop")
    await http.post(f"/flow/{run}/rating", data={"useful": "false"})
    assert await hint(prompt, "/home/me/shop") == ""
    assert "Was it useful?" not in (await http.get(f"/flow/{await newest(http, 'hint')}")).text
    assert await hint(prompt, "/home/me/blog")


async def test_a_running_run_is_shown(http: httpx.AsyncClient, orchestrator: Orchestrator) -> None:
    held, reached = asyncio.Event(), asyncio.Event()

    async def wait(_: bool) -> None:
        reached.set()
        await held.wait()

    orchestrator.before_reading = wait
    run = asyncio.create_task(orchestrator.run({"operation": "search", "query": {"text": "slow one"}}, "slowpoke 1.0"))
    await reached.wait()
    orchestrator.before_reading = None
    for address in ("/flow", "/flow/running"):
        shown = (await http.get(address)).text
        assert "<q>slow one</q>" in shown
        assert "plan" in shown
    [item] = (await http.get("/bo/ao/executions", params={"status": "running"})).json()["items"]
    assert (item["operation"], item["client"], item["finished_at"]) == ("search", "slowpoke 1.0", None)
    held.set()
    await run
    assert (await http.get("/bo/ao/executions", params={"status": "running"})).json()["items"] == []
    assert 'aria-label="Running now" tabindex="0" hidden' in (await http.get("/flow")).text


async def test_a_run_shows_the_state_before_and_after_each_node(http: httpx.AsyncClient) -> None:
    shown = re.sub(r"\s+", " ", (await http.get(f"/flow/{await newest(http, 'extract')}")).text)
    assert "State before and after" in shown
    assert '<span class="chip">+ read from the registry</span>' in shown
    assert '<span class="chip">+ answer so far</span>' in shown
    row = r"answer so far · <code>messages</code></td> <td class=\"number\">–</td><td class=\"number\">[1-9]"
    assert re.search(row, shown), "the state before the node"


async def test_tokens_are_summed_by_client_project_model_and_day(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    usage = {"input_tokens": 1000, "output_tokens": 20, "cache_read_input_tokens": 9000}
    more = {"model": "claude-sonnet-4-5", "usage": usage}
    said = [Message(Role.ASSISTANT, f"answer {n}", now() - timedelta(days=n), None, more) for n in (0, 1, 400)]
    await read_in(orchestrator, "used", said, now(), project="/home/me/shop")
    shown = re.sub(r"\s+", " ", (await http.get("/insights")).text)
    figures = re.findall(r"<dt>([^<]+)</dt><dd class=\"number\"[^>]*>([^<]+)</dd>", shown.partition('id="tokens"')[2])
    assert figures[:4] == [
        ("List price", "$0.01"),
        ("Input tokens", "2,000"),
        ("Output tokens", "40"),
        ("From the cache", "18.0K"),
    ]
    for name in ("claude-sonnet-4-5", ">claude-code</a>", ">shop</a>"):
        assert name in shown
    assert ">9,000</dd>" in (await http.get("/insights", params={"last": "24h"})).text
    assert shown.count("<title>") - shown.count("<title>0</title>") > 2, "a bar for each day"
    today, yesterday = (now() - timedelta(days=n) for n in (0, 1))
    for name in ("claude-code", "Claude Sonnet 4.5"):
        rows = [f'<th scope="row">{day:%Y-%m-%d}</th><td class="number">20</td>' for day in (today, yesterday)]
        assert f"{name}</th></tr></thead> <tr>{rows[0]}</tr> <tr>{rows[1]}</tr>" in shown, "a table behind the chart"
    whole = re.sub(r"\s+", " ", (await http.get("/insights", params={"last": "all"})).text)
    assert whole.count("Week from") == 2, "a long time is shown by week"
    talk = re.sub(r"\s+", " ", (await http.get("/channels/used")).text)
    assert "60 output tokens</span>" not in talk
    assert "60 output tokens · $0.02" in talk


async def test_a_very_long_message_is_shortened_and_offered_as_a_file(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    text = "".join(f"<line {n}>\n" for n in range(30_000))
    log = {"operation": "conversation_log", "channel": "huge", "messages": [{"role": "user", "text": text}]}
    answer = await orchestrator.run(log)
    [message] = answer["stored_ids"]
    page = (await http.get("/channels/huge")).text
    assert len(page) < 200_000
    assert f'href="/messages/{message}/raw" download' in page
    whole = (await http.get(f"/messages/{message}/whole")).text
    assert "&lt;line 15000&gt;" in whole
    assert "&lt;line 29999&gt;" not in whole
    assert f'href="/messages/{message}/raw" download' in whole
    assert (await http.get(f"/messages/{message}/raw")).text == text


async def test_an_image_in_a_message_is_served_from_here_with_its_type(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    messages = [{"role": "user", "text": f"Look: ![plan]({PIXEL})"}]
    answer = await orchestrator.run({"operation": "conversation_log", "channel": "seen", "messages": messages})
    [message] = answer["stored_ids"]
    assert f'<img src="/messages/{message}/images/0" alt="plan"' in (await http.get("/channels/seen")).text
    picture = await http.get(f"/messages/{message}/images/0")
    assert picture.headers["Content-Type"] == "image/png"
    assert picture.headers["X-Content-Type-Options"] == "nosniff"
    assert picture.content.startswith(b"\x89PNG")
    assert (await http.get(f"/messages/{message}/images/1")).status_code == 404


async def test_images_that_a_client_did_not_share_are_marked(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    at = datetime(2025, 10, 1, tzinfo=UTC)
    said = Message(Role.USER, "What is wrong here?", at, None, {"attachments": ["screen.png", "image/png"]})
    await read_in(orchestrator, "pictures", [said], at)
    assert "2 attachments, not stored: screen.png, image/png" in (await http.get("/channels/pictures")).text
    http.cookies.set("lang", "ko")
    assert "첨부 2개 (저장하지 않음): screen.png, image/png" in (await http.get("/channels/pictures")).text


PASTED = """Traceback (most recent call last):
  File "app.py", line 12, in <module>
    print(x[*][0] *or* _this_)
SyntaxError: invalid syntax
$ ls __pycache__
# what now?"""


async def test_text_pasted_from_a_terminal_keeps_its_layout(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    texts = [PASTED, "- **bold**\n  - and `code`\n- more", "> quoted\n> and more\n\nis that *right*?"]
    texts.append("$ make fails since *Monday*\n    - and I do not know why\nwho does?")
    messages = [{"role": "user", "text": text} for text in texts]
    await orchestrator.run({"operation": "conversation_log", "channel": "pasted", "messages": messages})
    shown = (await http.get("/channels/pasted")).text
    assert "print(x[*][0] *or* _this_)" in shown
    assert "<h3># what" not in shown
    assert "<strong>bold</strong>" in shown
    assert "<em>right</em>" in shown
    assert "<em>Monday</em>" in shown


async def test_a_conversation_is_exported_as_a_page(http: httpx.AsyncClient) -> None:
    assert "kind=html" in (await http.get(f"/channels/{FIBONACCI}")).text
    page = await http.get(f"/exports/{FIBONACCI}", params={"kind": "html"})
    assert page.headers["Content-Disposition"].startswith("attachment")
    assert "피보나치" in page.text


ELSEWHERE = "https://registry.example"


async def test_the_copy_of_a_registry_elsewhere_says_so(http: httpx.AsyncClient, orchestrator: Orchestrator) -> None:
    assert "copy-of" not in (await http.get("/")).text
    orchestrator.remote_url = ELSEWHERE
    copies: list[tuple[Any, str]] = [
        (None, f"Synced with <bdi>{ELSEWHERE}</bdi>"),
        ({"of": ELSEWHERE, "as_of": None}, "This is the copy on this machine."),
        ({"of": ELSEWHERE, "as_of": "2026-01-02T03:04:05Z"}, "has not answered since"),
    ]
    for copy, said in copies:
        orchestrator.local_copy = AsyncMock(return_value=copy)
        for address in ("/", "/settings"):
            assert said in (await http.get(address)).text


async def test_a_request_is_shown_in_words(http: httpx.AsyncClient) -> None:
    run = await newest(http, "extract")
    for language, told in (
        ("en", ("the messages themselves", "You, Assistant")),
        ("ko", ("메시지 원문", "나, 어시스턴트")),
    ):
        page = (await http.get(f"/flow/{run}", headers={"Accept-Language": language})).text
        asked = page.partition('id="asked"')[2].partition("</section>")[0]
        assert all(words in asked for words in told)
        assert not re.search(r"<d[td]>(raw|roles?|query|user.*|mode|limit|utc_offset_minutes)</d[td]>", asked)
