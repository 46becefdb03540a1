"""Test the search for sessions by their words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from orchestrator.service import Orchestrator
from registry.registry import Registry
from tests.orchestrator.logged import log_turns as log
from tests.seeded import Seeded

pytestmark = pytest.mark.anyio

FIBONACCI = [
    (
        "이 함수의 시간복잡도를 개선하려면 어떻게 해야 할까요?",
        "재귀 피보나치는 O(2^n)입니다. 메모이제이션으로 O(n)이 됩니다.",
    ),
    ("메모리 사용량도 O(1)로 줄일 수 있을까요?", "네, 두 개의 변수만 사용하면 됩니다."),
]
DOCKER = [
    ("Why does docker compose not find the network?", "Declare it under networks: and mark it external."),
    ("And getUserById in user_service.py?", "It raises KeyError E1234 when the kubernetes cache is cold."),
]
REDIS = [("How do I set a redis timeout?", "Pass socket_timeout; the redis cluster needs it per node.")]


async def search(orchestrator: Orchestrator, text: str, **query: Any) -> dict[str, Any]:
    answer = await orchestrator.run({"operation": "search_sessions", "query": {"text": text, **query}})
    assert answer["success"], answer
    return answer


async def found(orchestrator: Orchestrator, text: str, **query: Any) -> list[str]:
    return [session["channel"] for session in (await search(orchestrator, text, **query))["sessions"]]


async def three_sessions(orchestrator: Orchestrator) -> None:
    """Log a Korean session, an English one, and one of another client, project and month."""
    await log(orchestrator, "fib", FIBONACCI)
    await log(orchestrator, "ops", DOCKER, project="/home/me/shop")
    await log(orchestrator, "cache", REDIS, day="2026-02-10", source="claude")
    tag = {"operation": "tag", "channel": "cache", "query": {"tags": ["infra", "speed"], "nickname": "timeouts"}}
    assert (await orchestrator.run(tag))["success"]


@pytest.fixture
async def three(seeded: Seeded) -> AsyncIterator[Orchestrator]:
    registry = Registry(await seeded(three_sessions))
    yield Orchestrator(registry)
    registry.close()


@pytest.mark.parametrize(("words", "sequence", "around"), [("KeyError", 4, [3]), ("Why docker compose", 1, [2])])
async def test_equally_many_messages_are_shown_before_and_after_a_match(
    three: Orchestrator, words: str, sequence: int, around: list[int]
) -> None:
    [session] = (await search(three, words, context_window=1))["sessions"]
    [match] = session["matches"]
    assert match["sequence"] == sequence
    assert [line["sequence"] for line in match["context"]] == around


async def test_a_match_shows_its_snippet_and_the_messages_around_it(three: Orchestrator) -> None:
    [session] = (await search(three, "시간 복잡도 개선", context_window=1))["sessions"]
    assert session["channel"] == "fib"
    assert session["match_count"] == len(session["matches"]) == 1
    [match] = session["matches"]
    assert match["snippet"] == "이 함수의 **시간복잡도**를 **개선**하려면 어떻게 해야 할까요?"
    assert (match["role"], match["sequence"], match["timestamp"]) == ("user", 1, "2026-01-05T12:00:00.000Z")
    assert [line["sequence"] for line in match["context"]] == [2]
    assert match["context"][0]["text"].startswith("재귀 피보나치는")


WRITTEN = [
    ('"docker compose"', ["ops"]),
    ('"시간복잡도"', ["fib"]),
    ("redis", ["cache"]),
    ("redis -cluster", ["cache"]),
    ("redis -cluster -timeout", []),
    ("kuberntes", ["ops"]),
    ("kubernettis cache", ["ops"]),
    ("netwrok", ["ops"]),
    ("tag:infra redis", ["cache"]),
    ("tag:infra tag:speed", ["cache"]),
    ("tag:infra tag:other redis", []),
    ("project:shop", ["ops"]),
    ("source:claude", ["cache"]),
    ("source:cursor cache", ["ops"]),
    ("after:2026-02 timeout", ["cache"]),
    ("before:2026-02 timeout", []),
    ("role:assistant docker", []),
    ("timeouts", ["cache"]),
    ("tag:infra", ["cache"]),
    ("sourdough bread recipe", []),
    ("김치찌개 레시피", []),
]


async def test_the_query_language_is_understood(three: Orchestrator, subtests: pytest.Subtests) -> None:
    for text, expected in WRITTEN:
        with subtests.test(text=text, expected=expected):
            assert await found(three, text) == expected


FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({"source": "cursor"}, ["ops"]),
    ({"project": "/home/me/shop"}, ["ops"]),
    ({"tag": "infra"}, ["cache"]),
    ({"from": "2026-02-01T00:00:00Z"}, ["cache"]),
    ({"to": "2026-02-01T00:00:00Z"}, ["ops"]),
    ({"exclude_session": "cache"}, ["ops"]),
    ({"roles": ["user"]}, ["cache"]),
    ({"limit": 1}, ["cache"]),
    ({"offset": 1}, ["ops"]),
]


async def test_filters_narrow_a_search(three: Orchestrator, subtests: pytest.Subtests) -> None:
    for filters, expected in FILTERS:
        with subtests.test(filters=filters):
            assert await found(three, "redis timeout kubernetes", **filters) == expected


async def test_a_time_in_the_words_is_a_filter(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "old", REDIS, day="2020-01-05")
    answer = await search(orchestrator, "어제 이야기한 redis")
    assert answer["sessions"] == []
    assert answer["understood"]["when"] == "어제"
    messages = [{"role": "user", "text": "redis again"}]
    await orchestrator.run({"operation": "save", "channel": "new", "messages": messages})
    assert await found(orchestrator, "redis today") == ["new"]
    assert await found(orchestrator, "오늘 나눈 대화") == ["new"]
    relaxed = await search(orchestrator, "kubernetes today")
    assert [session["channel"] for session in relaxed["sessions"]] == ["new"]
    assert relaxed["understood"]["relaxed"] == "words"


async def test_a_search_without_a_subject_shows_the_latest_sessions(three: Orchestrator) -> None:
    answer = await search(three, "지난 대화 보여줘", limit=2)
    assert [session["channel"] for session in answer["sessions"]] == ["cache", "ops"]
    assert answer["pagination"] == {"total": 3, "limit": 2, "offset": 0, "has_more": True}


async def test_a_deleted_session_is_not_found(three: Orchestrator) -> None:
    assert (await three.run({"operation": "delete", "channel": "cache", "query": {}}))["success"]
    assert await found(three, "redis") == []
    assert await found(three, "timeouts") == []


async def test_a_session_that_matches_little_of_the_request_shows_only_its_best_message(
    orchestrator: Orchestrator,
) -> None:
    asked = "apricot banana cherry damson elderberry fig grape hazelnut"
    await log(orchestrator, "whole", [("What grows here?", f"These: {asked}.")])
    await log(orchestrator, "little", [("The banana is green.", "Wait."), ("The fig is dry.", "Soak it.")])
    sessions = (await search(orchestrator, asked))["sessions"]
    assert [(one["channel"], len(one["matches"])) for one in sessions] == [("whole", 1), ("little", 1)]


async def test_one_long_session_does_not_hide_the_others(orchestrator: Orchestrator) -> None:
    for number in range(30):
        await log(orchestrator, f"short_{number}", [("ECONNREFUSED again", "Start the proxy.")])
    said = [{"role": "user", "text": f"ECONNREFUSED {number}"} for number in range(1200)]
    await orchestrator.run({"operation": "save", "channel": "long", "messages": said, "source": "cursor"})
    answer = await search(orchestrator, "ECONNREFUSED", limit=50)
    assert answer["pagination"]["total"] == 31


async def test_a_month_begins_in_the_readers_time_zone(orchestrator: Orchestrator) -> None:
    seoul = {"utc_offset_minutes": 540}
    for channel, day in (("late_in_october", "2026-10-31T23:30:00Z"), ("november", "2026-11-01T00:10:00Z")):
        said = [{"role": "user", "text": "zebra quota", "timestamp": day}]
        await orchestrator.run({"operation": "save", "channel": channel, "messages": said, "source": "cursor"})
    assert set(await found(orchestrator, "zebra after:2026-11-01", **seoul)) == {"late_in_october", "november"}
    assert await found(orchestrator, "zebra after:2026-11-01") == ["november"]


async def test_a_query_of_only_excluded_words_finds_nothing(three: Orchestrator) -> None:
    assert not (await three.run({"operation": "search_sessions", "query": {"text": "-redis"}})).get("sessions")


async def test_a_word_is_not_corrected_if_only_its_ending_makes_it_long(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "shell", [("Run bash and do not stop", "It runs.")])
    answer = await orchestrator.run({"operation": "search_sessions", "query": {"text": "bathing"}})
    assert not answer.get("sessions")
