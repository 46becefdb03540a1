"""Test asking again with changes, comparing, and test cases."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from orchestrator.recording.evaluation import evaluate, hit_rates
from orchestrator.service import Orchestrator
from tests.pages.seeds import FIBONACCI, LOGIN

pytestmark = pytest.mark.anyio


async def try_on_page(http: httpx.AsyncClient, **form: Any) -> str:
    """Ask by the page's form; return the address of the run."""
    answer = await http.post("/flow/try", data=form)
    assert answer.status_code == 303, answer.text
    return answer.headers["Location"]


async def messages_of(http: httpx.AsyncClient, channel: str) -> list[str]:
    answer = await http.get("/bo/conversations", params={"channel": channel, "order": "asc"})
    return [item["id"] for item in answer.json()["items"]]


async def test_a_question_is_asked_with_and_without_changes(http: httpx.AsyncClient) -> None:
    first = await try_on_page(
        http, operation="extract", text="피보나치", limit="2", roles=["assistant"], also="memo\nfibonacci"
    )
    run = first.removeprefix("/flow/")
    assert (await http.get(f"/bo/ao/executions/{run}")).json()["request"]["query"] == {
        "text": "피보나치",
        "also": ["memo", "fibonacci"],
        "limit": 2,
        "mode": "raw",
        "roles": ["assistant"],
    }
    form = (await http.get(f"/flow/try?run={run}")).text
    assert 'value="피보나치"' in form
    assert re.search(r'value="assistant" checked', form)
    assert f'href="/flow/{run}"' in form
    second = await try_on_page(http, operation="search", text="rotation")
    assert "rotation" in (await http.get(second)).text


async def test_an_invalid_request_is_shown_as_a_failed_run(http: httpx.AsyncClient) -> None:
    shown = (await http.get(await try_on_page(http, operation="search", text="x", limit="0"))).text
    assert "INVALID_REQUEST" in shown
    files = {name: ("notes.txt", b"words") for name in ("channel", "limit", "text", "roles")}
    answer = await http.post("/flow/try", data={"operation": "search"}, files=files)
    assert answer.status_code == 303, answer.text


async def test_an_expected_message_is_stored_as_a_test_case_and_asked_again(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    first, second, *_ = await messages_of(http, LOGIN)
    missed = (await try_on_page(http, operation="search", text="피보나치")).removeprefix("/flow/")
    hit = (await try_on_page(http, operation="extract", text="where should the refresh token live")).removeprefix(
        "/flow/"
    )
    for run, message in ((missed, f"http://127.0.0.1:8765/channels/{LOGIN}?at={first}#{first}"), (hit, first)):
        answer = await http.post(f"/flow/{run}/expected", data={"message": message})
        assert answer.headers["Location"] == f"/flow/{run}?expected={first}#expected"
    assert "It contains no whole word of the request." in (await http.get(f"/flow/{missed}?expected={first}")).text
    assert "It was delivered." in (await http.get(f"/flow/{hit}?expected={first}")).text
    assert "ranked too low" not in (await http.get(f"/flow/{hit}?expected={second}")).text
    await http.post(f"/flow/{hit}/expected", data={"message": first})

    outcomes = await evaluate(orchestrator)
    assert [outcome["place"] for outcome in outcomes] == [None, 1], "storing a case twice gives one case"
    rates = hit_rates(outcomes)
    assert (rates["cases"], rates["found"], rates["hit_rate"]) == (2, 1, 0.5)
    assert rates["operations"]["search"]["found"] == 0

    page = (await http.post("/flow/cases/run")).text
    assert "1 of 2 found, 1 of them first" in page
    assert "not found" in page
    shown = (await http.get("/insights")).text
    assert "1 of 2 found, 1 of them first" in shown
    assert shown.count('class="bar found"') == 2, "a bar for each evaluation"
    case = re.findall(r"/flow/cases/(case_\w+)/deletion", page)[0]
    await http.post(f"/flow/cases/{case}/deletion")
    assert (await http.get("/flow/cases")).text.count("/deletion") == 1
    assert (await http.post(f"/flow/cases/{case}/deletion")).status_code == 404


async def test_the_step_that_lost_a_message_is_named(http: httpx.AsyncClient) -> None:
    first, second, *_ = await messages_of(http, FIBONACCI)
    run = (await try_on_page(http, operation="extract", text="cache retry", channel=LOGIN)).removeprefix("/flow/")
    assert "Another conversation was chosen." in (await http.get(f"/flow/{run}?expected={second}")).text
    run = (await try_on_page(http, operation="search", text="피보나치", roles="assistant")).removeprefix("/flow/")
    assert "Messages of its role were not asked for." in (await http.get(f"/flow/{run}?expected={first}")).text
    run = (await try_on_page(http, operation="search", text="피보나치", limit="1")).removeprefix("/flow/")
    pages = [(await http.get(f"/flow/{run}?expected={one}")).text for one in (first, second)]
    assert sum("the answer was full" in page for page in pages) == 1


async def test_a_test_case_needs_a_search_and_a_stored_message(http: httpx.AsyncClient) -> None:
    listed = (await http.get("/bo/ao/executions", params={"operation": "tag"})).json()["items"][0]["id"]
    first = (await messages_of(http, LOGIN))[0]
    assert (await http.post(f"/flow/{listed}/expected", data={"message": first})).status_code == 400
    run = (await try_on_page(http, operation="search", text="token")).removeprefix("/flow/")
    for message, status in (("x", 400), ("conv_nothing", 404)):
        assert (await http.post(f"/flow/{run}/expected", data={"message": message})).status_code == status
