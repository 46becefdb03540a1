"""Test that the chat that asks is never the answer, even if its client has stored the question."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from orchestrator.service import Orchestrator

pytestmark = pytest.mark.anyio

QUESTION = "continue the fibonacci conversation"
CLIENT = "claude-code 2.1"


async def log(orchestrator: Orchestrator, channel: str, ago: timedelta, *said: tuple[str, str]) -> None:
    at = datetime.now(UTC) - ago
    messages = [
        {"role": role, "text": text, "timestamp": (at + timedelta(seconds=place)).isoformat()}
        for place, (role, text) in enumerate(said)
    ]
    answer = await orchestrator.run(
        {"operation": "save", "channel": channel, "messages": messages, "source": "claude-code"}, CLIENT
    )
    assert answer["success"], answer


async def found(orchestrator: Orchestrator, text: str = QUESTION) -> list[str]:
    """Return the channels of a search, best first; the answer is from the first."""
    asked = {"source": "claude-code"}
    one = await orchestrator.run({"operation": "extract", "query": {"text": text}, **asked}, CLIENT)
    several = await orchestrator.run({"operation": "search_sessions", "query": {"text": text}, **asked}, CLIENT)
    channels = [session["channel"] for session in several["sessions"]]
    assert channels[:1] == ([one["channel"]] if one["success"] else [])
    return channels


@pytest.fixture
async def earlier(orchestrator: Orchestrator) -> Orchestrator:
    talk = [("user", "How do I make fibonacci faster?"), ("assistant", "Memoize it: O(n).")]
    await log(orchestrator, "fib", timedelta(days=2), *talk)
    return orchestrator


RECALLED: list[tuple[str, Any]] = [
    ("the question waits", [("user", QUESTION)]),
    ("after a word of the assistant", [("user", QUESTION), ("assistant", "Let me look up the fibonacci chat.")]),
    ("after more talk", [("user", "hi"), ("assistant", "hello"), ("user", QUESTION + "!"), ("assistant", "Sure.")]),
    (
        "while it is looked up",
        [("user", "fibonacci please"), ("tool", 'context-registry.extract {"query":"fibonacci"}')],
    ),
]


@pytest.mark.parametrize(("case", "said"), RECALLED, ids=[case for case, _ in RECALLED])
async def test_the_asking_chat_is_no_candidate(earlier: Orchestrator, case: str, said: list[tuple[str, str]]) -> None:
    await log(earlier, "asking", timedelta(seconds=20), *said)
    assert await found(earlier) == ["fib"]


@pytest.mark.parametrize("text", ["continue", "이어서 하자", "what did we do last?"])
async def test_the_asking_chat_is_not_the_latest_one(earlier: Orchestrator, text: str) -> None:
    await log(earlier, "asking", timedelta(seconds=20), ("user", text))
    asked = {"operation": "extract", "query": {"text": text}, "source": "claude-code"}
    assert (await earlier.run(asked, CLIENT))["channel"] == "fib"


@pytest.mark.parametrize(
    "question",
    [
        "continue the kubernetes ingress migration",
        "how did we fix the kubernetes ingress?",
        "what did we do about ingress?",
    ],
)
async def test_a_failed_question_that_became_its_chats_title_is_not_the_answer(
    orchestrator: Orchestrator, question: str
) -> None:
    sorry = "Sorry, I cannot look that up. Which ingress migration of kubernetes do you mean?"
    answer = "To the Gateway API, one route at a time."
    told = ("user", "How do we migrate the kubernetes ingress?"), ("assistant", answer)
    await log(orchestrator, "infra", timedelta(days=9), *told)
    await log(orchestrator, "asked", timedelta(days=1), ("user", f"{question} (shop)"), ("assistant", sorry))
    title = {"title": f"{question} (shop)"}
    await orchestrator.run({"operation": "tag", "channel": "asked", "query": title})
    assert await found(orchestrator, question) == ["infra"]


async def test_a_chat_that_got_its_answer_is_found_a_moment_later(earlier: Orchestrator) -> None:
    talk = [("user", "fibonacci with matrices?"), ("assistant", "Yes, fibonacci in O(log n).")]
    await log(earlier, "just now", timedelta(minutes=1), *talk)
    assert "just now" in await found(earlier)
    assert "just now" in await found(earlier, "fibonacci with matrices?")


async def test_a_chat_of_yesterday_that_waits_for_an_answer_is_found(earlier: Orchestrator) -> None:
    await log(earlier, "left open", timedelta(days=1), ("user", "Is fibonacci in O(1) possible with Binet?"))
    assert "left open" in await found(earlier)
