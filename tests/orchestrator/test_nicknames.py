"""Test nicknames: which are allowed, and which session each refers to."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import update

from orchestrator.service import Orchestrator
from registry.registry import Registry
from registry.storage.tables import channel

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
async def two(orchestrator: Orchestrator) -> None:
    """Log two sessions; the later one has a native id."""
    for day, name, meta in ((1, "basket", {}), (2, "prices", {"session_id": "5e55-0001"})):
        message = {"role": "user", "text": f"about {name}", "timestamp": f"2026-01-0{day}T12:00:00Z"}
        await orchestrator.run(
            {"operation": "save", "channel": name, "messages": [message], "source": "cursor", "metadata": meta}
        )


async def set_nickname(orchestrator: Orchestrator, name: str, nickname: str, **more: Any) -> dict[str, Any]:
    return await orchestrator.run({"operation": "tag", "channel": name, "query": {"nickname": nickname, **more}})


async def fetch(orchestrator: Orchestrator, reference: str) -> dict[str, Any]:
    return await orchestrator.run({"operation": "fetch", "query": {"session_id": reference}})


REFUSED_NAMES = [
    *(("", "at least 1 character"), ("  ", "at least 1 character"), ("\u200b", "visible characters")),
    *(("a\tb", "no control characters"), ("a\x1b[31m", "no control characters")),
    *(("#1", "a name"), ("7", "a name"), (" #12 ", "a name")),
    *(("prices", "that no other session has"), ("5e55-0001", "that no other session has")),
]


async def test_a_nickname_that_refers_to_something_else_or_is_blank_is_refused(
    orchestrator: Orchestrator, subtests: pytest.Subtests
) -> None:
    for nickname, allowed in REFUSED_NAMES:
        with subtests.test(nickname=nickname, allowed=allowed):
            refused = await set_nickname(orchestrator, "basket", nickname)
            assert refused["error"]["code"] == "INVALID_REQUEST"
            assert allowed in refused["error"]["details"]


async def test_a_nickname_may_be_a_sessions_own_name_and_blanks_around_it_are_removed(
    orchestrator: Orchestrator,
) -> None:
    for given in ("basket", "  Auth Design "):
        named = await set_nickname(orchestrator, "basket", given)
        assert named["channel"]["nickname"] == given.strip()


async def test_a_nickname_is_found_in_any_case(orchestrator: Orchestrator) -> None:
    await set_nickname(orchestrator, "basket", "Élan")
    for given in ("Élan", "ÉLAN", "élan"):
        assert (await fetch(orchestrator, given))["session"]["channel"] == "basket"
        assert (await set_nickname(orchestrator, "prices", given))["error"]["code"] == "INVALID_REQUEST"


async def test_an_old_nickname_that_looks_like_a_number_is_kept_and_the_number_means_the_place(
    orchestrator: Orchestrator, database_url: str
) -> None:
    registry = Registry(database_url)
    renamed = update(channel).where(channel.c.name == "basket").values(nickname="#1")
    await registry.write(lambda tx: tx.execute(renamed))
    registry.close()

    kept = await set_nickname(orchestrator, "basket", "#1", tags=["shop"])
    assert (kept["channel"]["nickname"], kept["channel"]["tags"]) == ("#1", ["shop"])
    assert (await fetch(orchestrator, "#1"))["session"]["channel"] == "prices"


async def test_places_in_the_list_count_from_one(orchestrator: Orchestrator) -> None:
    answer = await fetch(orchestrator, "#0")
    assert answer["error"]["code"] == "NOT_FOUND"
    assert "counting starts at 1" in answer["error"]["details"]
