"""Test a message's details in answers: the file it was asked in, its tool call, its time."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from mcp import Client

from mcp_server.server import create_server
from orchestrator.operations.import_sessions import ImportRequest
from orchestrator.service import Orchestrator
from registry.domain import Message, Role, Session, parse_time
from sources.base import FoundSession
from tests.mcp_server.calls import result

pytestmark = pytest.mark.anyio

SEED_META = {
    "source": "cursor",
    "project": "ai-agent-orchestrator",
    "file": "src/utils/optimizer.py",
    "language": "python",
    "additional_context": {"current_function": "optimize_search", "line_number": 145},
}
WHERE = {
    "file": "src/utils/optimizer.py",
    "line": 145,
    "language": "python",
    "current_function": "optimize_search",
}
CHANNEL = "cursor_session_20250929_1430"
TURN = [
    {"role": "user", "text": "이 함수의 시간복잡도를 개선하려면?", "timestamp": "2025-09-29T14:30:15.123Z"},
    {"role": "assistant", "text": "해시맵을 사용하세요.", "timestamp": "2025-09-29T14:30:18.456Z"},
]


@pytest.fixture
async def client(orchestrator: Orchestrator) -> AsyncIterator[Client]:
    async with Client(create_server(orchestrator.run, ("all",))) as connected:
        yield connected


async def test_a_question_comes_with_the_file_and_line_in_which_it_was_asked(client: Client) -> None:
    await result(client, "conversation_log", channel=CHANNEL, messages=TURN, meta=SEED_META)
    extracted = await result(client, "extract", channel=CHANNEL, query="시간복잡도")
    for found in (extracted, await result(client, "fetch_session_by_id", session_id=CHANNEL)):
        question, answer = found["messages"]
        assert question["context"] == WHERE
        assert "context" not in answer


async def test_context_of_a_message_overrides_that_of_the_call(client: Client) -> None:
    own = [{**TURN[0], "context": {"file": "a.py"}}]
    await result(client, "conversation_log", channel=CHANNEL, messages=own, meta=SEED_META)
    [question] = (await result(client, "fetch_session_by_id", session_id=CHANNEL))["messages"]
    assert question["context"] == {"file": "a.py"}


async def import_tool_call(orchestrator: Orchestrator) -> None:
    told = {"name": "bash", "params": {"command": "make test"}, "result": "ok\n" * 400, "status": "completed"}
    messages = (
        Message(Role.USER, "run the tests", parse_time("2026-01-01T12:00:00Z"), more={"native_id": "a"}),
        Message(
            Role.TOOL,
            f"bash: make test\n{told['result']}",
            parse_time("2026-01-01T12:00:00Z"),
            more={"native_id": "b", "tool": told, "time": "inferred"},
        ),
    )
    found = FoundSession("s", "1", Session("5e550000-aaaa", messages))
    outcome = await orchestrator.run(ImportRequest(store="here", found=[found], source="codex"))
    assert outcome["success"]


async def test_a_tool_call_is_shortened_until_it_is_read_whole(orchestrator: Orchestrator, client: Client) -> None:
    await import_tool_call(orchestrator)
    page = await result(client, "fetch_session_by_id", session_id="5e550000-aaaa")
    call = page["messages"][1]
    assert (call["tool"]["name"], call["tool"]["status"]) == ("bash", "completed")
    assert call["tool"]["params"] == {"command": "make test"}
    assert len(call["tool"]["result"]) <= 200
    [whole] = (await result(client, "fetch_session_by_id", session_id="5e550000-aaaa", message_id=call["id"]))[
        "messages"
    ]
    assert whole["tool"]["result"] == "ok\n" * 400


async def test_an_inferred_time_is_marked(orchestrator: Orchestrator, client: Client) -> None:
    await import_tool_call(orchestrator)
    for tool, arguments in (
        ("fetch_session_by_id", {"session_id": "5e550000-aaaa"}),
        ("get_session_detail", {"session_id": "5e550000-aaaa"}),
        ("extract", {"query": {"text": "run the tests", "roles": ["user", "tool"]}}),
    ):
        asked, call = (await result(client, tool, **arguments))["messages"]
        assert ("time" in asked, call["time"]) == (False, "inferred"), tool


async def test_a_search_marks_inferred_times_of_matches_and_their_neighbours(
    orchestrator: Orchestrator, client: Client
) -> None:
    await import_tool_call(orchestrator)
    [session] = (await result(client, "search_sessions", query="run the tests", project="all"))["sessions"]
    [match] = session["matches"]
    assert match["time"] == "inferred"
    assert ["time" in line for line in match["context"]] == [False]
    assert "time" not in session


async def test_a_session_with_only_inferred_times_is_marked(orchestrator: Orchestrator, client: Client) -> None:
    at = parse_time("2026-01-01T12:00:00Z")
    guessed = Message(Role.USER, "run the tests", at, more={"native_id": "a", "time": "inferred"})
    told = Message(Role.ASSISTANT, "all pass", at, more={"native_id": "b"})
    for messages, expected in (((guessed,), "inferred"), ((guessed, told), None)):
        found = FoundSession("s", str(len(messages)), Session("5e550000-bbbb", messages))
        assert (await orchestrator.run(ImportRequest(store="here", found=[found], source="codex")))["success"]
        [listed] = (await result(client, "list_sessions", full=True, project="all"))["sessions"]
        fetched = (await result(client, "get_session_detail", session_id="5e550000-bbbb"))["session"]
        [sought] = (await result(client, "search_sessions", query="run the tests", project="all"))["sessions"]
        assert [one.get("time") for one in (listed, fetched, sought)] == [expected] * 3


async def test_an_export_marks_inferred_times(orchestrator: Orchestrator, client: Client) -> None:
    await import_tool_call(orchestrator)
    for to, told in (("markdown", "## 1 · 2026-01-01 12:00 UTC\n"), ("html", "12:00 UTC (inferred)</time>")):
        exported = await result(client, "export_session", session_id="5e550000-aaaa", format=to)
        assert told in exported["text"]


async def test_a_filtered_list_has_the_places_among_all_sessions(client: Client) -> None:
    for channel, project in (("one", "/a"), ("two", "/b"), ("three", "/a")):
        said = [{"role": "user", "text": f"about {channel}"}]
        await result(client, "conversation_log", channel=channel, messages=said, meta={"project": project})
    sessions = (await result(client, "list_sessions", full=True, project="/a"))["sessions"]
    assert [(one["channel"], one["index"]) for one in sessions] == [("three", 1), ("one", 3)]
    third = (await result(client, "fetch_session_by_id", session_id="#3"))["session"]
    assert third["channel"] == "one"


async def test_a_session_has_the_time_it_was_last_recalled(client: Client) -> None:
    await result(client, "conversation_log", channel=CHANNEL, messages=TURN)
    [session] = (await result(client, "list_sessions", full=True, project="all"))["sessions"]
    assert "last_accessed" not in session
    await result(client, "extract", channel=CHANNEL)
    [session] = (await result(client, "list_sessions", full=True, project="all"))["sessions"]
    assert session["last_accessed"] > session["updated_at"]


async def test_a_session_has_its_clients_model_and_mode(orchestrator: Orchestrator, client: Client) -> None:
    said = Message(Role.USER, "make it quicker", parse_time("2026-01-01T12:00:00Z"), more={"native_id": "a"})
    noted = {"model": "claude-4.5-opus-high-thinking", "mode": "auto-run"}
    found = FoundSession("s", "1", Session("a9e40000-aaaa", (said,), meta=noted))
    assert (await orchestrator.run(ImportRequest(store="here", found=[found], source="cursor-agent")))["success"]
    session = (await result(client, "fetch_session_by_id", session_id="a9e40000-aaaa"))["session"]
    told = {name: session[name] for name in ("model", "mode", "model_name")}
    assert told == {**noted, "model_name": "Claude Opus 4.5 (Thinking)"}
