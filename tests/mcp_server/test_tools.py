"""The MCP server as clients of both protocol eras see it, in memory: real client, real server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.types import CallToolResult, Implementation

from mcp_server.server import create_server
from orchestrator.service import Orchestrator
from registry.storage.executions import ExecutionFilter, list_executions
from registry.storage.paging import Page

pytestmark = pytest.mark.anyio

SNAPSHOT = Path(__file__).parent / "snapshots" / "tools.json"
CHANNEL = "cursor_session_20250929_1430"
ASKED = {
    "role": "user",
    "text": "이 함수의 시간복잡도를 개선하려면 어떻게 해야 할까요?",
    "timestamp": "2025-09-29T14:30:15.123Z",
    "context": {"file": "src/utils/optimizer.py", "line": 145},
}
ANSWERED = {
    "role": "assistant",
    "text": "재귀 피보나치는 메모이제이션으로 O(n)이 됩니다.",
    "timestamp": "2025-09-29T14:30:18.456Z",
}


@pytest.fixture(params=["auto", "legacy"])
async def client(request: pytest.FixtureRequest, orchestrator: Orchestrator) -> AsyncIterator[Client]:
    cursor = Implementation(name="cursor-vscode", version="1.0")
    async with Client(create_server(orchestrator.run), mode=request.param, client_info=cursor) as connected:
        yield connected


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The envelope; it is the same as structured content and as text, and flagged when it is a failure."""
    answer = await client.call_tool(tool, arguments)
    assert isinstance(answer, CallToolResult)
    body = answer.structured_content
    assert isinstance(body, dict)
    assert json.loads(answer.content[0].text) == body  # type: ignore[union-attr]
    assert (answer.is_error, body["tool"]) == (not body["ok"], tool)
    return body


async def test_a_turn_logged_in_cursor_is_found_from_claude(client: Client, orchestrator: Orchestrator) -> None:
    logged = await call(client, "conversation_log", channel=CHANNEL, messages=[ASKED, ANSWERED], meta={"title": "Fib"})
    assert logged["result"] | {"stored_ids": [], "timestamp": ""} == {
        "stored_ids": [],
        "channel": CHANNEL,
        "message_count": 2,
        "timestamp": "",
        "new_count": 2,
        "duplicate_count": 0,
    }
    async with Client(create_server(orchestrator.run)) as claude:
        found = await call(claude, "extract", query={"text": "피보나치 함수 시간복잡도 개선 관련 대화", "limit": 20})
    ids = logged["result"]["stored_ids"]
    assert found["result"] == {
        "channel": CHANNEL,
        "messages": [{**ASKED, "id": ids[0]}, {**ANSWERED, "id": ids[1]}],
        "metadata": {
            "total_messages": 2,
            "filtered_messages": 2,
            "last_activity": "2025-09-29T14:30:18.456Z",
        },
    }


async def test_the_whole_conversation_sent_every_turn_is_stored_once(client: Client) -> None:
    first = await call(client, "conversation_log", channel=CHANNEL, messages=[ASKED, ANSWERED])
    more = {"role": "user", "text": "메모리도 줄일 수 있나요?"}
    second = await call(client, "conversation_log", channel=CHANNEL, messages=[ASKED, ANSWERED, more])
    assert second["result"]["stored_ids"][:2] == first["result"]["stored_ids"]
    assert (second["result"]["new_count"], second["result"]["duplicate_count"]) == (1, 2)


async def test_the_source_is_the_client_s_unless_it_says_otherwise(client: Client, orchestrator: Orchestrator) -> None:
    await call(client, "conversation_log", channel="mine", messages=[ASKED])
    await call(client, "conversation_log", channel="told", messages=[ASKED], meta={"source": "chatgpt"})
    assert (await orchestrator.registry.get_conversations("mine"))[0]["source"] == "cursor"
    assert (await orchestrator.registry.get_conversations("told"))[0]["source"] == "chatgpt"


async def test_arguments_sent_as_json_text_are_understood(client: Client) -> None:
    logged = await call(client, "conversation_log", channel=CHANNEL, messages=json.dumps([ASKED, ANSWERED]))
    assert logged["result"]["new_count"] == 2


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("conversation_log", {"channel": "", "messages": [ASKED]}, 'channel: given ""'),
        ("conversation_log", {"messages": [ASKED]}, "channel: missing"),
        ("conversation_log", {"channel": "c", "messages": []}, "messages: given []"),
        ("conversation_log", {"channel": "c", "messages": "hello"}, 'messages: given "hello"'),
        (
            "conversation_log",
            {"channel": "c", "messages": [{"role": "bot", "text": "x"}]},
            "messages.0.role: given \"bot\"; allowed: 'user', 'assistant', 'system', 'tool', 'thinking' or 'error'",
        ),
        (
            "conversation_log",
            {"channel": "c", "messages": [{**ASKED, "timestamp": 1759156215}]},
            "messages.0.timestamp: given 1759156215; allowed: an ISO 8601 time such as",
        ),
        ("extract", {"query": {"limit": 5000}}, "query.limit: given 5000; allowed: less than or equal to 1000"),
        ("extract", {"chanel": "c"}, 'chanel: given "c"; allowed: no such field'),
    ],
)
async def test_bad_arguments_are_refused_by_the_name_of_the_field_and_recorded(
    client: Client, orchestrator: Orchestrator, tool: str, arguments: dict[str, Any], said: str
) -> None:
    refused = await call(client, tool, **arguments)
    assert refused["error"]["code"] == "INVALID_REQUEST"
    assert said in refused["error"]["details"]
    page = await orchestrator.registry.read(lambda tx: list_executions(tx, ExecutionFilter(), Page()))
    assert [(run["operation"], run["client"], run["status"]) for run in page["items"]] == [
        (tool, "cursor-vscode 1.0", "failed")
    ]


async def test_no_argument_turns_a_reading_tool_into_another_operation(client: Client) -> None:
    await call(client, "conversation_log", channel=CHANNEL, messages=[ASKED, ANSWERED])
    refused = await call(client, "extract", channel=CHANNEL, operation="delete", query={"soft": False})
    assert refused["error"]["code"] == "INVALID_REQUEST"
    assert (await call(client, "extract", channel=CHANNEL))["result"]["metadata"]["total_messages"] == 2


async def test_nothing_relevant_is_the_seed_s_not_found(client: Client) -> None:
    await call(client, "conversation_log", channel=CHANNEL, messages=[ASKED, ANSWERED])
    answer = await call(client, "extract", channel=CHANNEL, query={"text": "kubernetes helm chart"})
    assert answer == {
        "ok": False,
        "tool": "extract",
        "error": {
            "code": "NOT_FOUND",
            "message": "No matching conversations found",
            "details": "No conversations found for query: 'kubernetes helm chart'",
        },
    }


async def test_a_bug_in_a_tool_shows_nothing_of_the_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    async def buggy(*_: object) -> dict[str, Any]:
        raise ZeroDivisionError("secret of the inside")

    async with Client(create_server(buggy)) as client:
        answer = await call(client, "extract", query={"text": "x"})
    assert answer["error"]["code"] == "INTERNAL_ERROR"
    assert "secret" not in str(answer)


async def test_an_unknown_tool_is_a_protocol_error(client: Client) -> None:
    with pytest.raises(MCPError, match="Unknown tool: nope"):
        await client.call_tool("nope", {})


async def test_published_tools_are_the_reviewed_ones(client: Client) -> None:
    tools = [
        tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in (await client.list_tools()).tools
    ]
    assert tools == json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    assert len(json.dumps(tools, ensure_ascii=False)) < 12_000
