"""Test that the number of statements of an operation does not depend on the number of sessions."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.answer.finding.relevance import JudgedMessage, judge_messages
from orchestrator.service import Orchestrator
from registry.registry import Registry
from registry.search.retrieval import SearchResult
from tests.registry.ingest.statements import statements
from tests.seeded import Seeded

pytestmark = pytest.mark.anyio

SESSIONS = 40
DAY = "2026-01-05"


async def log(orchestrator: Orchestrator, number: int) -> None:
    messages = [
        {"role": "user", "text": f"how do I memoize fibonacci, {number}?", "timestamp": f"{DAY}T12:00:{number:02}Z"},
        {"role": "assistant", "text": "with functools.lru_cache", "timestamp": f"{DAY}T12:01:{number:02}Z"},
    ]
    answer = await orchestrator.run({"operation": "save", "channel": f"c{number}", "messages": messages})
    assert answer["success"]


MOST = {
    "search_sessions": (
        {"text": "memoize fibonacci", "limit": 100},
        20,
    ),  # four of them only until the summaries are stored
    "search": ({"text": "memoize fibonacci", "limit": 100}, 14),
    "extract": ({"text": "memoize fibonacci"}, 31),  # five of them for later statements in each candidate
    "list": ({"limit": 100}, 9),  # four of them only until the summaries are stored
    "daily_briefing": ({"date": DAY}, 8),
}


async def log_few(orchestrator: Orchestrator) -> None:
    for number in range(4):
        await log(orchestrator, number)


async def log_many(orchestrator: Orchestrator) -> None:
    for number in range(SESSIONS):
        await log(orchestrator, number)


async def test_asking_needs_no_more_statements_with_more_sessions(seeded: Seeded) -> None:
    for operation in MOST:
        query, most = MOST[operation]
        for sessions in (log_few, log_many):
            registry = Registry(await seeded(sessions))
            orchestrator = Orchestrator(registry)
            with statements(orchestrator.registry.engine) as seen:
                answer = await orchestrator.run({"operation": operation, "query": query})
            registry.close()
            assert answer["success"], answer
            assert len(seen) <= most, "\n".join(seen)


@pytest.mark.parametrize("operation", ["extract", "search_sessions", "search"])
async def test_the_results_of_a_search_are_judged_once(
    orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    for number in range(3):
        await log(orchestrator, number)
    judged: list[Any] = []

    def noted(found: SearchResult) -> list[JudgedMessage]:
        judged.append(found)
        return judge_messages(found)

    doors = ("operations.extract", "operations.search", "operations.search_sessions")
    for module in ("answer.finding.relevance", "answer.finding.choosing", *doors):
        monkeypatch.setattr(f"orchestrator.{module}.judge_messages", noted)
    assert (await orchestrator.run({"operation": operation, "query": {"text": "memoize fibonacci"}}))["success"]
    assert len(judged) == 1


async def test_logging_needs_no_more_statements_with_more_sessions(orchestrator: Orchestrator) -> None:
    counts = []
    for number in range(SESSIONS):
        with statements(orchestrator.registry.engine) as seen:
            await log(orchestrator, number)
        counts.append(len(seen))
    assert max(counts) <= 20, "\n".join(seen)
