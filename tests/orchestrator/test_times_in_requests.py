"""Test hints in a request, such as a date, that decide between equally good conversations, by every tool."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from orchestrator.service import Orchestrator
from registry.domain import new_id
from registry.storage.records.executions import get_execution
from tests.orchestrator.logged import log_texts as log

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.answer.finding.lookup.now", lambda: NOW)


async def first_found(orchestrator: Orchestrator, text: str) -> str:
    """Return the first channel of `extract` and `search_sessions`, which agree."""
    one = await orchestrator.run({"operation": "extract", "query": {"text": text}})
    several = await orchestrator.run({"operation": "search_sessions", "query": {"text": text}})
    assert one["channel"] == several["sessions"][0]["channel"]
    return str(one["channel"])


async def test_of_equally_good_conversations_the_one_of_the_date_is_first(orchestrator: Orchestrator) -> None:
    long = "I want one at home for photos and backups with four bays, quiet, and not too dear: a NAS, which one?"
    await log(orchestrator, "bought", "2026-10-01", long, "Take the one with the slow fan and sixteen gigabytes.")
    await log(orchestrator, "used", "2026-11-14", "the NAS?", "NAS.")
    for text in ("in October about the NAS", "10월에 NAS", "the NAS thing from October"):
        assert await first_found(orchestrator, text) == "bought", text


async def test_a_question_with_a_date_finds_what_was_said_then_without_a_common_word(
    orchestrator: Orchestrator,
) -> None:
    filling = "We spoke at length of buses and bridges, and of the rain on them. " * 4
    for day in ("2026-10-10", "2026-10-12", "2026-10-16", "2026-10-20"):
        await log(
            orchestrator, "diary", day, f"Maria is well. {day}", *[f"{filling} {day} {place}" for place in range(7)]
        )
    then = ["The kiln burst.", "A pity.", "Then lentil soup.", "Good.", "With four others.", "Nice."]
    await log(orchestrator, "diary", "2026-10-14", *then)
    query = {"text": "What did Maria do on 14 October?", "limit": 30}
    answer = await orchestrator.run({"operation": "extract", "channel": "diary", "query": query})
    assert set(then) <= {message["text"] for message in answer["messages"]}


async def test_a_date_alone_does_not_make_an_answer_of_what_was_said_then(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "kiln", "2026-10-14", "The kiln burst.", "A pity.")
    await log(orchestrator, "sourdough", "2026-10-20", "Why is the sourdough so flat?", "The starter is too cold.")
    query = {"text": "what was wrong with the sourdough on 14 October"}
    sessions = (await orchestrator.run({"operation": "search_sessions", "query": query}))["sessions"]
    assert [session["channel"] for session in sessions] == ["sourdough"]


async def test_a_chat_that_only_asked_for_another_is_not_before_it(orchestrator: Orchestrator) -> None:
    long = "Few people open the text messages that we send about their appointments; let us use alimtalk, which costs"
    await log(orchestrator, "meant", "2026-09-15", f"{long} a little more?", "Solapi sends it, and falls back to SMS.")
    await log(orchestrator, "asking", "2026-11-16", "let's continue alimtalk, alimtalk", "I know nothing of it.")
    assert await first_found(orchestrator, "continue alimtalk") == "meant"


async def test_the_relevant_part_of_a_small_conversation_is_marked(orchestrator: Orchestrator) -> None:
    texts = ["The NAS is here. Which layout?", "A mirror.", "And the disks?", "Two of them.", "How loud?", "Not very."]
    texts += ["The pool is called dune.", "Scrub it monthly.", "ok", "Bye."]
    await log(orchestrator, "small", "2026-10-03", *texts)
    request = {"operation": "extract", "channel": "small", "query": {"text": "what is the pool called"}}
    answer = await orchestrator.run(request)
    marked = {message["text"]: message["why"] for message in answer["messages"]}
    assert marked["The pool is called dune."] == "match"
    assert texts[0] not in marked
    assert answer["metadata"]["left_out"]["messages"] == 10 - len(marked)


async def test_a_request_to_continue_may_name_a_time_by_every_tool(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "meant", "2026-10-02", "The reconcile script throws serialization failures", "Retry it.")
    await log(orchestrator, "then", "2026-11-21", "Which tea is good?", "Green.")
    assert await first_found(orchestrator, "continue the reconcile script, it failed again yesterday") == "meant"


async def test_a_folder_with_weak_matches_says_that_another_has_better_ones(orchestrator: Orchestrator) -> None:
    projects = {
        "/home/me/app": ["The token list is long", "Page it."],
        "/home/me/phone": ["Push token lost", "Refresh it."],
    }
    for at, (path, said) in enumerate(projects.items()):
        await log(orchestrator, f"c{at}", "2026-11-01", *said, project=path)
    asked = {"operation": "search_sessions", "query": {"text": "push token refreshing on reinstall"}}
    for path, has_more in {"/home/me/app": True, "/home/me/phone": False}.items():
        found = await orchestrator.run({**asked, "query": {**asked["query"], "project": path}})  # type: ignore[dict-item]
        assert bool(found.get("elsewhere")) is has_more, found


async def test_if_nothing_was_said_on_either_monday_the_latest_conversation_is_named(
    orchestrator: Orchestrator,
) -> None:
    await log(orchestrator, "old", "2026-10-01", "the NAS?", "NAS.")
    answer = await orchestrator.run({"operation": "extract", "query": {"text": "last Monday"}})
    assert "nothing from 2026-11-16" in answer["error"]["details"]


async def test_a_channel_can_be_given_by_its_place_in_the_list(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "old", "2026-10-01", "the NAS?", "NAS.")
    answer = await orchestrator.run({"operation": "extract", "channel": "#1", "query": {}})
    assert answer["channel"] == "old"


async def test_last_tuesday_may_be_the_one_of_last_week_by_every_tool(
    orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.answer.finding.lookup.now", lambda: datetime(2026, 11, 19, 9, tzinfo=UTC))
    await log(orchestrator, "week before", "2026-11-10", "Which NAS is quiet?", "The one with the slow fan.")
    await log(orchestrator, "other day", "2026-11-18", "The NAS is loud.", "Turn the fan down.")
    assert await first_found(orchestrator, "the NAS from last Tuesday") == "week before"


async def test_a_run_names_the_conversation_of_its_answer_and_not_a_later_try(
    orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.answer.finding.lookup.now", lambda: datetime(2026, 11, 19, 9, tzinfo=UTC))
    await log(orchestrator, "that day", "2026-11-17", "The reconcile script throws serialization failures", "Retry it.")
    await log(orchestrator, "week before", "2026-11-10", "Which script feeds the cat?", "None.")
    run = new_id("exec")
    asked = {"operation": "extract", "query": {"text": "the reconcile script serialization from last Tuesday"}}
    answer = await orchestrator.run(asked, None, run)
    recorded = await orchestrator.registry.read(lambda tx: get_execution(tx, run))
    assert answer["channel"] == recorded["channel"] == "that day"
