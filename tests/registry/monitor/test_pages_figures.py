"""Figures and search results of the pages, on each database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from orchestrator.service import Orchestrator
from registry.access import Access, Level
from registry.domain import now
from registry.monitor.activity import messages_by_day, messages_by_hour, top_sessions
from registry.registry import Registry
from registry.storage.conversations.facets import projects_by_activity
from registry.storage.conversations.message_windows import counts_with_deleted, find_deleted
from registry.storage.records.executions import rate_execution, unsure_executions
from registry.storage.tables import channel

pytestmark = [pytest.mark.anyio, pytest.mark.both_databases]


MONDAY = datetime(2026, 3, 2, 23, 30, tzinfo=UTC)


async def log(orchestrator: Orchestrator, channel: str, texts: list[str], at: datetime, **meta: Any) -> None:
    messages = [{"role": "user", "text": text, "timestamp": at.isoformat()} for text in texts]
    answer = await orchestrator.run(
        {"operation": "conversation_log", "channel": channel, "messages": messages, "metadata": meta}
    )
    assert answer["success"], answer


async def test_messages_are_counted_by_the_readers_weekday_and_hour(registry: Registry) -> None:
    orchestrator = Orchestrator(registry)
    await log(orchestrator, "late", ["one", "two"], MONDAY, project="/home/me/shop")
    await log(orchestrator, "early", ["three"], MONDAY + timedelta(days=6))
    since = MONDAY - timedelta(days=1)
    assert await registry.read(lambda tx: messages_by_hour(tx, since, 0)) == {(0, 23): 2, (6, 23): 1}
    assert await registry.read(lambda tx: messages_by_hour(tx, since, 60)) == {(1, 0): 2, (0, 0): 1}
    largest = await registry.read(lambda tx: top_sessions(tx, channel.c.message_count, MONDAY + timedelta(days=1), 1))
    assert [(one["channel"], one["messages"]) for one in largest] == [("early", 1)]
    assert await registry.read(lambda tx: projects_by_activity(tx, 5)) == [("shop", "/home/me/shop", 1)]


async def test_deleted_conversations_are_found_by_most_of_the_words_and_counted(registry: Registry) -> None:
    orchestrator = Orchestrator(registry)
    await log(orchestrator, "gone", ["the redis problem", "a timeout after all"], MONDAY)
    await log(orchestrator, "kept", ["redis timeout"], MONDAY)
    await orchestrator.run({"operation": "delete", "channel": "gone", "query": {}})

    async def names(words: list[str], least: int) -> list[str]:
        return [row.name for row in await registry.read(lambda tx: find_deleted(tx, words, least, 3))]

    assert await names(["redis", "timeout", "cache"], 2) == ["gone"]
    assert await names(["redis", "timeout", "cache"], 3) == []
    assert await registry.read(lambda tx: counts_with_deleted(tx, ["gone"])) == {"gone": 2}


async def test_a_run_that_found_nothing_is_unsure_until_it_is_rated(registry: Registry) -> None:
    orchestrator = Orchestrator(registry)
    for source in ("claude", "backoffice"):
        await orchestrator.run({"operation": "extract", "query": {"text": "zyxquokka"}, "source": source})
    since = now() - timedelta(days=1)
    [run] = await registry.read(lambda tx: unsure_executions(tx, since, ["backoffice"], 9))
    assert (run["asked"], run["source"], run["status"]) == ("zyxquokka", "claude", "not_found")
    await registry.write(lambda tx: rate_execution(tx, run["id"], useful=False))
    assert await registry.read(lambda tx: unsure_executions(tx, since, ["backoffice"], 9)) == []


async def test_messages_are_counted_by_the_readers_day_and_only_those_that_a_token_sees(registry: Registry) -> None:
    orchestrator = Orchestrator(registry)
    evening = now().replace(hour=23, minute=30) - timedelta(days=3)
    await log(orchestrator, "late", ["one", "two"], evening)
    await log(orchestrator, "gone", ["three"], evening)
    await log(orchestrator, "lately", ["four"], now() - timedelta(seconds=9))
    await orchestrator.run({"operation": "delete", "channel": "gone", "query": {}})

    async def days(offset: int, of: Registry = registry) -> dict[str, int]:
        found = await of.read(lambda tx: messages_by_day(tx, evening - timedelta(days=9), offset))
        return {day: count for day, count in found.items() if count}

    first, last = evening.date(), now().date()
    assert await days(0) == {str(first): 2, str(last): 1}
    assert (await days(60))[str(first + timedelta(days=1))] == 2
    assert (await days(-60))[str(first)] == 2
    mine = registry.seen_by(Access("phone", Level.READ, ("late",)))
    assert await days(0, mine) == {str(first): 2}
