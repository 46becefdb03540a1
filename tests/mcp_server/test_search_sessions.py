"""Test the search for past sessions, by clients of both protocol eras."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult

from mcp_server.server import create_server
from orchestrator.service import Orchestrator
from registry.registry import Registry
from tests.mcp_server.calls import call
from tests.seeded import Seeded

pytestmark = pytest.mark.anyio

SHOP, AUTH = "/home/ann/shop", "/home/ann/auth"


async def log(orchestrator: Orchestrator, channel: str, text: str, day: str, **meta: str) -> None:
    messages = [{"role": "user", "text": text, "timestamp": f"{day}T12:00:00Z"}]
    request = {"operation": "save", "channel": channel, "messages": messages, "source": "cursor", "metadata": meta}
    assert (await orchestrator.run(request))["success"]


async def three_chats(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "basket", "redis keeps the basket", "2026-01-01", project=SHOP, session_id="5e550000-aaaa")
    await log(orchestrator, "prices", "redis keeps the prices", "2026-01-05", project=SHOP)
    await log(orchestrator, "tokens", "redis keeps the tokens", "2026-02-01", project=AUTH)


@pytest.fixture
async def orchestrator(seeded_file: Seeded) -> AsyncIterator[Orchestrator]:
    registry = Registry(await seeded_file(three_chats))
    yield Orchestrator(registry)
    registry.close()


@pytest.fixture
async def client(orchestrator: Orchestrator) -> AsyncIterator[Client]:
    async with Client(create_server(orchestrator.run, project=SHOP)) as connected:
        yield connected


async def search(client: Client, query: str = "redis", **arguments: Any) -> dict[str, Any]:
    return await call(client, "search_sessions", query=query, **arguments)


async def found(client: Client, query: str = "redis", **arguments: Any) -> set[str]:
    answer = await search(client, query, **arguments)
    assert answer["ok"], answer
    return {session["channel"] for session in answer["result"]["sessions"]}


async def test_the_current_project_is_searched_unless_all_are_asked_for(client: Client) -> None:
    assert await found(client) == {"basket", "prices"}
    assert await found(client, project="all") == {"basket", "prices", "tokens"}
    assert await found(client, project=AUTH) == {"tokens"}


async def test_a_found_session_shows_where_the_words_are(client: Client) -> None:
    result = (await search(client, "tokens", project="all"))["result"]
    [session] = result["sessions"]
    assert (session["match_count"], session["project_path"], result["project"]) == (1, AUTH, "all")
    [match] = session["matches"]
    assert (match["role"], match["sequence"]) == ("user", 1)
    assert "**tokens**" in match["snippet"]
    assert result["pagination"] == {"total": 1, "limit": 10, "offset": 0, "has_more": False}


async def test_filters_narrow_a_search(client: Client) -> None:
    cases: list[tuple[dict[str, Any], set[str]]] = [
        ({"after_date": "2026-01-03"}, {"prices", "tokens"}),
        ({"before_date": "2026-01-03"}, {"basket"}),
        ({"source": "codex"}, set()),
        ({"tag": "none"}, set()),
        ({"current_session_id": "5e550000"}, {"basket"}),
        ({"current_session_id": "5e550000", "exclude_current": True}, {"prices", "tokens"}),
        ({"current_session_id": "never logged", "exclude_current": True}, {"basket", "prices", "tokens"}),
    ]
    for arguments, expected in cases:
        assert await found(client, project="all", **arguments) == expected


async def test_a_search_without_results_in_its_folder_says_where_there_are_some(client: Client) -> None:
    empty = (await search(client, project="/home/bob/auth"))["result"]
    assert empty["sessions"] == []
    assert empty["elsewhere"] == {"all": 3, "same_name": {"path": AUTH, "count": 1}}
    nowhere = (await search(client, "kubernetes"))["result"]
    assert "elsewhere" not in nowhere


async def test_excluding_the_current_session_requires_its_name(client: Client) -> None:
    refused = await search(client, exclude_current=True)
    assert refused["error"]["code"] == "INVALID_REQUEST"
    assert "current_session_id: missing" in refused["error"]["details"]


async def test_bad_arguments_are_refused_with_the_name_of_the_field(client: Client) -> None:
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("list_sessions", {"limit": 5000}, "limit: given 5000; allowed: less than or equal to 1000"),
        ("list_sessions", {"limit": "many"}, 'limit: given "many"; allowed: a valid integer; a correct call: '),
        ("list_sessions", {"limt": 5}, "limt: given 5; allowed: no such field"),
        ("list_sessions", {"since": "soon"}, 'since: given "soon"; allowed: a time such as 2025-09-29T14:30:15Z, yes'),
        ("search_sessions", {"query": "x", "source": "curser"}, "source: given 'curser'; allowed: cursor"),
        ("search_sessions", {}, "query: missing"),
        ("fetch_session_by_id", {}, "session_id: missing"),
    ]
    for tool, arguments, said in cases:
        answer = await client.call_tool(tool, arguments)
        assert isinstance(answer, CallToolResult)
        assert isinstance(answer.structured_content, dict)
        assert answer.is_error
        assert answer.structured_content["error"]["code"] == "INVALID_REQUEST"
        assert said in answer.structured_content["error"]["details"]
