"""Test /bo/conversations, /bo/search and /bo/extracts: storing, showing, finding and deleting messages."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.backoffice.conftest import Log

pytestmark = pytest.mark.anyio

TURN = {
    "channel": "cursor_session_1",
    "messages": [
        {"role": "user", "text": "피보나치 재귀를 개선해줘", "timestamp": "2025-09-29T23:30:15.1239+09:00"},
        {
            "role": "assistant",
            "text": "functools.cache 를 쓰세요",
            "timestamp": "2025-09-29T14:30:16Z",
            "context": {"file": "fib.py", "line": 3},
            "tokens": 12,
        },
    ],
    "meta": {"source": "cursor", "model": "m-1"},
}


async def texts(http: httpx.AsyncClient, **query: Any) -> list[str]:
    answer = await http.get("/bo/conversations", params=query)
    assert answer.status_code == 200, answer.text
    return [item["text"] for item in answer.json()["items"]]


async def test_a_logged_turn_is_stored_once_although_it_is_sent_repeatedly(http: httpx.AsyncClient) -> None:
    first = await http.post("/bo/conversations", json=TURN)
    again = await http.post("/bo/conversations", json=TURN)
    assert first.status_code == again.status_code == 201
    assert first.json().keys() == {
        "stored_ids",
        "channel",
        "message_count",
        "timestamp",
        "new_count",
        "duplicate_count",
    }
    assert again.json()["stored_ids"] == first.json()["stored_ids"]
    assert (again.json()["new_count"], again.json()["duplicate_count"]) == (0, 2)


async def test_a_message_is_shown_with_all_its_fields(http: httpx.AsyncClient) -> None:
    ids = (await http.post("/bo/conversations", json=TURN)).json()["stored_ids"]
    question, answer = [(await http.get(f"/bo/conversations/{id}")).json() for id in ids]
    assert (question["timestamp"], question["context"]) == ("2025-09-29T14:30:15.123Z", None)
    received_at = answer.pop("received_at")
    assert received_at.endswith("Z")
    assert answer == {
        "id": ids[1],
        "channel": "cursor_session_1",
        "source": "cursor",
        "role": "assistant",
        "text": "functools.cache 를 쓰세요",
        "timestamp": "2025-09-29T14:30:16.000Z",
        "context": {"file": "fib.py", "line": 3},
        "actor": "ao",
        "deleted": False,
        "payload": {"context": {"file": "fib.py", "line": 3}, "tokens": 12, "meta": {"model": "m-1"}},
        "record_type": "conversation",
    }


async def test_the_source_is_the_given_one_or_that_in_the_channels_name(http: httpx.AsyncClient) -> None:
    messages = [{"role": "user", "text": "hello"}]
    for channel, meta in (("a", {"source": "gemini"}), ("claude_session_7", None), ("b", {})):
        await http.post("/bo/conversations", json={"channel": channel, "messages": messages, "meta": meta})
    items = (await http.get("/bo/conversations?order=asc")).json()["items"]
    assert [item["source"] for item in items] == ["gemini", "claude", "unknown"]


@pytest.mark.both_databases
async def test_each_filter_narrows_the_list(http: httpx.AsyncClient, log: Log) -> None:
    await log("a", "question one", "answer one", start="2025-09-01T10:00", source="cursor")
    await log("b", "question two", "answer two", start="2025-09-02T10:00", source="claude")
    assert await texts(http) == ["answer two", "question two", "answer one", "question one"]
    assert await texts(http, order="asc", limit=1) == ["question one"]
    assert await texts(http, channel="a") == ["answer one", "question one"]
    assert await texts(http, source="claude", role="user") == ["question two"]
    assert await texts(http, channel="a", role=["user", "assistant"]) == ["answer one", "question one"]
    assert await texts(http, **{"from": "2025-09-02T10:00:01Z"}) == ["answer two"]
    assert await texts(http, to="2025-09-01") == ["answer one", "question one"]
    assert await texts(http, channel="nobody") == []


async def test_a_search_in_a_channel_finds_its_message_although_many_others_match(
    http: httpx.AsyncClient, log: Log
) -> None:
    await log("small", "alpha in a long sentence of many other words", "no")
    for i in range(6):
        await log(f"big {i}", *(f"alpha {i} {j}" for j in range(60)))
    assert await texts(http, q="alpha", channel="small") == ["alpha in a long sentence of many other words"]


async def test_words_find_messages_in_either_language(http: httpx.AsyncClient, log: Log) -> None:
    await log("a", "피보나치는 재귀로", "a long answer about sailing boats " * 30 + "and useDebouncedValue")
    assert await texts(http, q="피보나치") == ["피보나치는 재귀로"]
    assert len(await texts(http, q="useDebouncedValue")) == 1, "a long text is found"
    assert await texts(http, q="?!") == []


@pytest.mark.both_databases
async def test_paging_neither_repeats_nor_skips_while_messages_arrive(http: httpx.AsyncClient, log: Log) -> None:
    await log("c", *(f"text {i}" for i in range(5)))
    seen, cursor = [], None
    for _ in range(3):
        page = (
            await http.get("/bo/conversations", params={"limit": 2} | ({"cursor": cursor} if cursor else {}))
        ).json()
        seen += [item["text"] for item in page["items"]]
        cursor = page["next_cursor"]
        await log("c", f"late {cursor}", start="2025-09-30T00:00")
    assert seen == ["text 4", "text 3", "text 2", "text 1", "text 0"]
    assert cursor is None


@pytest.mark.both_databases
async def test_a_deleted_message_is_gone_at_once_and_comes_back_when_it_is_restored(
    http: httpx.AsyncClient, log: Log
) -> None:
    kept, gone = await log("c", "about boats", "about fibonacci")
    deleted = await http.delete(f"/bo/conversations/{gone}")
    assert (deleted.status_code, deleted.json()["deleted"]) == (200, True)
    assert await texts(http) == ["about boats"]
    assert await texts(http, q="fibonacci") == []
    assert (await http.get("/bo/search?q=fibonacci")).json()["total"] == 0
    assert (await http.get(f"/bo/conversations/{gone}")).status_code == 404
    assert (await http.get(f"/bo/conversations/{gone}?include_deleted=true")).json()["deleted"] is True
    assert len(await texts(http, include_deleted="true")) == 2
    assert (await http.get("/bo/channels/c")).json()["message_count"] == 1

    restored = await http.post(f"/bo/conversations/{gone}/restore")
    assert (restored.status_code, restored.json()["deleted"]) == (200, False)
    assert await texts(http, q="fibonacci") == ["about fibonacci"]
    assert (await http.get("/bo/search?q=fibonacci")).json()["items"][0]["id"] == gone
    assert kept != gone


async def test_a_conversation_that_goes_on_after_it_was_deleted_begins_with_its_new_message(
    http: httpx.AsyncClient,
) -> None:
    await http.post("/bo/conversations", json=TURN)
    await http.delete("/bo/channels/cursor_session_1")
    more = {"role": "user", "text": "메모리는?", "timestamp": "2025-10-02T01:00:00Z"}
    await http.post("/bo/conversations", json={**TURN, "messages": [more]})
    channel = (await http.get("/bo/channels/cursor_session_1")).json()
    assert (channel["message_count"], channel["created_at"]) == (1, "2025-10-02T01:00:00.000Z")


async def test_a_message_deleted_and_restored_has_both_runs_in_its_channel(http: httpx.AsyncClient, log: Log) -> None:
    [message_id] = await log("fibonacci", "How do I memoise it?")
    address = f"/bo/conversations/{message_id}"
    await http.delete(address)
    await http.post(f"{address}/restore")
    runs = (await http.get("/bo/ao/executions", params={"channel": "fibonacci"})).json()["items"]
    assert {"delete", "restore"} <= {run["operation"] for run in runs}


async def test_a_message_deleted_for_good_cannot_be_restored(http: httpx.AsyncClient, log: Log) -> None:
    [id] = await log("c", "secret")
    assert (await http.delete(f"/bo/conversations/{id}?soft=false")).status_code == 200
    assert (await http.post(f"/bo/conversations/{id}/restore")).status_code == 404
    assert (await http.delete(f"/bo/conversations/{id}")).status_code == 404
    assert await texts(http, include_deleted="true") == []


async def test_search_answers_best_first_and_page_by_page(http: httpx.AsyncClient, log: Log) -> None:
    await log("a", "fibonacci numbers", source="cursor", project="/p/numbers")
    await log("b", "fibonacci in python", source="claude")
    await log("c", "sailing boats")
    first = (await http.get("/bo/search?q=fibonacci&limit=1")).json()
    rest = (await http.get("/bo/search", params={"q": "fibonacci", "cursor": first["next_cursor"]})).json()
    assert {item["channel"] for item in first["items"] + rest["items"]} == {"a", "b"}
    assert (first["total"], len(first["items"]), rest["next_cursor"]) == (2, 1, None)
    assert first["items"][0]["score"] >= rest["items"][0]["score"]
    assert first["items"][0]["words"] == ["fibonacci"]


@pytest.mark.both_databases
async def test_a_time_or_a_client_alone_lists_its_messages(http: httpx.AsyncClient, log: Log) -> None:
    await log("a", "fibonacci numbers", "fibonacci answer", start="2025-10-01T10:00", source="cursor")
    await log("b", "sailing boats", start="2025-10-01T12:00", source="claude")
    await log("c", "sailing again", start="2025-11-05T12:00", source="claude")

    async def found(words: str, **more: Any) -> tuple[list[str], int]:
        answer = (await http.get("/bo/search", params={"q": words, **more})).json()
        assert "items" in answer, answer
        return [item["text"] for item in answer["items"]], answer["total"]

    everything = ["sailing boats", "fibonacci answer", "fibonacci numbers"]
    assert await found("what did we talk about on October 1, 2025?") == (everything, 3)
    assert await found("on October 1, 2025", limit=2) == (everything[:2], 3)
    assert (await found("2025년 10월에 한 작업 정리해줘"))[1] == 3
    assert (await found("클로드에서 한 작업"))[0] == ["sailing again", "sailing boats"]
    assert await found("on October 1, 2025", channel="b") == (["sailing boats"], 1)
    assert await found("sailing on October 1, 2025 we talked") == (["sailing boats"], 1)
    assert await found("what did we talk about?") == ([], 0)  # no time and no client


async def test_a_search_keeps_to_its_channel_project_source_role_and_time(http: httpx.AsyncClient, log: Log) -> None:
    await log("a", "fibonacci numbers", "fibonacci answer", source="cursor", project="/p/numbers")
    await log("b", "fibonacci in python", start="2025-10-01T10:00", source="claude")
    await http.patch("/bo/channels/b", json={"tags": ["x"]})

    async def found(**query: Any) -> set[str]:
        answer = (await http.get("/bo/search", params={"q": "fibonacci", **query})).json()
        return {item["text"] for item in answer["items"]}

    assert await found(channel="b") == await found(source="claude") == await found(tag="x") == {"fibonacci in python"}
    assert await found(project="numbers", role="assistant") == {"fibonacci answer"}
    assert await found(**{"from": "2025-09-30"}) == {"fibonacci in python"}
    assert await found(to="2025-09-29") == {"fibonacci numbers", "fibonacci answer"}
    assert (await http.get("/bo/search?q=fibonacci&channel=nobody")).status_code == 404


async def test_the_results_of_an_extraction_are_stored_for_its_channel(http: httpx.AsyncClient, log: Log) -> None:
    ids = await log("c", "about fibonacci", "lru_cache")
    request = {"operation": "extract", "channel": "c", "query": {"text": "fibonacci"}, "source": "claude"}
    await http.post("/bo/ao/run", json=request, headers={"User-Agent": "claude-ai 1.0"})
    page = (await http.get("/bo/extracts?channel=c")).json()
    [kept] = page["items"]
    assert (page["total"], kept["channel"], kept["result_type"], kept["items"]) == (1, "c", "raw", ids)
    assert (kept["metadata"]["source"], kept["metadata"]["client"]) == ("claude", "claude-ai 1.0")
    assert (await http.get("/bo/extracts?channel=other")).json()["items"] == []


async def test_a_message_without_a_text_is_refused_with_its_position(http: httpx.AsyncClient) -> None:
    messages = [{"role": "user", "text": "fibonacci"}, {"role": "assistant", "text": " \n"}]
    answer = await http.post("/bo/conversations", json={"channel": "c", "messages": messages})
    assert answer.status_code == 400
    assert "messages.1.text" in answer.json()["error"]["details"]
    assert (await http.get("/bo/channels")).json()["total"] == 0


async def test_a_search_marks_messages_that_were_undone(http: httpx.AsyncClient) -> None:
    undone = {"role": "user", "text": "Is rent deducted at 17 %?", "superseded": True}
    await http.post("/bo/conversations", json={"channel": "rent", "messages": [undone]})
    [found] = (await http.get("/bo/search?q=rent+deducted")).json()["items"]
    [channel] = (await http.get("/bo/channels?q=rent+deducted")).json()["items"]
    assert found["superseded"] is channel["passages"][0]["superseded"] is True
