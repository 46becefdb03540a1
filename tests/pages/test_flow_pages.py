"""Test the flow monitor's HTTP answers."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from itertools import count, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from backoffice.pages.filters import bar, duration
from backoffice.pages.flow.run import waterfall
from orchestrator.graph import describe_graph
from orchestrator.operations import reading
from orchestrator.service import Orchestrator
from registry.domain import format_time, now
from tests.pages.seeds import FIBONACCI

pytestmark = pytest.mark.anyio


async def newest(http: httpx.AsyncClient, **query: Any) -> dict[str, Any]:
    item: dict[str, Any] = (await http.get("/bo/ao/executions", params={"limit": 1, **query})).json()["items"][0]
    return item


async def text_of(http: httpx.AsyncClient, address: str, status: int = 200) -> str:
    answer = await http.get(address)
    assert answer.status_code == status, answer.text
    return answer.text


async def test_runs_are_listed_page_by_page_and_filtered_by_the_address(http: httpx.AsyncClient) -> None:
    first = await text_of(http, "/flow")
    seen = re.findall(r'data-id="(\w+)"', first)
    more = re.search(r'href="(/flow\?cursor=[^"]+)"', first)
    assert len(seen) == 50
    assert more
    second = re.findall(r'data-id="(\w+)"', await text_of(http, more[1]))
    assert not set(seen) & set(second)
    assert "1 run<" in await text_of(http, "/flow?operation=extract&status=succeeded&source=claude&from=&to=")
    assert "No matching runs" in await text_of(http, "/flow?status=failed")


async def test_a_machine_without_clients_says_where_to_look(http: httpx.AsyncClient) -> None:
    assert "CTXR_CODEX_DIR" in await text_of(http, "/settings")


async def test_an_unknown_filter_value_is_refused_in_words(http: httpx.AsyncClient) -> None:
    for address in ("/flow?status=odd", "/insights?last=century", "/flow?cursor=x"):
        assert "allowed" in await text_of(http, address, 400)
    assert "exec_none" in await text_of(http, "/flow/exec_none", 404)


async def test_a_run_shows_its_path_verdicts_and_results(http: httpx.AsyncClient) -> None:
    run = await newest(http, operation="extract")
    shown = await text_of(http, f"/flow/{run['id']}")
    assert 'aria-label="plan → cr_query → filter → cr_write"' in shown
    assert re.findall(r'class="way taken"[^>]+data-edge="(\S+)"', shown) == [
        "plan-cr_query",
        "cr_query-filter",
        "filter-cr_write",
    ]
    assert 'class="verdicts"' in shown
    assert "kept" in shown
    assert f"/channels/{FIBONACCI}?at=conv_" in shown
    assert "tokens" in shown


async def test_a_run_shows_the_matches_of_each_wording_and_the_confidence(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    query = {"text": "quokka", "also": ["<i>wombat</i>", "피보나치 함수"]}
    await orchestrator.run({"operation": "extract", "query": query})
    run = await newest(http)
    shown = re.sub(r"\s+", " ", await text_of(http, f"/flow/{run['id']}"))
    assert "Other wordings" in shown
    assert "2. 피보나치 함수" in shown
    assert re.search(r'100 % ?<br><span class="small">wording 2</span>', shown)
    assert "<i>wombat" not in shown
    assert re.search("<dt>confidence</dt> <dd>(high|medium|low)</dd>", shown)


async def test_a_run_that_found_nothing_says_what_was_missing(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    await orchestrator.run({"operation": "extract", "query": {"text": "kubernetes xyzzy"}})
    run = await newest(http)
    shown = await text_of(http, f"/flow/{run['id']}")
    assert run["status"] == "not_found"
    assert "these words occur nowhere: kubernetes, xyzzy" in shown
    assert "Why nothing was delivered" not in shown, "the reason is shown once"
    assert 'class="kept"' not in shown


async def test_a_verdict_says_whether_the_message_was_delivered(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    await orchestrator.run({"operation": "extract", "channel": FIBONACCI, "query": {"text": "메모이제이션 xyzzy"}})
    shown = await text_of(http, f"/flow/{(await newest(http))['id']}")
    assert '<s class="small">xyzzy</s>' in shown
    assert "delivered with its question" in shown or shown.count("<td>delivered</td>") >= 1
    assert '<span class="chip">메모이제이션</span>' in shown
    await orchestrator.run({"operation": "search", "query": {"text": "cache", "limit": 1}})
    shown = await text_of(http, f"/flow/{(await newest(http))['id']}")
    assert shown.count("<td>delivered</td>") == 1
    assert "kept, but no room in the answer" in shown


async def test_spans_cover_the_whole_time_of_a_run(http: httpx.AsyncClient) -> None:
    run = {"started_at": "2026-01-01T00:00:00.000Z", "duration_ms": 100.0}
    steps = [
        {"node": "plan", "started_at": "2026-01-01T00:00:00.020Z", "duration_ms": 10.0},
        {"node": "cr_query", "started_at": "2026-01-01T00:00:00.030Z", "duration_ms": 50.0},
    ]
    spans = waterfall({**run, "steps": steps})
    assert [(one.name, one.start_ms, one.duration_ms) for one in spans] == [
        ("before the first step", 0.0, 20.0),
        ("plan", 20.0, 10.0),
        ("cr_query", 30.0, 50.0),
        ("after the last step", 80.0, 20.0),
    ]
    assert sum(one.width for one in spans) == pytest.approx(1)
    assert "Where the time went" in await text_of(http, f"/flow/{(await newest(http))['id']}")


async def test_runs_are_listed_with_their_question_and_number_of_results(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    await orchestrator.run({"operation": "search", "query": {"text": "Cache 테스트", "limit": 3}}, "cursor-vscode 1.7")
    run = await newest(http)
    assert (run["asked"], run["delivered"]) == ("Cache 테스트", 3)
    for query in ("q=cache+테", "client=VSCODE", "q=cache&min_duration_ms=0"):
        shown = await text_of(http, f"/flow?{query}")
        assert re.findall(r'data-id="(\w+)"', shown) == [run["id"]]
        assert "<q>Cache 테스트</q>" in shown
        assert "3 results ·" in shown
    assert "4 messages ·" in await text_of(http, "/flow?operation=conversation_log&source=cursor")
    assert "No matching runs" in await text_of(http, "/flow?q=테스트&min_duration_ms=99999")
    assert f'href="/flow?channel={FIBONACCI}"' in await text_of(http, f"/channels/{FIBONACCI}")


async def test_a_record_holds_no_text_of_a_message_that_may_be_deleted(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    answer = await orchestrator.run({"operation": "extract", "channel": FIBONACCI})
    said = [message["text"] for message in answer["messages"]]
    assert said
    run = await newest(http)
    record = (await http.get(f"/bo/ao/executions/{run['id']}")).json()
    assert not [text for text in said if text[:40] in str(record)]


async def test_an_extract_is_shown_with_the_tokens_it_delivered(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    counts = {}
    for most in (12, 1000):
        await orchestrator.run({"operation": "extract", "channel": FIBONACCI, "query": {"max_tokens": most}})
        shown = await text_of(http, f"/flow/{(await newest(http))['id']}")
        found = re.search(r"≈ ([\d,]+) tokens?", shown)
        assert found
        counts[most] = int(found[1].replace(",", ""))
    assert counts[12] <= 12 < counts[1000]


async def test_every_edge_of_the_graph_is_drawn(http: httpx.AsyncClient) -> None:
    run = await newest(http)
    drawn = set(re.findall(r'data-edge="(\S+)"', await text_of(http, f"/flow/{run['id']}")))
    assert drawn == {f"{edge['from']}-{edge['to']}" for edge in describe_graph()["edges"]}


async def test_each_operation_has_a_page_for_any_outcome(http: httpx.AsyncClient, orchestrator: Orchestrator) -> None:
    requests: list[dict[str, Any]] = [
        {"operation": "search", "query": {"text": "retry cache"}},
        {"operation": "extract", "query": {"text": "retry", "mode": "summary"}},
        {"operation": "extract", "query": {"text": "xyzzy"}},
        {"operation": "extract", "query": {"limit": 0}},
        {"operation": "daily_briefing", "query": {"date": "2025-09-30"}},
        {"operation": "list"},
        {"operation": "fetch", "channel": FIBONACCI},
        {"operation": "tag", "channel": FIBONACCI, "query": {"title": "<b>&"}},
        {"operation": "delete", "channel": FIBONACCI, "query": {}},
        {"operation": "nonsense"},
    ]
    for request in requests:
        await orchestrator.run(request)
        run = await newest(http)
        shown = await text_of(http, f"/flow/{run['id']}")
        assert (run["error"] or {"code": ""})["code"] in shown
        assert ("Run again" in shown) == (run["operation"] in reading())


async def test_a_korean_page_gives_reasons_in_korean(http: httpx.AsyncClient, orchestrator: Orchestrator) -> None:
    http.headers["Accept-Language"] = "ko"
    await orchestrator.run({"operation": "search", "query": {"text": "피보나치 메모이제이션 재귀 retry"}})
    run = await newest(http)
    shown = await text_of(http, f"/flow/{run['id']}")
    assert "search 작업의 경로" in shown
    assert "단어의 일부만 있고" in shown
    for english in ("the path of", "parts of words"):
        assert english not in shown
    await orchestrator.run({"operation": "extract", "channel": "nobody"})
    for address in ("/flow", f"/flow/{(await newest(http))['id']}"):
        assert "nobody&#39; 채널이 없습니다" in await text_of(http, address)
    assert "레지스트리에 &#39;nobody&#39; 채널이" in await text_of(http, "/channels/nobody", 404)


async def test_a_korean_page_has_korean_labels_of_requests_and_results(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    http.headers["Accept-Language"] = "ko"
    when = {"from": "2000-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z"}
    query = {"text": "retry", "mode": "raw", "max_tokens": 50, **when}
    requests: list[dict[str, Any]] = [
        {"operation": "extract", "query": query},
        {"operation": "search_sessions", "query": {"text": "retry", "context_window": 2, **when}},
        {"operation": "list", "query": {"offset": 1}},
    ]
    for request in requests:
        await orchestrator.run(request)
        run = await newest(http)
        shown = await text_of(http, f"/flow/{run['id']}")
        labels = re.findall(r"<dt>(.*?)</dt>", shown)
        assert [label for label in labels if re.fullmatch("[a-z_]+", label)] == []
        assert "False" not in shown
        assert "<td>succeeded" not in shown
        assert not re.search(r">\s*\d{4}-\d\d-\d\dT", shown)


async def test_a_refused_request_names_its_fields_in_words(http: httpx.AsyncClient, orchestrator: Orchestrator) -> None:
    query = {"text": "x", "limit": 0, "context_window": -1}
    await orchestrator.run({"operation": "search_sessions", "query": query})
    english = "at most: given 0; allowed: greater than or equal to 1; messages around each match: given -1; allowed:"
    korean = "최대 개수: 받은 값 0, 허용: 1 이상; 앞뒤 메시지 수: 받은 값 -1, 허용: 0 이상"
    await assert_told(http, english, korean)


async def test_a_refused_message_is_named_by_its_position(http: httpx.AsyncClient, orchestrator: Orchestrator) -> None:
    messages = [{"text": "hello"}, {"role": "user", "text": ""}]
    await orchestrator.run({"operation": "conversation_log", "channel": "c", "messages": messages})
    english = "messages › 1 › who speaks: missing; allowed: a value is required; messages › 2 › content: given &#34;"
    korean = "메시지 › 1 › 말한 이: 값이 없음, 허용: 값이 필요합니다; 메시지 › 2 › 내용: 받은 값 &#34;&#34;, 허용: 빈"
    await assert_told(http, english, korean)


async def assert_told(http: httpx.AsyncClient, english: str, korean: str) -> None:
    """Check that the newest run's error is shown in both languages, in the list and on its page."""
    for language, expected in (("en", english), ("ko", korean)):
        http.headers["Accept-Language"] = language
        for address in ("/flow", f"/flow/{(await newest(http))['id']}"):
            assert expected in await text_of(http, address)


async def test_a_run_that_finds_nothing_shows_its_message_and_details(
    http: httpx.AsyncClient, orchestrator: Orchestrator, tmp_path: Path
) -> None:
    http.headers["Accept-Language"] = "ko"
    runs: list[tuple[dict[str, Any], str]] = [
        (
            {"operation": "blame", "query": {"file": "a.py:1", "folder": str(tmp_path)}},
            f"git 저장소가 없습니다. {tmp_path}: git 저장소가 아니거나",
        ),
        (
            {"operation": "daily_briefing", "query": {"date": "1999-01-01"}},
            "그날의 대화가 없습니다. 날짜: 받은 값 1999-01-01",
        ),
    ]
    for request, expected in runs:
        await orchestrator.run(request)
        assert expected in await text_of(http, f"/flow/{(await newest(http))['id']}")
    assert runs[0][1] in await text_of(http, "/flow")


async def test_a_message_deleted_since_is_no_longer_shown(http: httpx.AsyncClient, orchestrator: Orchestrator) -> None:
    run = await newest(http, operation="extract")
    await orchestrator.run({"operation": "delete", "channel": FIBONACCI, "query": {}})
    shown = await text_of(http, f"/flow/{run['id']}")
    assert "deleted by now" in shown
    assert "이 피보나치 함수" not in shown


async def test_a_question_can_be_asked_again(http: httpx.AsyncClient) -> None:
    run = await newest(http, operation="extract")
    answer = await http.post(f"/flow/{run['id']}/again")
    again = await newest(http, operation="extract")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/flow/{again['id']}")
    assert (again["source"], again["client"]) == ("backoffice", "test")
    one, other = [(await http.get(f"/bo/ao/executions/{id}")).json() for id in (run["id"], again["id"])]
    assert one["request"] == other["request"]


async def test_a_failed_run_can_be_run_again(http: httpx.AsyncClient, orchestrator: Orchestrator) -> None:
    await orchestrator.run({"operation": "extract", "channel": "nobody"})
    answer = await http.post(f"/flow/{(await newest(http))['id']}/again", follow_redirects=True)
    assert answer.status_code == 200
    assert "NOT_FOUND" in answer.text


async def test_a_run_that_writes_cannot_be_run_again(http: httpx.AsyncClient) -> None:
    run = await newest(http, operation="save")
    answer = await http.post(f"/flow/{run['id']}/again")
    assert answer.status_code == 400
    assert (await newest(http, operation="save"))["id"] == run["id"]


async def test_insights_count_runs_by_operation_and_client(http: httpx.AsyncClient, orchestrator: Orchestrator) -> None:
    await orchestrator.run({"operation": "extract", "channel": "nobody", "source": "claude"})
    failed = re.compile(r'<a class="bad" href="/flow\?from=[^"]+&amp;status=failed">1</a>')
    assert not failed.search(await text_of(http, "/insights"))
    await orchestrator.run({"operation": "extract", "query": {"limit": 0}, "source": "claude"}, "cursor-vscode 1.7")
    shown = await text_of(http, "/insights")
    for name in ("conversation_log", "Nothing found", "client=cursor-vscode"):
        assert name in shown
    assert failed.search(shown)
    assert "No runs in this period" in await text_of(http, "/insights?from=2001-01-01&to=2001-01-02")
    assert "No runs in" not in await text_of(http, "/insights?last=all")
    assert "1 run<" in await text_of(http, "/flow?error_code=NOT_FOUND")
    assert "No matching runs" in await text_of(http, "/flow?error_code=TIMEOUT")


async def test_insights_of_a_large_registry_are_computed_again_after_a_while(
    http: httpx.AsyncClient, orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("registry.storage.conversations.facets.MIN_CACHED_CHANNELS", 0)
    clock = count()
    monkeypatch.setattr("registry.storage.conversations.facets.time", SimpleNamespace(monotonic=clock.__next__))
    runs = re.compile(r'<dt>Runs</dt><dd class="number">(\d+)</dd>')
    address = f"/insights?from={format_time(now() - timedelta(days=1))}"
    [before] = runs.findall(await text_of(http, address))
    await orchestrator.run({"operation": "search", "query": {"text": "fibonacci"}, "source": "claude"})
    assert runs.findall(await text_of(http, address)) == [before]
    list(islice(clock, 10_000))
    assert runs.findall(await text_of(http, address)) == [str(int(before) + 1)]


async def test_statistics_have_the_duration_of_runs(http: httpx.AsyncClient) -> None:
    shown = await text_of(http, "/insights?last=24h")
    series = json.loads(shown.split('id="chart-data">')[1].split("</script>")[0])["series"]
    assert all(0 < point["p50_ms"] <= point["p95_ms"] for point in series if point["p50_ms"])
    assert any(point["p50_ms"] for point in series)


async def test_a_day_of_the_statistics_is_in_the_readers_time_zone(http: httpx.AsyncClient) -> None:
    http.cookies.set("zone", "Asia/Seoul")
    shown = await text_of(http, "/insights?last=30d")
    series = json.loads(shown.split('id="chart-data">')[1].split("</script>")[0])["series"]
    assert {point["at"][10:] for point in series} == {"T15:00:00.000Z"}


async def test_a_period_is_shown_in_the_readers_zone_and_linked_in_utc(http: httpx.AsyncClient) -> None:
    http.cookies.set("zone", "Asia/Seoul")
    shown = await text_of(http, "/insights?from=2000-01-01&to=2100-01-01")
    assert 'name="from" value="2000-01-01T00:00"' in shown
    assert 'name="to" value="2100-01-01T23:59"' in shown
    assert "from=1999-12-31T15%3A00%3A00.000Z" in shown
    listed = await text_of(http, "/flow?from=2000-01-01T00:00&to=2100-01-01")
    assert 'name="to" value="2100-01-01T23:59"' in listed


def test_durations_differ_in_text_and_width() -> None:
    cases: list[tuple[float | None, str, int | None]] = [
        (None, "–", None),
        (0, "0.00 ms", 2),
        (0.04, "0.04 ms", 2),
        (3.21, "3.2 ms", 13),
        (48.4, "48 ms", 36),
        (61_000, "61.0 s", 96),
    ]
    for ms, text, width in cases:
        assert duration(ms) == text
        assert ms is None or bar(ms) == width


async def test_the_longest_conversations_name_no_project_in_the_readers_language(http: httpx.AsyncClient) -> None:
    page = (await http.get("/insights?last=all", headers={"Cookie": "lang=ko"})).text
    longest = page[page.index('id="largest"') :]
    assert '<span class="small">일반</span>' in longest
    assert ">General<" not in longest
