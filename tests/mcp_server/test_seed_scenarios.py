"""Test the product's first use cases, as a client calls them, over chats logged through the tools."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest
from mcp import Client
from mcp.types import Implementation

from benchmarks.retrieval.product import clock_at
from mcp_server.server import create_server
from orchestrator.service import Orchestrator
from registry.registry import Registry
from tests.mcp_server.calls import call, result
from tests.seeded import Seeded

pytestmark = pytest.mark.anyio

NOW = datetime.fromisoformat("2025-10-02T10:00:00+09:00")
"""A Thursday."""
SHOP, API, MOBILE = "/home/ann/shop", "/home/ann/my-api-project", "/home/ann/mobile-app"

CHATS: dict[str, tuple[str, int, list[tuple[str, str]]]] = {
    "cursor_session_auth": (
        SHOP,
        1,
        [
            ("We need authentication for the API. JWT or sessions?", "JWT access tokens, fifteen minutes."),
            ("And the refresh tokens?", "Keep refresh tokens in httpOnly cookies and rotate them."),
        ],
    ),
    "cursor_session_payment": (
        SHOP,
        1,
        [("The Stripe webhook is delivered twice", "Store the event id, answer the second one with 200.")],
    ),
    "cursor_session_schema": (
        SHOP,
        3,
        [("Let us design the database migrations with Prisma", "One migration for each table, named by date.")],
    ),
    "cursor_session_rollback": (
        SHOP,
        8,
        [("The rollback of the last database migration fails", "The down script drops a column that is in use.")],
    ),
    "cursor_session_profile": (
        SHOP,
        12,
        [("Design the user profile system: which fields?", "Avatar, display name, locale; settings as JSON.")],
    ),
    "cursor_session_cors": (
        SHOP,
        7,
        [("CORS error: the browser blocks the preflight request", "Allow the origin and OPTIONS in the gateway.")],
    ),
    "cursor_session_oauth": (
        API,
        4,
        [("How shall authentication work here?", "OAuth with the authorization code flow and PKCE.")],
    ),
    "cursor_session_biometric": (
        MOBILE,
        2,
        [("Add biometric authentication to the login screen", "Use the keychain, with the passcode as fallback.")],
    ),
}
"""By channel: project, days ago, turns. Two days ago was a Tuesday."""

FIBONACCI = "cursor_session_20250929_1430"
FIBONACCI_TEXTS = [
    "이 함수의 시간복잡도를 개선하려면 어떻게 해야 할까요?",
    "현재 O(2^n)의 시간복잡도를 가진 재귀 피보나치는 동적 프로그래밍으로 개선 가능합니다.",
    "메모리 사용량도 O(1)로 줄일 수 있을까요?",
    "네, 두 개의 변수만 사용하여 이전 두 값을 저장하는 방식으로 공간복잡도를 O(1)로 최적화할 수 있습니다.",
]


@pytest.fixture
def clock() -> Iterator[None]:
    with clock_at(NOW, "Asia/Seoul"):
        yield


def client_in_shop(orchestrator: Orchestrator) -> Client:
    """Return Cursor's client, opened in the shop's folder."""
    server = create_server(orchestrator.run, ("all",), SHOP)
    return Client(server, client_info=Implementation(name="cursor-vscode", version="1.0"))


async def log_chats(orchestrator: Orchestrator) -> None:
    """Log all chats as Cursor."""
    async with client_in_shop(orchestrator) as client:
        for channel, (project, days, turns) in CHATS.items():
            texts = [text for turn in turns for text in turn]
            await _log(client, channel, texts, NOW - timedelta(days=days), project=project)
        fibonacci = datetime.fromisoformat("2025-09-29T14:30:15+00:00")
        await _log(client, FIBONACCI, FIBONACCI_TEXTS, fibonacci, project="/home/ann/algorithms")


@pytest.fixture
async def orchestrator(clock: None, seeded_file: Seeded) -> AsyncIterator[Orchestrator]:
    registry = Registry(await seeded_file(log_chats))
    yield Orchestrator(registry)
    registry.close()


@pytest.fixture
async def cursor(orchestrator: Orchestrator) -> AsyncIterator[Client]:
    async with client_in_shop(orchestrator) as client:
        yield client


async def _log(client: Client, channel: str, texts: list[str], at: datetime, **meta: str) -> None:
    messages = [
        {
            "role": ("user", "assistant")[place % 2],
            "text": text,
            "timestamp": (at + timedelta(minutes=place)).isoformat(),
        }
        for place, text in enumerate(texts)
    ]
    await result(client, "conversation_log", channel=channel, messages=messages, meta=meta)


def channels(found: dict[str, Any]) -> list[str]:
    return [session["channel"].removeprefix("cursor_session_") for session in found["sessions"]]


def texts(found: dict[str, Any]) -> list[str]:
    return [message["text"] for message in found["messages"]]


async def test_tag_this_session_and_load_it_by_its_nickname(cursor: Client) -> None:
    tagged = await result(
        cursor,
        "tag_current_session",
        nickname="auth-design",
        tags=["authentication", "api"],
        session_id="cursor_session_auth",
    )
    assert (tagged["session"]["nickname"], sorted(tagged["session"]["tags"])) == (
        "auth-design",
        ["api", "authentication"],
    )
    loaded = await result(cursor, "fetch_session_by_nickname", nickname="auth-design")
    assert len(loaded["messages"]) == 4
    assert "Keep refresh tokens in httpOnly cookies and rotate them." in texts(loaded)


async def test_find_sessions_where_we_discussed_database_migrations(cursor: Client) -> None:
    found = await result(cursor, "search_sessions", query="database migrations", project="current")
    assert set(channels(found)[:2]) == {"schema", "rollback"}
    assert {session["project_path"] for session in found["sessions"] if "project_path" in session} <= {SHOP}


async def test_what_did_i_work_on_yesterday(cursor: Client) -> None:
    for since in ("yesterday", "어제"):
        listed = await result(cursor, "list_sessions", full=True, limit=10, project="current", since=since, until=since)
        assert set(channels(listed)) == {"auth", "payment"}


async def test_a_day_in_the_words_lists_the_sessions_of_that_day(cursor: Client) -> None:
    cases: list[tuple[str, set[str]]] = [
        ("What did I work on yesterday?", {"auth", "payment"}),
        ("어제 작업한 거 정리해줘", {"auth", "payment"}),
        ("What did I work on last Tuesday?", {"biometric"}),
    ]
    for words, days in cases:
        assert set(channels(await result(cursor, "search_sessions", query=words, project="all"))) == days, words


async def test_how_did_we_handle_authentication_in_my_other_project(cursor: Client) -> None:
    found = await result(cursor, "search_sessions", query="authentication", project="all")
    assert set(channels(found)[:3]) == {"auth", "oauth", "biometric"}


async def test_the_context_of_an_earlier_chat_is_found(cursor: Client) -> None:
    cases: list[tuple[str, str, str]] = [
        (
            "Pull in the context from when we designed the user profile system",
            "profile",
            "Avatar, display name, locale; settings as JSON.",
        ),
        (
            "What was the solution to the CORS issue we fixed last week?",
            "cors",
            "Allow the origin and OPTIONS in the gateway.",
        ),
        (
            "Pull in the context from when we worked on the authentication system in the shop project",
            "auth",
            "Keep refresh tokens in httpOnly cookies and rotate them.",
        ),
        (
            "How did we solve authentication in my-api-project?",
            "oauth",
            "OAuth with the authorization code flow and PKCE.",
        ),
    ]
    for words, channel, answer in cases:
        found = await result(cursor, "extract", query=words)
        assert found["channel"] == f"cursor_session_{channel}"
        assert answer in texts(found)
        assert found["confidence"] in ("high", "medium")


async def test_another_client_gets_the_whole_conversation_about_fibonacci(
    cursor: Client, orchestrator: Orchestrator
) -> None:
    desktop = Implementation(name="claude-ai", version="1.0")
    asked = ("피보나치 함수 시간복잡도 개선 관련 대화", "피보나치 최적화 대화 이어가기")
    async with Client(create_server(orchestrator.run), client_info=desktop) as claude:
        for words, channel in product(asked, ({"channel": FIBONACCI}, {})):
            query = {"text": words, "limit": 20}
            found = await result(claude, "extract", query=query, meta={"source": "claude"}, **channel)
            assert found["channel"] == FIBONACCI
            assert texts(found) == FIBONACCI_TEXTS
            last = datetime.fromisoformat(found["metadata"]["last_activity"])
            assert last == datetime.fromisoformat("2025-09-29T14:33:15+00:00")
            assert found["metadata"]["filtered_messages"] == 4


async def test_a_subject_that_nobody_spoke_of_is_not_found(cursor: Client) -> None:
    answer = await cursor.call_tool(
        "extract", {"channel": FIBONACCI, "query": {"text": "kubernetes ingress certificate"}}
    )
    assert (answer.structured_content or {})["error"] == {
        "code": "NOT_FOUND",
        "message": "No matching conversations found",
        "details": "No conversations found for query: 'kubernetes ingress certificate'",
    }


async def refused(client: Client, **arguments: Any) -> str:
    answer = await call(client, "extract", **arguments)
    assert answer["error"]["code"] == "NOT_FOUND", answer
    return str(answer["error"]["details"])


async def test_the_folder_decides_between_equally_good_conversations(
    cursor: Client, orchestrator: Orchestrator
) -> None:
    words = "Pull in the context from when we worked on the authentication system"
    found = await result(cursor, "extract", query=words)
    assert found["channel"] == "cursor_session_auth"
    assert {one["channel"] for one in found["candidates"]} >= {"cursor_session_oauth", "cursor_session_biometric"}
    async with Client(create_server(orchestrator.run, ("all",), API)) as elsewhere:
        assert (await result(elsewhere, "extract", query=words))["channel"] == "cursor_session_oauth"
    assert (await result(cursor, "extract", query="biometric login with the keychain"))["channel"].endswith("biometric")


async def test_a_request_to_continue_may_name_a_time(cursor: Client) -> None:
    asked = (
        "continue the Stripe webhook conversation, the refund came today",
        "Stripe webhook 대화 이어서 하자, 오늘 또 왔어",
    )
    for words, channel in product(asked, ({"channel": "cursor_session_payment"}, {})):
        found = await result(cursor, "extract", query=words, **channel)
        assert found["channel"] == "cursor_session_payment"
        assert texts(found) == [text for turn in CHATS["cursor_session_payment"][2] for text in turn]
        assert found["metadata"]["understood"]["relaxed"] == "time"
        assert "2025-10-02" in found["note"]
        sessions = await result(cursor, "search_sessions", query=words, project="all")
        assert (channels(sessions)[0], sessions["understood"]["relaxed"]) == ("payment", "time")


async def test_continuing_a_named_conversation_gives_its_end_for_any_words(cursor: Client) -> None:
    asked = "continue the late invoice conversation, half should've landed today"
    found = await result(cursor, "extract", query=asked, channel="cursor_session_payment")
    assert texts(found) == [text for turn in CHATS["cursor_session_payment"][2] for text in turn]
    assert (found["metadata"]["understood"]["relaxed"], found["confidence"]) == ("time and words", "low")


async def test_a_request_to_continue_a_conversation_of_a_day_gets_that_of_the_day(cursor: Client) -> None:
    found = await result(cursor, "extract", query="continue the authentication thing from yesterday")
    assert found["channel"] == "cursor_session_auth"
    assert "relaxed" not in found["metadata"]["understood"]


async def test_a_day_without_a_match_names_the_nearest_match(cursor: Client) -> None:
    words = "that database schema we designed yesterday"
    found = await result(cursor, "extract", query=words)
    assert found["metadata"]["understood"]["relaxed"] == "words"
    assert found["channel"] == "cursor_session_auth", "the latest session of that day"
    assert "Nearest: 2025-09-29 10:00, “Let us design the database migrations with Prisma”" in found["note"]
    assert found["candidates"][0]["channel"] == "cursor_session_schema"
    sessions = await result(cursor, "search_sessions", query=words, project="all")
    assert set(channels(sessions)) == {"auth", "payment"}
    assert sessions["elsewhere"]["about_it"]["session_id"] == "cursor_session_schema"


async def test_a_request_for_a_day_without_any_session_says_that_it_was_widened(cursor: Client) -> None:
    found = await result(cursor, "extract", query="the database migrations with Prisma we designed today")
    assert found["channel"] == "cursor_session_schema"
    assert found["metadata"]["understood"]["relaxed"] == "time"
    assert "Nothing of it is from 2025-10-02 00:00" in found["note"]
    named = await refused(cursor, query="the Prisma migrations we designed today", channel="cursor_session_schema")
    assert "nothing from 2025-10-02 00:00" in named


async def test_a_conversation_with_exactly_that_nickname_is_no_guess(cursor: Client) -> None:
    asked = {"query": "Check the session about gateway architecture"}
    assert "cursor_session_cors" in (await result(cursor, "extract", **asked))["channel"]
    assert (await result(cursor, "extract", **asked))["confidence"] == "low"
    await result(cursor, "tag_current_session", nickname="gateway-architecture", session_id="cursor_session_cors")
    found = await result(cursor, "extract", **asked)
    assert found["channel"] == "cursor_session_cors"
    assert found["confidence"] != "low"
    searched = await result(cursor, "search_sessions", query="gateway architecture", project="all")
    assert channels(searched)[0] == "cors"
    assert searched["confidence"] != "low"


async def test_a_request_to_continue_is_surer_of_a_conversation_on_its_subject(cursor: Client) -> None:
    for number in range(5):
        more = "and more of the garden " * number
        said = (
            f"My tax for client {number}",
            "The return of that function is a list.",
            f"Thanks, {more}",
            "You are welcome.",
        )
        messages = [{"role": ("user", "assistant")[at % 2], "text": text} for at, text in enumerate(said)]
        await result(cursor, "conversation_log", channel=f"cursor_session_tax_{number}", messages=messages)
    for tool, where in (("extract", {}), ("search_sessions", {"project": "all"})):
        subject = "my tax return from the last chat"
        assert (await result(cursor, tool, query=subject, **where))["confidence"] == "low"
        assert (await result(cursor, tool, query=f"continue {subject}", **where))["confidence"] == "medium"
        assert (await result(cursor, tool, query="continue my taxx return", **where))["confidence"] == "low"


async def test_words_of_a_request_to_continue_are_not_searched(cursor: Client) -> None:
    for words in (
        "the payment webhook, pick it up",
        "where did we stop with the payment webhook",
        "ok back to the payment webhook thing",
        "go on with the webhook payment, what is still open?",
    ):
        read = (await result(cursor, "extract", query=words))["metadata"]["understood"]
        assert (read["continues"], set(read["words"])) == (True, {"payment", "webhook"}), words


async def test_a_matching_time_does_not_raise_the_confidence_of_a_weak_match(cursor: Client) -> None:
    found = await result(cursor, "extract", query="the birthday party of Anna and the tokens from yesterday")
    assert found["confidence"] == "low"


async def test_a_weekday_means_last_weeks_if_nothing_was_said_on_the_latest_one(cursor: Client) -> None:
    said = {"role": "user", "text": "The bandsaw drifts", "timestamp": "2025-09-23T10:00:00+09:00"}
    project = {"project": "/home/ann/sawmill"}
    await result(cursor, "conversation_log", channel="cursor_session_saw", messages=[said], meta=project)
    found = await result(cursor, "extract", query="what did I work on in the sawmill project last Tuesday?")
    assert found["channel"] == "cursor_session_saw"
