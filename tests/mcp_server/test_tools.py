"""Test the MCP server with clients of both protocol eras, in memory."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from mcp import Client
from mcp.types import CallToolResult, Implementation

from mcp_server.envelope import in_local_time
from mcp_server.server import create_server, tools_of
from orchestrator.requests.calls import utc_offset_minutes
from orchestrator.service import Orchestrator
from registry.storage.paging import Page
from registry.storage.records.executions import list_executions
from tests.mcp_server.calls import call, local_time

pytestmark = pytest.mark.anyio


SNAPSHOT = Path(__file__).parent / "snapshots" / "tools.json"
CHANNEL = "cursor_session_20250929_1430"
ASKED: dict[str, Any] = {
    "role": "user",
    "text": "이 함수의 시간복잡도를 개선하려면 어떻게 해야 할까요?",
    "timestamp": "2025-09-29T14:30:15.123Z",
    "context": {"file": "src/utils/optimizer.py", "line": 145},
}
ANSWERED: dict[str, Any] = {
    "role": "assistant",
    "text": "재귀 피보나치는 메모이제이션으로 O(n)이 됩니다.",
    "timestamp": "2025-09-29T14:30:18.456Z",
}


@pytest.fixture(params=["auto", "legacy"])
async def client(request: pytest.FixtureRequest, orchestrator: Orchestrator) -> AsyncIterator[Client]:
    cursor = Implementation(name="cursor-vscode", version="1.0")
    async with Client(create_server(orchestrator.run), mode=request.param, client_info=cursor) as connected:
        yield connected


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
    result = found["result"]
    assert (result["title"], result["source"], result["confidence"]) == ("Fib", "cursor", "high")
    assert {name: result[name] for name in ("channel", "messages", "metadata")} == {
        "channel": CHANNEL,
        "messages": [
            {**said, "id": one, "why": "match", "timestamp": local_time(said["timestamp"])}
            for said, one in zip((ASKED, ANSWERED), ids, strict=True)
        ],
        "metadata": {
            "total_messages": 2,
            "filtered_messages": 2,
            "last_activity": local_time("2025-09-29T14:30:18.456Z"),
        },
    }


async def test_a_whole_conversation_sent_every_turn_is_stored_once(client: Client) -> None:
    first = await call(client, "conversation_log", channel=CHANNEL, messages=[ASKED, ANSWERED])
    more = {"role": "user", "text": "메모리도 줄일 수 있나요?"}
    second = await call(client, "conversation_log", channel=CHANNEL, messages=[ASKED, ANSWERED, more])
    assert second["result"]["stored_ids"][:2] == first["result"]["stored_ids"]
    assert (second["result"]["new_count"], second["result"]["duplicate_count"]) == (1, 2)


async def test_the_source_is_the_client_unless_the_call_names_another(
    client: Client, orchestrator: Orchestrator
) -> None:
    await call(client, "conversation_log", channel="mine", messages=[ASKED])
    await call(client, "conversation_log", channel="told", messages=[ASKED], meta={"source": "chatgpt"})
    assert (await orchestrator.registry.get_conversations("mine"))[0]["source"] == "cursor"
    assert (await orchestrator.registry.get_conversations("told"))[0]["source"] == "chatgpt"


async def test_arguments_sent_as_json_text_are_understood(client: Client) -> None:
    logged = await call(client, "conversation_log", channel=CHANNEL, messages=json.dumps([ASKED, ANSWERED]))
    assert logged["result"]["new_count"] == 2


async def test_bad_arguments_are_refused_with_the_name_of_the_field_and_recorded(
    client: Client, orchestrator: Orchestrator
) -> None:
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("conversation_log", {"channel": "\n", "messages": [ASKED]}, 'channel: given "\\n"'),
        ("conversation_log", {"channel": "c", "messages": []}, "messages: given []"),
        ("conversation_log", {"channel": "c", "messages": "hello"}, 'messages: given "hello"'),
        (
            "conversation_log",
            {"channel": "c", "messages": [{"role": "robot", "text": "x"}]},
            "messages.0.role: given \"robot\"; allowed: 'user', 'assistant', 'system', 'tool', 'thinking' or 'error'",
        ),
        (
            "conversation_log",
            {"channel": "c", "messages": [{**ASKED, "timestamp": "soon"}]},
            'messages.0.timestamp: given "soon"; allowed: an ISO 8601 time such as',
        ),
        ("extract", {"query": {"limit": 5000}}, "query.limit: given 5000; allowed: less than or equal to 1000"),
        ("extract", {"chanel": "c"}, 'chanel: given "c"; allowed: no such field, channel, meta, project, query'),
    ]
    for tool, arguments, said in cases:
        refused = await call(client, tool, **arguments)
        assert refused["error"]["code"] == "INVALID_REQUEST"
        assert said in refused["error"]["details"]
        page = await orchestrator.registry.read(lambda tx: list_executions(tx, {}, Page()))
        [run, *_] = page["items"]
        assert (run["operation"], run["client"], run["status"]) == (tool, "cursor-vscode 1.0", "failed")


async def test_arguments_that_an_operation_refuses_are_an_invalid_request(client: Client) -> None:
    cases: list[tuple[str, dict[str, Any]]] = [
        ("tag_current_session", {"nickname": " "}),
        ("list_sessions", {"project": "all", "file": "x" * 5000}),
    ]
    for tool, arguments in cases:
        assert (await call(client, tool, **arguments))["error"]["code"] == "INVALID_REQUEST"


async def test_no_argument_runs_another_operation_than_the_tools(client: Client) -> None:
    await call(client, "conversation_log", channel=CHANNEL, messages=[ASKED, ANSWERED])
    refused = await call(client, "extract", channel=CHANNEL, operation="delete", query={"soft": False})
    assert refused["error"]["code"] == "INVALID_REQUEST"
    assert (await call(client, "extract", channel=CHANNEL))["result"]["metadata"]["total_messages"] == 2


async def test_without_a_relevant_message_nothing_is_found(client: Client) -> None:
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


async def test_an_unexpected_error_in_a_tool_reveals_no_internals(monkeypatch: pytest.MonkeyPatch) -> None:
    async def buggy(*_: object, **__: object) -> dict[str, Any]:
        raise ZeroDivisionError("secret of the inside")

    async with Client(create_server(buggy)) as client:
        answer = await call(client, "extract", query={"text": "x"})
    assert answer["error"]["code"] == "INTERNAL_ERROR"
    assert "secret" not in str(answer)


async def test_an_unknown_tool_is_answered_with_the_nearest_one(client: Client) -> None:
    answer = await call(client, "serch_sesions")
    assert answer["error"]["code"] == "INVALID_REQUEST"
    assert "given 'serch_sesions'" in answer["error"]["details"]
    assert 'nearest: search_sessions({"query": ' in answer["error"]["details"]


async def test_a_tool_of_another_toolset_runs_when_called_by_name(client: Client) -> None:
    await call(client, "conversation_log", channel=CHANNEL, messages=[ASKED, ANSWERED])
    listed = {tool.name for tool in (await client.list_tools()).tools}
    assert "get_session_detail" not in listed
    detail = await call(client, "get_session_detail", session_id="#1")
    assert [message["text"] for message in detail["result"]["messages"]] == [ASKED["text"], ANSWERED["text"]]
    assert {tool.name for tool in (await client.list_tools()).tools} == listed


async def test_an_archive_tool_in_no_toolset_says_how_to_switch_it_on(client: Client) -> None:
    answer = await call(client, "create_backup")
    assert answer["error"]["code"] == "INVALID_REQUEST"
    assert "--toolsets default,archive" in answer["error"]["details"]


async def test_each_refusal_shows_a_valid_call(orchestrator: Orchestrator) -> None:
    for tool in tools_of("all"):
        async with Client(create_server(orchestrator.run)) as client:
            refused = await call(client, tool, nonsense=1)
            details = refused["error"]["details"]
            assert details.startswith("nonsense: given 1; allowed: no such field, ")
            [shown] = re.findall(rf"; a correct call: {tool}\((.+)\)$", details)
            copied = await call(client, tool, **json.loads(shown))
            answer = await call(client, tool, **json.loads(re.sub(r"<[^>]+>", "some", shown)))
        assert ("<" in shown) == (copied.get("error", {}).get("message") == "The example's placeholder was sent.")
        assert answer["ok"] or answer["error"]["code"] == "NOT_FOUND"


async def test_no_refusal_names_a_python_class(client: Client) -> None:
    refused = await call(client, "extract", query=5)
    assert "query: given 5; allowed: an object" in refused["error"]["details"]
    assert "ExtractQuery" not in str(refused)


async def test_source_and_timestamp_are_accepted_at_the_top_level(client: Client, orchestrator: Orchestrator) -> None:
    common = {"source": "chatgpt", "timestamp": "2025-09-29T14:30:20.789Z"}
    logged = await call(client, "conversation_log", channel="c", messages=[ASKED], **common)
    assert logged["ok"]
    assert (await orchestrator.registry.get_conversations("c"))[0]["source"] == "chatgpt"
    assert (await call(client, "extract", channel="c", **common))["ok"]
    refused = await call(client, "extract", channel="c", timestamp="soon")
    assert 'timestamp: given "soon"; allowed: an ISO 8601 time' in refused["error"]["details"]


class Asked(list[Any]):
    """Collect the requests of a server that finds nothing."""

    async def run(self, request: Any, _: str | None, **__: object) -> dict[str, Any]:
        self.append(request)
        return {"success": False, "error": {"code": "NOT_FOUND", "message": "", "details": ""}}


async def test_a_plain_string_is_the_text_of_a_query() -> None:
    asked = Asked()
    async with Client(create_server(asked.run)) as client:
        await call(client, "extract", query="fibonacci")
        await call(client, "extract", query={"text": "fibonacci", "also": ["피보나치"]})
    assert [(request.query.text, request.query.also) for request in asked] == [
        ("fibonacci", []),
        ("fibonacci", ["피보나치"]),
    ]
    assert all(request.query.utc_offset_minutes == utc_offset_minutes() for request in asked)


CLEAR_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("extract", {"text": "fibonacci"}),
    ("extract", {"text": "fibonacci", "also": "memoization", "limit": 5}),
    ("extract", {"query": "fibonacci", "also": ["memoization", ""]}),
    ("extract", {"query": {"text": "fibonacci", "roles": "assistant"}}),
    ("search_sessions", {"text": "fibonacci"}),
    ("search_sessions", {"query": {"text": "fibonacci", "also": ["memoization"]}}),
    ("search_sessions", {"query": "fibonacci", "also": "memoization"}),
    ("extract", {"q": "fibonacci", "channel": "", "meta": None}),
    ("extract", {"query": {"query": "fibonacci", "limit": None, "cursor": ""}}),
    ("search_sessions", {"q": "fibonacci", "source": "", "limit": None}),
    ("fetch_session_by_id", {"session_id": 1}),
    ("fetch_session_by_id", {"id": CHANNEL}),
    ("get_session_detail", {"channel": CHANNEL}),
    ("tag_current_session", {"session_id": CHANNEL, "tags": "maths"}),
    ("list_sessions", {"tag": "Maths", "since": "2 weeks", "full": True}),
    ("list_sessions", {"project": "general", "since": "2주", "full": True}),
    ("search_sessions", {"query": ["fibonacci", "memoization"], "project": "ALL"}),
    ("extract", {"query": {"text": "fibonacci", "roles": [], "cursor": " "}}),
    ("extract", {"query": "  ", "project": "General"}),
    ("extract", {"request": '{"query": {"text": "fibonacci"}}'}),
]


@pytest.mark.parametrize("client", ["auto"], indirect=True)
async def test_an_unambiguous_call_is_understood(client: Client) -> None:
    messages = [{"role": "user", "text": "fibonacci?"}, {"role": "assistant", "text": "fibonacci: memoization"}]
    await call(client, "conversation_log", channel=CHANNEL, messages=messages)
    for tool, arguments in CLEAR_CALLS:
        result = (await call(client, tool, **arguments))["result"]
        sessions = result.get("sessions") or [result.get("session") or result]
        assert [session["channel"] for session in sessions] == [CHANNEL], (tool, arguments)


async def test_invisible_characters_in_an_answer_are_shown(client: Client) -> None:
    hidden = "before\u202eafter, \U000e0041\U000e0042, zero\u200b\u200bwidth \x1b[2J"
    plain = "👨‍👩‍👧 ❤️ 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f می‌خواهم"
    messages = [{"role": "user", "text": hidden}, {"role": "assistant", "text": plain}]
    await call(client, "conversation_log", channel="c", messages=messages)
    answer = await client.call_tool("fetch_session_by_id", {"session_id": "c"})
    assert isinstance(answer, CallToolResult)
    text = answer.content[0].text  # type: ignore[union-attr]
    shown = json.loads(text)["result"]
    assert [message["text"] for message in shown["messages"]] == [
        "before⟦U+202E⟧after, ⟦U+E0041 U+E0042⟧, zero⟦U+200B U+200B⟧width ⟦U+001B⟧[2J",
        plain,
    ]
    assert "Quoted from earlier conversations" in shown["quoted"]
    assert "null" not in text


async def test_the_default_toolset_is_the_reviewed_one(client: Client) -> None:
    tools = [
        tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in (await client.list_tools()).tools
    ]
    assert tools == json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    assert len(json.dumps(tools, ensure_ascii=False)) < 12_000


async def test_extract_returns_the_known_fields_and_leaves_out_empty_ones() -> None:
    message = {"role": "user", "text": "x", "timestamp": "2026-01-01T00:00:00.000Z", "id": "conv_1"}
    counts = {"total_count": 9, "filtered_count": 1, "last_activity": "2026-01-01T00:00:00.000Z"}
    about = {
        "title": "Fib",
        "source": "cursor",
        "project": "numbers",
        "first": "2025-12-31T00:00:00.000Z",
        "last": "2026-01-01T00:00:00.000Z",
        "confidence": "low",
        "note": "a guess",
        "stands_at": {"last_question": "x", "last_command": {"command": "make", "status": "ok"}},
        "candidates": [{"channel": "e", "messages": [message], "score": 0.5}],
    }
    more = {"understood": {"words": ["x"]}, "newer_messages": 3, "left_out": {"messages": 8, "tokens": 900}}
    shown = {**message, "gap_before": 2, "full_length": 9000, "replaced_on": "2026-02-01T00:00:00.000Z"}

    async def run(*_: object, **__: object) -> dict[str, Any]:
        empty = {"syncing": None, "next_cursor": None}
        found = {"success": True, "channel": "c", **about, "summary": None, "messages": [shown]}
        return {**found, "metadata": {**counts, **more, **empty}}

    async with Client(create_server(run)) as client:
        result = (await call(client, "extract", query="x", also=["y"]))["result"]
        with_one_wording = (await call(client, "extract", query="x"))["result"]
    assert with_one_wording["note"] == "a guess Only one wording was sent: ask again with 3-4 others in query.also."
    metadata = {"total_messages": 9, "filtered_messages": 1, "last_activity": counts["last_activity"], **more}
    assert result.pop("quoted")
    assert result == in_local_time({"channel": "c", **about, "messages": [shown], "metadata": metadata})
    assert result["last"] == local_time("2026-01-01T00:00:00Z")


async def test_extract_searches_all_projects_unless_one_is_named() -> None:
    cases: list[tuple[dict[str, Any], str | None]] = [
        ({"query": "x"}, None),
        ({"query": "x", "project": "current"}, "/home/ann/shop"),
        ({"query": {"text": "x", "project": "blog"}}, "blog"),
        ({"text": "x", "project": "all"}, None),
    ]
    asked = Asked()
    async with Client(create_server(asked.run, project="/home/ann/shop")) as client:
        for given, _ in cases:
            await call(client, "extract", **given)
    assert [request.project for request in asked] == [project for _, project in cases]


async def test_other_wordings_reach_the_search() -> None:
    asked = Asked()
    async with Client(create_server(asked.run)) as client:
        await call(client, "search_sessions", query="make login faster", also=["speed up sign-in", "로그인 속도"])
        await call(client, "search_sessions", query="make login faster")
    assert [(one.query.also, one.query.context_window, one.query.max_tokens) for one in asked] == [
        (["speed up sign-in", "로그인 속도"], 2, 1500),
        ([], 2, 1500),
    ]


async def test_descriptions_of_searches_ask_for_other_wordings(client: Client) -> None:
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    for name in ("extract", "search_sessions"):
        assert "also" in (tools[name].description or "")
        properties = tools[name].input_schema["properties"]
        also = properties.get("also") or properties["query"]["properties"]["also"]
        assert "always 3-4 other wordings" in also["description"]
        assert '["speed up sign-in", ' in also["description"]


async def test_too_many_messages_in_a_call_are_refused_unread(client: Client) -> None:
    many = [{"role": "nobody"}] * 20_001
    answer = await call(client, "conversation_log", channel="huge", messages=many)
    assert answer["error"]["message"] == "Too many messages at once."
    assert "given 20001; allowed: at most 20000 in one call, more in several" in answer["error"]["details"]
    assert "nobody" not in answer["error"]["details"]


async def test_the_server_has_an_icon(client: Client) -> None:
    assert client.server_info
    [icon] = client.server_info.icons or []
    drawing = unquote(icon.src.removeprefix("data:image/svg+xml,"))
    assert drawing.startswith("<svg ")
    assert len(icon.src) < 400


@pytest.mark.parametrize("client", ["auto"], indirect=True)
async def test_more_sentences_than_a_client_lets_through_are_counted(
    client: Client, orchestrator: Orchestrator
) -> None:
    for number in range(60):
        sentence = {"text": f"Module {number} " + "is named after a bird " * 20}
        assert (await orchestrator.run({"operation": "remember", "query": sentence}))["success"]
    kept = await call(client, "remember", text="Use pnpm.", everywhere=True)
    texts = [one["text"] for one in kept["result"]["remembered"]]
    assert texts[-1] == "Use pnpm."
    assert len(texts) + kept["result"]["left_out"] == 61
    assert len(json.dumps(kept, ensure_ascii=False)) < 9_500
    note = await orchestrator.run({"operation": "note", "query": {"folder": "/shop"}})
    assert note["note"].startswith("Context Registry: what the user asked to remember:\n- Use pnpm.\n- Module 59 is")
    assert "- and 59 more: `extract` finds them" in note["note"]
