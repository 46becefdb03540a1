"""Test the history tools: list, read, and name past sessions."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult, Implementation

from mcp_server.server import create_server
from orchestrator.service import Orchestrator
from registry.registry import Registry
from registry.storage.paging import Page
from registry.storage.records.executions import list_executions
from sources.clients import CLAUDE_CODE, CODEX
from tests.mcp_server.calls import call, local_time, result
from tests.seeded import Seeded

pytestmark = pytest.mark.anyio


SHOP, AUTH = "/home/ann/shop", "/home/ann/auth"


async def log(orchestrator: Orchestrator, channel: str, turns: int, day: int, **meta: str) -> None:
    messages = [
        {"role": role, "text": f"{channel} {role} {i}", "timestamp": f"2026-01-{day:02}T12:{i:02}:{second:02}Z"}
        for i in range(turns)
        for role, second in (("user", 0), ("assistant", 9))
    ]
    await orchestrator.run(
        {"operation": "save", "channel": channel, "messages": messages, "source": "cursor", "metadata": meta}
    )


async def three_chats(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "basket", 3, day=1, project=SHOP, title="Basket", session_id="5e550000-aaaa")
    await log(orchestrator, "prices", 2, day=2, project=SHOP, session_id="5e550000-bbbb")
    await log(orchestrator, "tokens", 40, day=3, project=AUTH)


@pytest.fixture
async def filled(seeded_file: Seeded) -> AsyncIterator[Orchestrator]:
    registry = Registry(await seeded_file(three_chats))
    yield Orchestrator(registry)
    registry.close()


@pytest.fixture
async def client(filled: Orchestrator) -> AsyncIterator[Client]:
    cursor = Implementation(name="cursor-vscode", version="1.0")
    server = create_server(filled.run, ("all",), SHOP, client=CLAUDE_CODE)
    async with Client(server, client_info=cursor) as connected:
        yield connected


def names(found: dict[str, Any]) -> list[str]:
    return [session["channel"] for session in found["sessions"]]


async def test_sessions_of_the_current_project_come_first_and_all_when_asked(client: Client) -> None:
    here = await result(client, "list_sessions", full=True)
    assert (names(here), here["project"]) == (["prices", "basket"], SHOP)
    everywhere = await result(client, "list_sessions", full=True, project="all", limit=2)
    assert names(everywhere) == ["tokens", "prices"]
    assert names(await result(client, "list_recent_sessions", full=True, limit=2)) == ["tokens", "prices"]
    assert everywhere["pagination"] == {"total": 3, "limit": 2, "offset": 0, "has_more": True}
    rest = await result(client, "list_sessions", full=True, project="all", limit=2, offset=2)
    assert (names(rest), rest["pagination"]["has_more"]) == (["basket"], False)
    assert names(await result(client, "list_sessions", full=True, project=AUTH)) == ["tokens"]


async def test_an_empty_folder_says_where_sessions_are(client: Client) -> None:
    moved = await result(client, "list_sessions", full=True, project="/home/bob/shop")
    assert names(moved) == []
    assert moved["elsewhere"] == {"all": 3, "same_name": {"path": SHOP, "count": 2}}
    other = await result(client, "list_sessions", full=True, project="/home/bob/else", until="2026-01-02T23:00:00Z")
    assert other["elsewhere"] == {"all": 2}
    assert "elsewhere" not in await result(client, "list_sessions", full=True, project=SHOP, offset=50)


async def test_sessions_are_listed_by_tag_and_time_in_words(filled: Orchestrator, client: Client) -> None:
    await result(client, "tag_current_session", session_id="basket", tags=["api"])
    assert names(await result(client, "list_sessions", full=True, tag="api")) == ["basket"]
    await filled.run({"operation": "save", "channel": "new", "messages": [{"role": "user", "text": "today"}]})
    for since in ("today", "7d", "오늘", "yesterday"):
        assert names(await result(client, "list_sessions", full=True, project="all", since=since)) == ["new"]
    assert names(await result(client, "list_sessions", full=True, until="2026-01-01")) == ["basket"]
    assert "new" not in names(await result(client, "list_sessions", full=True, project="all", until="yesterday"))


async def test_a_source_is_found_in_any_case_and_an_unknown_one_is_answered_with_the_known_ones(client: Client) -> None:
    assert len(names(await result(client, "list_sessions", full=True, project="all", source="Cursor"))) == 3
    assert len(names(await result(client, "list_sessions", full=True, project="all", source="커서"))) == 3
    assert names(await result(client, "list_sessions", full=True, project="all", source="codex")) == []
    refused = await call(client, "list_sessions", full=True, source="curser")
    assert refused["error"]["code"] == "INVALID_REQUEST"
    assert "source: given 'curser'; allowed: cursor" in refused["error"]["details"]


async def test_an_unknown_current_project_means_all_and_the_answer_says_so(
    filled: Orchestrator, client: Client
) -> None:
    async with Client(create_server(filled.run, ("all",))) as nowhere:
        found = await result(nowhere, "list_sessions", full=True)
    assert (len(found["sessions"]), found["project"]) == (3, "all")
    assert "not known" in found["note"]
    assert "note" not in await result(client, "list_sessions", full=True, project="all")


async def test_a_session_in_a_list_has_its_metadata(client: Client) -> None:
    [session] = (await result(client, "list_sessions", full=True, project="all"))["sessions"][2:]
    assert session.pop("summary").startswith("Asked: basket user 0")
    assert session == {
        "session_id": "5e550000-aaaa",
        "channel": "basket",
        "source": "cursor",
        "title": "Basket",
        "tags": [],
        "project_path": SHOP,
        "project_name": "shop",
        "message_count": 6,
        "created_at": local_time("2026-01-01T12:00:00Z"),
        "updated_at": local_time("2026-01-01T12:02:09Z"),
        "first_message_preview": "basket user 0",
        "summary_by": "extractive",
        "index": 3,
    }


async def test_a_session_is_read_page_by_page_from_its_end(client: Client) -> None:
    page = await result(client, "fetch_session_by_id", session_id="tokens", message_limit=4)
    assert page["session"]["message_count"] == 80
    seen = page["messages"]
    while seen[0]["sequence"] > 1:
        page = await result(
            client, "fetch_session_by_id", session_id="tokens", message_limit=30, before=seen[0]["sequence"]
        )
        seen = page["messages"] + seen
    assert [message["sequence"] for message in seen] == list(range(1, 81))
    detail = await result(client, "get_session_detail", session_id="tokens")
    assert detail["messages"] == seen


async def test_pages_of_a_long_session_leave_nothing_out(filled: Orchestrator, client: Client) -> None:
    messages = [{"role": "user", "text": f"{number} " + "long answer " * 200} for number in range(120)]
    await filled.run({"operation": "save", "channel": "long", "messages": messages})
    page = await result(client, "get_session_detail", session_id="long")
    seen = page["messages"]
    while "next_cursor" in page:
        assert sum(len(message["text"]) for message in page["messages"]) < 26_000
        page = await result(client, "get_session_detail", session_id="long", cursor=page["next_cursor"])
        seen += page["messages"]
    assert [message["text"] for message in seen] == [message["text"] for message in messages]
    end = await result(client, "fetch_session_by_id", session_id="long")
    assert [message["sequence"] for message in end["messages"]] == list(range(121 - len(end["messages"]), 121))
    assert 2 < len(end["messages"]) < 50
    less = await result(client, "fetch_session_by_id", session_id="long", max_tokens=2000)
    assert len(less["messages"]) < len(end["messages"])


async def test_a_long_message_is_shortened_and_can_be_read_whole(filled: Orchestrator, client: Client) -> None:
    long = "\n\n".join(f"Paragraph {number} of a long answer." for number in range(3000))
    messages = [{"role": "user", "text": "write"}, {"role": "assistant", "text": long}]
    await filled.run({"operation": "save", "channel": "essay", "messages": messages})
    asked, answered = (await result(client, "fetch_session_by_id", session_id="essay"))["messages"]
    assert "full_length" not in asked
    assert answered["full_length"] == len(long)
    assert answered["text"].startswith("Paragraph 0 ")
    assert "[…]" in answered["text"]
    wanted = {"session_id": "essay", "message_id": answered["id"]}
    async with Client(create_server(filled.run, client=CODEX)) as small:
        for asking, least_pieces in ((client, 2), (small, 10)):
            page = await result(asking, "fetch_session_by_id", **wanted)
            pieces = [page["messages"][0]]
            while "next_cursor" in page:
                page = await result(asking, "fetch_session_by_id", session_id="essay", cursor=page["next_cursor"])
                pieces += page["messages"]
            assert "".join(piece["text"] for piece in pieces) == long
            assert [piece["offset"] for piece in pieces[:2]] == [0, len(pieces[0]["text"])]
            assert len(pieces) >= least_pieces
        sizes = [len(json.dumps(piece, ensure_ascii=False).encode()) for piece in pieces]
        assert max(sizes) < 10_000
    [short] = (await result(client, "fetch_session_by_id", session_id="essay", message_id=asked["id"]))["messages"]
    assert (short["text"], "offset" in short) == ("write", False)
    other = await call(client, "fetch_session_by_id", session_id="basket", message_id=answered["id"])
    assert other["error"]["code"] == "NOT_FOUND"
    assert "'essay'" in other["error"]["details"]


async def test_no_answer_is_longer_than_its_client_accepts(filled: Orchestrator, client: Client) -> None:
    messages = [{"role": "user", "text": f'"{number}"\n가나다 ' * 80} for number in range(60)]
    await filled.run({"operation": "save", "channel": "long", "messages": messages})
    async with Client(create_server(filled.run, client=CODEX)) as asking:
        for tool in ("fetch_session_by_id", "get_session_detail"):
            answer = await asking.call_tool(tool, {"session_id": "long"})
            assert isinstance(answer, CallToolResult)
            assert 3_000 < len(answer.content[0].text) < 10_000  # type: ignore[union-attr]


async def test_a_session_is_found_by_channel_id_prefix_or_place(client: Client) -> None:
    cases: list[tuple[str, str]] = [
        ("basket", "basket"),
        ("5e550000-aaaa", "basket"),
        ("5e550000-b", "prices"),
        ("#1", "tokens"),
        ("#3", "basket"),
        ("3", "basket"),
    ]
    for reference, channel in cases:
        found = await result(client, "fetch_session_by_id", session_id=reference)
        assert found["session"]["channel"] == channel


async def test_a_title_finds_the_only_conversation_that_has_it(filled: Orchestrator, client: Client) -> None:
    asked = {"fetch_session_by_id": "session_id", "extract": "channel"}
    for title in ("Basket", " basket", "Baske…"):
        for tool, field in asked.items():
            found = await result(client, tool, **{field: title})
            assert found.get("session", found)["channel"] == "basket"
    messages = [{"role": "user", "text": "Which colour suits the door of the shop?"}]
    await filled.run({"operation": "save", "channel": "untitled", "messages": messages})
    assert (await result(client, "extract", channel="which colour suits the…"))["channel"] == "untitled"
    await filled.run({"operation": "save", "channel": "other", "messages": messages, "metadata": {"title": "Basket"}})
    for tool, field in asked.items():
        several = await call(client, tool, **{field: "Basket"})
        assert "other (Basket), 5e550000-aaaa (Basket)" in several["error"]["details"]


async def test_an_ambiguous_or_unknown_reference_is_refused(client: Client) -> None:
    several = await call(client, "fetch_session_by_id", session_id="5e550000")
    assert several["error"]["code"] == "INVALID_REQUEST"
    assert "5e550000-aaaa (Basket)" in several["error"]["details"]
    for unknown in ("5e55x", "#4", "4", "#0", "0", "no such"):
        answer = await call(client, "fetch_session_by_id", session_id=unknown)
        assert answer["error"]["code"] == "NOT_FOUND"


async def test_the_current_session_gets_a_nickname_and_is_found_by_it(client: Client) -> None:
    this = {"session_id": "tokens"}
    named = await result(client, "tag_current_session", **this, nickname="auth-design", tags=["auth", "설계"])
    assert (named["session"]["channel"], named["session"]["tags"]) == ("tokens", ["auth", "설계"])
    found = await result(client, "fetch_session_by_nickname", nickname="auth-design", message_limit=1)
    assert found["session"]["channel"] == "tokens"
    assert names(await result(client, "find_sessions_by_tag", full=True, tag="설계")) == ["tokens"]
    assert names(await result(client, "list_sessions", full=True, project="all", tagged_only=True)) == ["tokens"]
    more = await result(client, "tag_current_session", **this, tags=["api"])
    assert (more["session"]["nickname"], more["session"]["tags"]) == ("auth-design", ["api", "auth", "설계"])
    taken = await call(client, "tag_current_session", nickname="auth-design", session_id="basket")
    assert taken["error"]["code"] == "INVALID_REQUEST"
    assert "tokens" in taken["error"]["details"]


async def test_spaces_around_a_tag_are_removed_and_a_blank_tag_is_refused(client: Client) -> None:
    padded = await result(client, "tag_current_session", session_id="tokens", tags=[" api", "api "])
    assert padded["session"]["tags"] == ["api"]
    blank = await call(client, "tag_current_session", session_id="tokens", tags=["api", " "])
    assert blank["error"]["code"] == "INVALID_REQUEST"


async def test_a_misspelt_nickname_is_answered_with_similar_ones(client: Client) -> None:
    await result(client, "tag_current_session", nickname="auth-design", session_id="tokens")
    for tool, field in (("fetch_session_by_nickname", "nickname"), ("fetch_session_by_id", "session_id")):
        for typo in ("auth-desing", "Auth-Desgn", "design"):
            answer = await call(client, tool, **{field: typo})
            assert answer["error"]["code"] == "NOT_FOUND"
            assert answer["error"]["details"].endswith("; nearest: 'auth-design'")
    assert "'prices'" in (await call(client, "fetch_session_by_id", session_id="pricse"))["error"]["details"]
    assert "nearest" not in (await call(client, "fetch_session_by_id", session_id="kubernetes"))["error"]["details"]


async def test_tool_output_is_shortened_except_in_the_detail(filled: Orchestrator, client: Client) -> None:
    noise = {"role": "tool", "text": "line of output\n" * 100}
    await filled.run({"operation": "save", "channel": "noisy", "messages": [noise]})
    [short] = (await result(client, "fetch_session_by_id", session_id="noisy"))["messages"]
    [whole] = (await result(client, "get_session_detail", session_id="noisy"))["messages"]
    assert (len(short["text"]), whole["text"]) == (200, noise["text"])


async def test_a_refused_call_of_a_history_tool_is_recorded(client: Client, filled: Orchestrator) -> None:
    cases: list[tuple[str, dict[str, Any], str, str]] = [
        ("list_sessions", {"limit": 0}, "list", "limit: given 0"),
        ("list_recent_sessions", {"since": "soon"}, "list", 'since: given "soon"'),
        ("find_sessions_by_tag", {}, "list", "tag: missing"),
        ("search_sessions", {"query": "x", "context_window": 99}, "search_sessions", "context_window: given 99"),
        ("search_sessions", {"query": "x", "exclude_current": True}, "search_sessions", "current_session_id: missing"),
        ("fetch_session_by_id", {"session_id": ""}, "fetch", "session_id: missing"),
        ("fetch_session_by_nickname", {"nickname": "a", "before": 0}, "fetch", "before: given 0"),
        ("get_session_detail", {"sitting": "a"}, "fetch", "no such field"),
        ("tag_current_session", {"tags": [""]}, "tag", "tags.0"),
        ("export_session", {"session_id": "tokens", "format": "doc"}, "fetch", 'format: given "doc"'),
        ("export_session", {"session_id": "tokens", "path": "/x.md"}, "fetch", "path: given '/x.md'"),
    ]
    for tool, arguments, operation, said in cases:
        refused = await call(client, tool, **arguments)
        assert refused["error"]["code"] == "INVALID_REQUEST"
        assert said in refused["error"]["details"]
        page = await filled.registry.read(lambda tx: list_executions(tx, {"status": "failed"}, Page()))
        [run, *_] = page["items"]
        assert (run["operation"], run["source"], run["client"]) == (operation, "cursor", "cursor-vscode 1.0")
        details = refused["error"]["details"].partition("; a correct call: ")[0]  # the example is for the model
        assert run["error"] == {**refused["error"], "details": details}


# -- within the client's limit


async def test_a_list_is_within_the_clients_limit_and_its_next_page_continues(orchestrator: Orchestrator) -> None:
    there = [f"cursor_session_{number}" for number in range(10, 40)]
    for channel in there:
        text = f"{channel}: 대화입니다. " + "장바구니가 자꾸 비워지는 이유를 찾아야 합니다. " * 8
        messages = [{"role": "user", "text": text}]
        await orchestrator.run({"operation": "save", "channel": channel, "messages": messages, "source": "cursor"})
        await orchestrator.run({"operation": "tag", "channel": channel, "query": {"add_tags": ["basket"]}})
    cases: list[tuple[str, dict[str, Any]]] = [
        ("list_sessions", {"full": True}),
        ("search_sessions", {"query": "장바구니", "max_tokens": 100_000}),
    ]
    async with Client(create_server(orchestrator.run, ("all",), client=CODEX)) as client:
        for tool, arguments in cases:
            seen: list[str] = []
            offset: int | None = 0
            while offset is not None:
                asked = {**arguments, "project": "all", "limit": 30, "offset": offset}
                answer = await client.call_tool(tool, asked)
                assert len("".join(part.text for part in answer.content if part.type == "text").encode()) <= 10_000
                found = dict((answer.structured_content or {})["result"])
                seen += names(found)
                offset = found["pagination"].get("next_offset")
            assert sorted(seen) == there


async def test_one_line_lists_are_within_the_clients_limit(orchestrator: Orchestrator) -> None:
    for number in range(100):
        message = {"role": "user", "text": f"{number:02} " + "basket " * 20}
        await orchestrator.run({"operation": "save", "channel": f"chat-{number:02}", "messages": [message]})
    seen: list[str] = []
    async with Client(create_server(orchestrator.run, ("all",), client=CODEX)) as client:
        while len(seen) < 100:
            page = await result(client, "list_sessions", project="all", limit=1000, offset=len(seen))
            assert page["sessions"]
            assert page["pagination"]["has_more"] == (len(seen + page["sessions"]) < 100)
            seen += page["sessions"]
    assert len({line.split(" · ")[0] for line in seen}) == 100


async def test_messages_around_a_match_have_local_times_as_the_match_has(client: Client) -> None:
    found = await result(client, "search_sessions", query="basket user 1", project="all")
    match = found["sessions"][0]["matches"][0]
    times = [one["timestamp"] for one in (match, *match["context"])]
    assert len(times) > 1
    assert times == [local_time(time) for time in times]


# -- summaries


async def test_a_summary_follows_new_messages_and_deletions(
    orchestrator: Orchestrator,
) -> None:
    async def summary() -> str:
        answer = await orchestrator.run({"operation": "fetch", "query": {"session_id": "shop"}})
        return str(answer["session"]["summary"])

    async def say(*texts: str) -> list[str]:
        messages = [{"role": "user", "text": text} for text in texts]
        return list(
            (await orchestrator.run({"operation": "save", "channel": "shop", "messages": messages}))["stored_ids"]
        )

    await say("How do we store sessions?")
    first = await summary()
    ids = await say("How do we store sessions?", "Let's go with Redis.")
    assert first == "Asked: How do we store sessions?"
    assert (await summary()).splitlines()[1:] == ["Decided: Let's go with Redis."]
    await orchestrator.run({"operation": "delete", "query": {"id": ids[1]}})
    assert await summary() == first
    edit = {"name": "Edit", "params": {"file_path": "store.py"}, "status": "completed"}
    undone = {"role": "tool", "text": "Edit store.py", "tool": edit, "superseded": True}
    await orchestrator.run({"operation": "save", "channel": "shop", "messages": [undone]})
    assert await summary() == first
