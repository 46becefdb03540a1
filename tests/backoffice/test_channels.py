"""Test /bo/channels: finding, naming and deleting channels."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.backoffice.conftest import Log

pytestmark = pytest.mark.anyio

ODD = "커서/대화 #1?50%"
ODD_PATH = "/bo/channels/%EC%BB%A4%EC%84%9C/%EB%8C%80%ED%99%94%20%231%3F50%25"


async def names(http: httpx.AsyncClient, **query: Any) -> list[str]:
    answer = await http.get("/bo/channels", params=query)
    assert answer.status_code == 200, answer.text
    return [item["channel"] for item in answer.json()["items"]]


async def test_a_channel_shows_its_details(http: httpx.AsyncClient, log: Log) -> None:
    await log("c", "how do I memoize fibonacci?", "lru_cache", source="cursor", project="/home/me/numbers", title="Fib")
    assert (await http.get("/bo/channels/c")).json() == {
        "session_id": "c",
        "channel": "c",
        "source": "cursor",
        "title": "Fib",
        "nickname": None,
        "tags": [],
        "project_path": "/home/me/numbers",
        "project_name": "numbers",
        "message_count": 2,
        "created_at": "2025-09-29T14:30:00.000Z",
        "updated_at": "2025-09-29T14:30:01.000Z",
        "last_accessed": None,
        "first_message_preview": "how do I memoize fibonacci?",
        "summary": None,
    }


async def test_a_name_with_slashes_korean_and_reserved_characters_is_one_address(
    http: httpx.AsyncClient, log: Log
) -> None:
    await log(ODD, "안녕")
    assert (await http.get(ODD_PATH)).json()["channel"] == ODD
    assert (await http.patch(ODD_PATH, json={"nickname": "이상한"})).json()["nickname"] == "이상한"
    assert (await http.delete(ODD_PATH)).json()["deleted"] is True
    assert (await http.get(ODD_PATH)).status_code == 404


@pytest.mark.both_databases
async def test_channels_are_listed_by_last_activity_newest_first(http: httpx.AsyncClient, log: Log) -> None:
    for hour, channel in enumerate(("old", "middle", "new")):
        await log(channel, "hello", start=f"2025-09-29T0{hour}:00")
    assert await names(http) == ["new", "middle", "old"]
    assert await names(http, order="asc") == ["old", "middle", "new"]


@pytest.mark.both_databases
async def test_each_filter_narrows_the_list(http: httpx.AsyncClient, log: Log) -> None:
    await log("a", "about fibonacci", source="cursor", project="/home/me/numbers", start="2025-09-01T10:00")
    await log("b", "about sailing boats", source="claude", project="/home/me/sea", start="2025-09-02T10:00")
    await http.patch("/bo/channels/b", json={"tags": ["holiday"]})
    assert await names(http, source="cursor") == ["a"]
    assert await names(http, project="/home/me/sea") == await names(http, project="sea") == ["b"]
    assert await names(http, tag="holiday") == ["b"]
    assert await names(http, q="fibonacci") == ["a"]
    assert await names(http, q="SEA") == ["b"], "a part of the project's name"
    assert await names(http, **{"from": "2025-09-02"}) == ["b"]
    assert await names(http, to="2025-09-01") == ["a"], "a day without a time is all of that day"
    assert await names(http, source="claude", q="fibonacci") == []


@pytest.mark.both_databases
async def test_paging_neither_repeats_nor_skips_while_channels_arrive(http: httpx.AsyncClient, log: Log) -> None:
    for hour in range(5):
        await log(f"c{hour}", "hello", start=f"2025-09-29T0{hour}:00")
    first = (await http.get("/bo/channels?limit=2")).json()
    await log("late", "hello", start="2025-09-30T00:00")
    second = (await http.get("/bo/channels", params={"limit": 2, "cursor": first["next_cursor"]})).json()
    third = (await http.get("/bo/channels", params={"limit": 2, "cursor": second["next_cursor"]})).json()
    pages = [[item["channel"] for item in page["items"]] for page in (first, second, third)]
    assert pages == [["c4", "c3"], ["c2", "c1"], ["c0"]]
    assert (first["total"], third["total"], third["next_cursor"]) == (5, 6, None)


@pytest.mark.both_databases
async def test_naming_sets_what_is_given_and_null_clears(http: httpx.AsyncClient, log: Log) -> None:
    await log("c", "hello", title="Greeting")
    named = (await http.patch("/bo/channels/c", json={"nickname": "hi", "tags": ["b", "a", "b"]})).json()
    assert (named["title"], named["nickname"], named["tags"]) == ("Greeting", "hi", ["a", "b"])
    assert (await http.patch("/bo/channels/c", json={})).json() == named
    assert (await http.get("/bo/channels/c")).json() == named
    cleared = (await http.patch("/bo/channels/c", json={"title": None, "nickname": None, "tags": None})).json()
    assert (cleared["title"], cleared["nickname"], cleared["tags"]) == (None, None, [])


async def test_a_channel_is_found_by_its_title(http: httpx.AsyncClient, log: Log) -> None:
    await log("c", "hello")
    await http.patch("/bo/channels/c", json={"title": "Kubernetes ingress"})
    assert await names(http, q="kubernetes") == ["c"]


async def test_a_title_and_nickname_find_their_channel_after_its_question_is_erased(
    http: httpx.AsyncClient, log: Log
) -> None:
    question, _ = await log("c", "hello", "hi there")
    await http.patch("/bo/channels/c", json={"title": "Redis timeouts", "nickname": "zanzibar"})
    await http.delete(f"/bo/conversations/{question}", params={"soft": False})
    for words in ("redis", "zanzibar"):
        found = (await http.get("/bo/channels", params={"q": words})).json()["items"]
        assert [item["channel"] for item in found] == ["c"], words


async def test_a_blank_title_is_refused(http: httpx.AsyncClient, log: Log) -> None:
    await log("c", "hello")
    refused = await http.patch("/bo/channels/c", json={"title": "  "})
    assert refused.status_code == 400
    assert "title" in refused.json()["error"]["details"]


@pytest.mark.both_databases
async def test_a_nickname_in_use_is_refused(http: httpx.AsyncClient, log: Log) -> None:
    await log("a", "hello")
    await log("b", "hello")
    await http.patch("/bo/channels/a", json={"nickname": "mine"})
    refused = await http.patch("/bo/channels/b", json={"nickname": "mine"})
    assert refused.status_code == 400
    assert "nickname" in refused.json()["error"]["details"]


async def test_a_deleted_channel_is_gone_at_once_from_lists_and_search(http: httpx.AsyncClient, log: Log) -> None:
    for channel, soft, kept in (("kept", "true", 1), ("erased", "false", 0)):
        await log(channel, "about fibonacci")
        deleted = await http.delete(f"/bo/channels/{channel}?soft={soft}")
        assert (deleted.status_code, deleted.json()["channel"], deleted.json()["deleted"]) == (200, channel, True)
        assert await names(http) == await names(http, q="fibonacci") == []
        assert (await http.get("/bo/conversations")).json()["items"] == []
        assert (await http.get("/bo/search?q=fibonacci")).json()["items"] == []
        found = (await http.get(f"/bo/conversations?include_deleted=true&channel={channel}")).json()
        assert found["total"] == kept


async def test_an_unknown_channel_is_not_found(http: httpx.AsyncClient) -> None:
    for method, body in [("GET", None), ("PATCH", {"title": "x"}), ("DELETE", None)]:
        answer = await http.request(method, "/bo/channels/nobody", json=body)
        assert answer.status_code == 404
        assert answer.json()["error"]["code"] == "NOT_FOUND"


@pytest.mark.parametrize("is_soft", [True, False])
async def test_the_name_of_a_deleted_channel_is_not_taken_for_the_beginning_of_another(
    http: httpx.AsyncClient, log: Log, is_soft: bool
) -> None:
    for channel in ("codex_session_12", "codex_session_120"):
        await log(channel, "Hello")
    await http.delete("/bo/channels/codex_session_12", params={"soft": is_soft})
    page = {"Accept": "text/html"}
    for sent in (
        await http.patch("/bo/channels/codex_session_12", json={"title": "Late"}),
        await http.post("/channels/codex_session_12", data={"title": "Late"}, headers=page),
        await http.post("/pins", data={"channel": "codex_session_12"}, headers=page),
        await http.post("/sharings", data={"channel": "codex_session_12", "with": "team"}, headers=page),
    ):
        assert sent.status_code == 404
    other = (await http.get("/bo/channels/codex_session_120")).json()
    assert (other["title"], other.get("pinned")) == (None, None)
