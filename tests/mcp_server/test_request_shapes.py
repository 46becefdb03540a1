"""Test the argument shapes that models send: each is understood as intended."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult, Implementation

from mcp_server.server import create_server
from orchestrator.service import Orchestrator

pytestmark = pytest.mark.anyio

TEXT = "basket items after login"
SAID = [{"role": "user", "text": "Why does it lose them?"}, {"role": "assistant", "text": "A new list each time."}]
ALSO = ["cart emptied on sign-in", "장바구니 초기화"]

FINDING: list[dict[str, Any]] = [
    {"query": TEXT},
    {"query": {"text": TEXT}},
    {"query": {"text": TEXT, "also": ALSO}},
    {"query": TEXT, "also": ALSO},
    {"query": {"query": TEXT}},
    {"query": {"q": TEXT}},
    {"text": TEXT},
    {"q": TEXT},
    {"query": json.dumps({"text": TEXT, "also": ALSO})},
    {"query": {"text": TEXT, "also": json.dumps(ALSO)}},
    {"query": {"text": TEXT, "also": ALSO[0]}},
    {"query": {"text": TEXT, "limit": "5"}},
    {"query": {"text": TEXT, "limit": 5.0}},
    {"query": {"text": TEXT, "limit": None, "from": None, "to": "", "roles": None, "mode": None}},
    {"query": {"text": TEXT, "from": "2020-01-01", "to": "today"}},
    {"query": {"text": TEXT, "roles": "user"}},
    {"query": {"text": TEXT, "roles": ["human", "ai"]}},
    {"query": {"text": TEXT}, "limit": 5, "max_tokens": 2000},
    {"query": {"text": TEXT}, "channel": None},
    {"query": {"text": TEXT}, "channel": "basket"},
    {"query": {"text": TEXT}, "session_id": "basket"},
    {"query": {"text": TEXT, "channel": "basket"}},
    {"query": {"text": TEXT}, "project": "all"},
    {"query": {"text": TEXT, "project": "all"}},
    {"query": {"text": TEXT}, "meta": {"source": "cursor"}},
    {"query": {"text": TEXT}, "meta": "{}"},
    {"tool": "extract", "parameters": {"query": {"text": TEXT}}},
    {"name": "extract", "arguments": {"query": {"text": TEXT}}},
    {"query": [TEXT, *ALSO]},
    {"query": {"text": [TEXT, *ALSO]}},
    {"arguments": {"query": TEXT}},
    {"query": {"query": {"text": TEXT, "also": ALSO}}, "mode": "RAW"},
    {"query": repr({"text": TEXT, "also": ALSO, "limit": 5}), "project": ["all"]},
    {"Query": {"Text": TEXT, "Also": ALSO}, "maxResults": 3},
    {"query": TEXT, "also": [*ALSO, " ", None], "after_date": "2020-01-01", "before_date": "today"},
    {"question": TEXT, "conversation_id": "basket", "top_k": 3},
    {"query": {"keywords": TEXT, "alternatives": ALSO, "since": "2020-01-01", "session_id": "basket"}},
]

LOGGING: list[dict[str, Any]] = [
    {"messages": SAID},
    {"messages": json.dumps(SAID)},
    {"messages": [{"role": one["role"], "content": one["text"]} for one in SAID]},
    {"messages": [{"role": one["role"], "content": [{"type": "text", "text": one["text"]}]} for one in SAID]},
    {"messages": [{**SAID[0], "role": "human"}, {**SAID[1], "role": "ai"}]},
    {"messages": [{**SAID[0], "role": "User"}, {**SAID[1], "role": "Assistant"}]},
    {"messages": [SAID[0], {**SAID[1], "role": "model"}]},
    {"messages": [{**one, "timestamp": ""} for one in SAID]},
    {"messages": SAID, "meta": json.dumps({"project": "/home/ann/shop"})},
    {"tool": "conversation_log", "parameters": {"messages": SAID}},
    {"channel": "", "source": "", "messages": SAID, "title": "Basket", "project": "/home/ann/shop", "model": "m"},
    {"messages": repr(SAID)},
    {"messages": [json.dumps(one) for one in SAID]},
    {"conversation": SAID},
    {"messages": [{"role": "user", "parts": [SAID[0]]}, {"role": "model", "parts": [{"text": SAID[1]["text"]}]}]},
    {"messages": [{"from": "human", "value": SAID[0]["text"]}, {"from": "gpt", "value": SAID[1]["text"]}]},
    {"messages": [{"author": {"role": one["role"]}, "content": {"parts": [one["text"]]}} for one in SAID]},
    {"messages": [[one["role"], one["text"]] for one in SAID]},
    {"messages": [{one["role"]: one["text"] for one in SAID}]},
    {one["role"]: one["text"] for one in SAID},
    {"messages": "\n\n".join(f"{one['role'].title()}: {one['text']}" for one in SAID)},
    {"messages": [f"{one['role']}: {one['text']}" for one in SAID]},
    {"messages": [{**one, "timestamp": 1764166991, "context": "basket.ts"} for one in SAID]},
]

LS = {"command": "ls"}
CALLS_WITHOUT_TEXT: list[dict[str, Any]] = [
    {"role": "assistant", "tool": "bash", "parameters": LS},
    {"role": "assistant", "text": "", "tool": {"name": "bash", "params": LS}},
    {"role": "tool", "name": "bash", "arguments": json.dumps(LS)},
    {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "bash", "arguments": json.dumps(LS)}}]},
    {"role": "assistant", "content": [{"type": "tool_use", "name": "bash", "input": LS}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "bash ls"}]},
    {"role": "function", "name": "bash", "content": "bash ls"},
]


OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("remember", {"content": "Always answer in Korean.", "everywhere": "true", "replaces": ""}),
    ("search_sessions", {"text": TEXT, "alternatives": ALSO, "from": "2020-01-01", "to": "today", "project": "all"}),
    ("fetch_session_by_id", {"sessionId": ["basket"], "limit": 30}),
    ("tag_current_session", {"name": "basket-bug", "tag": "bug", "channel": "basket"}),
    ("list_sessions", {"project": ["all"], "limit": 10.0, "after": "2020-01-01"}),
]


async def call(orchestrator: Orchestrator, tool: str, given: dict[str, Any]) -> dict[str, Any]:
    claude = Implementation(name="claude-ai", version="1.0")
    async with Client(create_server(orchestrator.run), client_info=claude) as client:
        answer = await client.call_tool(tool, given)
    assert isinstance(answer, CallToolResult)
    body = answer.structured_content
    assert body
    assert body["ok"], body["error"]
    result: dict[str, Any] = body["result"]
    return result


def shown(given: object) -> str:
    return json.dumps(given, ensure_ascii=False)[:70]


async def test_extract_finds_with_arguments_in_any_of_these_shapes(orchestrator: Orchestrator) -> None:
    said = [{"role": "user", "text": f"Why are {TEXT} gone?"}, {"role": "assistant", "text": "A new list each time."}]
    await orchestrator.run({"operation": "save", "channel": "basket", "messages": said, "source": "cursor"})
    found = {json.dumps(given): (await call(orchestrator, "extract", given))["channel"] for given in FINDING}
    assert found == {json.dumps(given): "basket" for given in FINDING}


@pytest.mark.parametrize("given", LOGGING, ids=shown)
async def test_conversation_log_stores_arguments_in_any_of_these_shapes(
    orchestrator: Orchestrator, given: dict[str, Any]
) -> None:
    kept = await call(orchestrator, "conversation_log", given)
    stored = await orchestrator.registry.get_conversations(kept["channel"])
    assert [(one["role"], one["text"]) for one in stored] == [(one["role"], one["text"]) for one in SAID]


async def test_a_message_of_only_a_tool_call_or_result_is_stored_with_its_neighbours(
    orchestrator: Orchestrator,
) -> None:
    for number, given in enumerate(CALLS_WITHOUT_TEXT):
        channel = f"chat {number}"
        await call(orchestrator, "conversation_log", {"channel": channel, "messages": [SAID[0], given, SAID[1]]})
        stored = await orchestrator.registry.get_conversations(channel)
        assert [(one["role"], one["text"]) for one in stored[1:2]] == [("tool", "bash ls")], given
        assert [one["text"] for one in stored[::2]] == [one["text"] for one in SAID]


async def test_other_tools_run_with_arguments_in_any_of_these_shapes(orchestrator: Orchestrator) -> None:
    await orchestrator.run({"operation": "save", "channel": "basket", "messages": SAID, "source": "cursor"})
    for tool, given in OTHERS:
        await call(orchestrator, tool, given)


async def test_a_single_message_outside_a_list_is_stored(orchestrator: Orchestrator) -> None:
    for given in ({"messages": SAID[0]}, {"message": SAID[0]}, {"role": "user", "content": SAID[0]["text"]}):
        kept = await call(orchestrator, "conversation_log", given)
        stored = await orchestrator.registry.get_conversations(kept["channel"])
        assert [one["text"] for one in stored] == [SAID[0]["text"]]


async def refused(orchestrator: Orchestrator, tool: str, given: dict[str, Any]) -> dict[str, Any]:
    async with Client(create_server(orchestrator.run)) as client:
        answer = await client.call_tool(tool, given)
    assert isinstance(answer, CallToolResult)
    assert answer.structured_content
    error: dict[str, Any] = answer.structured_content["error"]
    return error


async def test_a_speakers_name_is_no_tool_and_a_message_id_no_channel(orchestrator: Orchestrator) -> None:
    error = await refused(
        orchestrator, "conversation_log", {"messages": [{"role": "user", "name": "kim", "content": ""}]}
    )
    assert (error["code"], "a text that is not empty" in error["details"]) == ("INVALID_REQUEST", True)
    kept = [
        (await call(orchestrator, "conversation_log", {"role": "user", "content": text, "id": "msg_1"}))["channel"]
        for text in ("one", "two")
    ]
    assert "msg_1" not in kept


async def test_an_argument_that_is_not_understood_is_refused_by_name(orchestrator: Orchestrator) -> None:
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("conversation_log", {"messages": SAID, "title": "Basket", "meta": 5}, "meta"),
        ("conversation_log", {"messages": SAID, "id": "msg_1"}, "id"),
        ("extract", {"query": 5}, "query"),
    ]
    for tool, given, field in cases:
        error = await refused(orchestrator, tool, given)
        assert (error["code"], error["details"].startswith(f"{field}: given")) == ("INVALID_REQUEST", True)


async def test_a_text_in_curly_braces_is_searched(orchestrator: Orchestrator) -> None:
    for text in ("{1: 2}", "{'a', 'b'}"):
        assert (await refused(orchestrator, "extract", {"query": text}))["code"] == "NOT_FOUND"


async def test_deeply_nested_context_is_stored(orchestrator: Orchestrator) -> None:
    deep: Any = "bottom"
    for _ in range(25):
        deep = {"in": deep}
    kept = await call(orchestrator, "conversation_log", {"messages": [{**SAID[0], "context": deep}]})
    [stored] = await orchestrator.registry.get_conversations(kept["channel"])
    assert stored["context"] == deep
