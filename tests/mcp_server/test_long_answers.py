"""Test answers larger than a client accepts: pages give each message once; long messages are shortened."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from mcp import Client
from mcp.types import TextContent

from mcp_server.server import create_server
from orchestrator.service import Orchestrator
from sources.clients import CODEX, find_client

pytestmark = pytest.mark.anyio

TURNS = 60
START = datetime(2026, 3, 2, 9, tzinfo=UTC)


def turns(count: int, *, width: int = 1) -> list[dict[str, Any]]:
    return [
        {
            "role": role,
            "text": f"{said} {number}: the payment module, step {number}. " * width,
            "timestamp": (START + timedelta(minutes=2 * number + later)).isoformat(),
        }
        for number in range(count)
        for later, (role, said) in enumerate((("user", "question"), ("assistant", "answer")))
    ]


async def log(orchestrator: Orchestrator, channel: str, messages: list[dict[str, Any]], **meta: Any) -> None:
    request = {"operation": "save", "channel": channel, "messages": messages, "source": "cursor", "metadata": meta}
    answer = await orchestrator.run(request)
    assert answer["success"], answer


@pytest.fixture
async def codex(orchestrator: Orchestrator) -> AsyncIterator[Client]:
    """Return a client with the smallest limit, 10 000 bytes."""
    async with Client(create_server(orchestrator.run, client=CODEX)) as client:
        yield client


async def result(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = await client.call_tool(tool, arguments)
    body = answer.structured_content or {}
    assert body["ok"], body
    assert len(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()) <= 10_000
    return dict(body["result"])


async def pages(client: Client, channel: str, **query: Any) -> list[list[dict[str, Any]]]:
    """Return the messages of each page of an answer, up to 100 pages."""
    found: list[list[dict[str, Any]]] = []
    cursor: dict[str, str] = {}
    while len(found) < 100:
        page = await result(client, "extract", channel=channel, query=query | cursor)
        found.append(page["messages"])
        if "next_cursor" not in page["metadata"]:
            break
        cursor = {"cursor": page["metadata"]["next_cursor"]}
    return found


def said_minutes_apart(said: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    return [
        {"role": role, "text": text, "timestamp": (START + timedelta(minutes=place)).isoformat()}
        for place, (role, text) in enumerate(said)
    ]


PAGED: list[dict[str, Any]] = [
    {},
    {"limit": 7},
    {"limit": 1000, "max_tokens": 100_000},
    {"text": "payment module"},
    {"text": "continue the payment module conversation"},
    {"text": "payment module", "max_tokens": 120},
]


async def test_pages_of_an_answer_hold_each_message_once(
    orchestrator: Orchestrator, codex: Client, subtests: pytest.Subtests
) -> None:
    count = TURNS // 3
    await log(orchestrator, "long", turns(count, width=8))
    for query in PAGED:
        with subtests.test(query=query):
            seen = [message["id"] for page in await pages(codex, "long", **query) for message in page]
            assert (len(seen), len(set(seen))) == (2 * count, 2 * count)


async def test_a_turn_shown_after_another_one_is_not_repeated_on_a_later_page(
    orchestrator: Orchestrator, codex: Client
) -> None:
    said = [
        turn
        for number in range(30)
        for turn in (
            ("user", f"Sprint ticket {number}: what changes in the zebra importer step {number}?"),
            ("assistant", f"Step {number} writes zebra_{number}.csv; {'details ' * number}end {number}."),
        )
    ]
    await log(orchestrator, "zebra", said_minutes_apart(said))
    seen = [message["text"] for page in await pages(codex, "zebra", text="zebra", limit=6) for message in page]
    assert sorted(seen) == sorted(text for _, text in said)


async def test_an_answer_is_as_long_as_the_client_of_the_server_accepts(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "long", turns(TURNS, width=200))
    for name, most in (("", 9_500), ("codex", 10_000), ("claude-code", 40_000)):
        async with Client(create_server(orchestrator.run, client=find_client(name))) as client:
            query = {"limit": 1000, "max_tokens": 50_000}
            answer = await client.call_tool("extract", {"channel": "long", "query": query})
        assert isinstance(answer.content[0], TextContent)
        assert most // 2 < len(answer.content[0].text.encode()) <= most


async def test_pages_of_a_time_filter_end_with_its_first_message(orchestrator: Orchestrator, codex: Client) -> None:
    await log(orchestrator, "long", turns(6))
    query = {"from": (START + timedelta(minutes=4)).isoformat(), "limit": 5}
    found = reversed(await pages(codex, "long", **query))
    seen = [message["text"].split(":")[0] for page in found for message in page]
    assert seen == [f"{said} {number}" for number in range(2, 6) for said in ("question", "answer")]


async def test_messages_of_a_long_turn_left_out_at_the_end_of_a_page_are_counted(
    orchestrator: Orchestrator, codex: Client
) -> None:
    steps = [("user", "build it"), *[("tool", f"part {number}") for number in range(16)], ("assistant", "built")]
    messages = [
        {"role": role, "text": text, "timestamp": (START + timedelta(seconds=place)).isoformat()}
        for place, (role, text) in enumerate(steps)
    ]
    await log(orchestrator, "agent", messages)
    query = {"roles": ["user", "assistant", "tool"], "limit": 10}
    newest = await result(codex, "extract", channel="agent", query=query)
    assert [message["text"] for message in newest["messages"]] == ["part 7", "built"]
    older = await result(codex, "extract", channel="agent", query=query | {"cursor": newest["metadata"]["next_cursor"]})
    told = [(message["text"], message.get("gap_before", 0)) for message in older["messages"]]
    assert told == [("build it", 0), ("part 6", 6)]


async def test_matches_in_a_last_turn_that_was_cut_are_on_a_later_page(
    orchestrator: Orchestrator, codex: Client
) -> None:
    said = [("user", "kestrel kestrel"), ("assistant", "kestrel is a bird"), ("user", "thanks"), ("assistant", "hm")]
    said += [("user", "and the mortar?"), *[("assistant", f"step {n}") for n in range(2)]]
    said += [("assistant", "the mortar of the kestrel is dry, says the long report on walls"), ("assistant", "done")]
    await log(orchestrator, "birds", said_minutes_apart(said))
    seen = [message["text"] for page in await pages(codex, "birds", text="kestrel", limit=3) for message in page]
    assert {text for _, text in said if "kestrel" in text} <= set(seen)
    assert len(seen) == len(set(seen))


async def test_a_turn_with_more_matches_than_a_page_holds_continues_on_the_next_page(
    orchestrator: Orchestrator, codex: Client
) -> None:
    said = [("user", "hello"), ("assistant", "good morning"), ("user", "count the birds of prey")]
    said += [("assistant", f"kestrel number {place} sits on the mast") for place in range(13)]
    said += [("user", "and then?"), ("assistant", "one kestrel flew away"), ("user", "thanks"), ("assistant", "bye")]
    await log(orchestrator, "birds", said_minutes_apart(said))
    for asked, limit in product(("kestrel", "continue the kestrel conversation"), (2, 5)):
        seen = [message["text"] for page in await pages(codex, "birds", text=asked, limit=limit) for message in page]
        assert {text for _, text in said if "kestrel" in text} <= set(seen)
        assert len(seen) == len(set(seen))


async def test_a_turn_that_does_not_fit_is_shown_with_its_question_and_answer_shortened(
    orchestrator: Orchestrator, codex: Client
) -> None:
    await log(orchestrator, "short", turns(3, width=40))
    page = await result(codex, "extract", channel="short", query={"text": "step 1", "max_tokens": 60, "limit": 2})
    assert [message["role"] for message in page["messages"]] == ["user", "assistant"]
    assert all(message["full_length"] > len(message["text"]) for message in page["messages"])


async def test_a_match_in_a_very_long_line_is_shown(orchestrator: Orchestrator, codex: Client) -> None:
    lines = [
        ("segment " * 7_500, " tail" * 3_000),
        ("x" * 60_000 + " ", " " + "y" * 30_000),
        ("文。" * 9_000, "字。" * 9_000),
    ]
    for number, (around, after) in enumerate(lines):
        needle, channel = f"KESTREL-330{number}", f"line {number}"
        text = f"{around}the needle {needle} is here{after}"
        said = [{"role": "user", "text": text}, {"role": "assistant", "text": "It is one line."}]
        await log(orchestrator, channel, said)
        [asked, _] = (await result(codex, "extract", query={"text": needle}))["messages"]
        assert needle in asked["text"]
        assert asked["full_length"] == len(text)
        page = await result(codex, "fetch_session_by_id", session_id=channel)
        assert len(page["messages"][0]["text"]) > 700


async def test_invisible_characters_count_with_the_length_of_their_shown_names(
    orchestrator: Orchestrator, codex: Client
) -> None:
    log_lines = "\n".join(f"\x1b[32mok\x1b[0m test {number}" for number in range(2_000))
    await log(orchestrator, "colours", [{"role": "user", "text": log_lines}, {"role": "assistant", "text": "Green."}])
    page = await result(codex, "fetch_session_by_id", session_id="colours")
    await result(codex, "fetch_session_by_id", session_id="colours", message_id=page["messages"][0]["id"])
    await result(codex, "extract", channel="colours", query={"text": "test", "max_tokens": 100_000})


async def test_large_context_is_shortened_so_that_its_message_fits(orchestrator: Orchestrator, codex: Client) -> None:
    context = {"selection": "code " * 20_000, "line": 145, **{f"file{n}": "path" * 50 for n in range(400)}}
    await log(orchestrator, "big", [{"role": "user", "text": "What is this?", "context": context}])
    for tool, asked in (("extract", {"channel": "big"}), ("fetch_session_by_id", {"session_id": "big"})):
        [message] = (await result(codex, tool, **asked))["messages"]
        assert (message["text"], message["context"]["line"]) == ("What is this?", 145)
        assert message["context"]["selection"].startswith("code code")


async def test_a_request_of_only_a_time_gives_all_conversations_of_that_time(
    orchestrator: Orchestrator, codex: Client
) -> None:
    yesterday = datetime.now().astimezone().replace(hour=12, minute=0) - timedelta(days=1)
    for number, subject in enumerate(("redis", "login", "images")):
        at = (yesterday + timedelta(minutes=number)).isoformat()
        said = [("user", f"Why {subject}?"), ("assistant", f"Because of {subject}.")]
        await log(orchestrator, subject, [{"role": role, "text": text, "timestamp": at} for role, text in said])
    answer = await result(codex, "extract", query={"text": "what did I work on yesterday?"})
    assert answer["channel"] == "images"
    assert {one["channel"]: [said["text"] for said in one["messages"]] for one in answer["candidates"]} == {
        "login": ["Why login?", "Because of login."],
        "redis": ["Why redis?", "Because of redis."],
    }


async def test_a_project_is_found_in_any_case(orchestrator: Orchestrator, codex: Client) -> None:
    await log(orchestrator, "a", turns(1), project="/home/ann/Payment-API")
    found = await result(codex, "list_sessions", full=True, project="payment-api")
    assert [session["channel"] for session in found["sessions"]] == ["a"]


async def test_a_list_says_how_its_times_were_understood(orchestrator: Orchestrator, codex: Client) -> None:
    await log(orchestrator, "a", turns(1))
    listed = await result(codex, "list_sessions", full=True, since="2026-03-02", project="all")
    midnight = datetime(2026, 3, 2).astimezone()
    assert datetime.fromisoformat(listed["understood"]["from"]) == midnight
