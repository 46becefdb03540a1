"""What a session may be called, and what the names people give mean."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import update

from orchestrator.service import Orchestrator
from registry.registry import Registry
from registry.storage.conversations.references import edit_channel
from registry.storage.tables import channel

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
async def two(orchestrator: Orchestrator) -> None:
    """Two sessions; the later one has a native id."""
    for day, name, meta in ((1, "basket", {}), (2, "prices", {"session_id": "5e55-0001"})):
        message = {"role": "user", "text": f"about {name}", "timestamp": f"2026-01-0{day}T12:00:00Z"}
        await orchestrator.run(
            {"operation": "save", "channel": name, "messages": [message], "source": "cursor", "metadata": meta}
        )


async def call_it(orchestrator: Orchestrator, name: str, nickname: str, **more: Any) -> dict[str, Any]:
    return await orchestrator.run({"operation": "tag", "channel": name, "query": {"nickname": nickname, **more}})


async def fetch(orchestrator: Orchestrator, reference: str) -> dict[str, Any]:
    return await orchestrator.run({"operation": "fetch", "query": {"session_id": reference}})


async def test_a_tag_that_was_stored_with_spaces_is_removed_by_its_word(orchestrator: Orchestrator) -> None:
    registry = orchestrator.registry
    await registry.write(lambda tx: edit_channel(tx, "basket", {}, [" api", "web"]))
    query = {"remove_tags": ["api"]}
    answer = await orchestrator.run({"operation": "tag", "channel": "basket", "query": query})
    assert answer["channel"]["tags"] == ["web"]


REFUSED_NAMES = [
    *(("", "at least 1 character"), ("  ", "at least 1 character"), ("\u200b", "visible characters")),
    *(("a\tb", "no control characters"), ("a\x1b[31m", "no control characters")),
    *(("#1", "a name"), ("7", "a name"), (" #12 ", "a name")),
    *(("prices", "that no other session has"), ("5e55-0001", "that no other session has")),
]


async def test_a_nickname_that_means_something_else_or_nothing_is_refused(
    orchestrator: Orchestrator, subtests: pytest.Subtests
) -> None:
    for nickname, allowed in REFUSED_NAMES:
        with subtests.test(nickname=nickname, allowed=allowed):
            refused = await call_it(orchestrator, "basket", nickname)
            assert refused["error"]["code"] == "INVALID_REQUEST"
            assert allowed in refused["error"]["details"]


async def test_a_nickname_is_kept_without_the_blanks_around_it(orchestrator: Orchestrator) -> None:
    named = await call_it(orchestrator, "basket", "  Auth Design ")
    assert named["channel"]["nickname"] == "Auth Design"


@pytest.mark.parametrize("given", ["Élan", "ÉLAN", "élan"])
async def test_a_nickname_is_found_in_capitals_or_not(orchestrator: Orchestrator, given: str) -> None:
    await call_it(orchestrator, "basket", "Élan")
    assert (await fetch(orchestrator, given))["session"]["channel"] == "basket"
    assert (await call_it(orchestrator, "prices", given))["error"]["code"] == "INVALID_REQUEST"


async def test_a_session_may_have_its_own_name_as_nickname(orchestrator: Orchestrator) -> None:
    assert (await call_it(orchestrator, "basket", "basket"))["success"]


async def test_a_nickname_of_before_stays_but_a_place_in_the_list_is_a_place(
    orchestrator: Orchestrator, database_url: str
) -> None:
    registry = Registry(database_url)
    renamed = update(channel).where(channel.c.name == "basket").values(nickname="#1")
    await registry.write(lambda tx: tx.execute(renamed))
    registry.close()

    kept = await call_it(orchestrator, "basket", "#1", tags=["shop"])
    assert (kept["channel"]["nickname"], kept["channel"]["tags"]) == ("#1", ["shop"])
    assert (await fetch(orchestrator, "#1"))["session"]["channel"] == "prices"


async def test_places_are_counted_from_one(orchestrator: Orchestrator) -> None:
    answer = await fetch(orchestrator, "#0")
    assert answer["error"]["code"] == "NOT_FOUND"
    assert "counting starts at 1" in answer["error"]["details"]
