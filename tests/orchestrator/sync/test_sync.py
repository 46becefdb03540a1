"""Test the import of clients' histories: each message once, whatever its origin, kept when the client deletes it."""

from __future__ import annotations

import asyncio
import gc
import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.service import Orchestrator
from orchestrator.sync.store_report import StoreReport
from orchestrator.sync.sync import sync
from registry.errors import StorageError
from registry.storage.client_stores import list_stores
from registry.storage.conversations.channels import list_channels
from registry.storage.paging import Page
from registry.storage.records.executions import list_executions
from sources.base import Paths
from sources.readers import READERS
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, working_session, write, write_agent
from tests.sources.copilot import copilot_files
from tests.sources.cursor.cursor_files import CursorFiles, answered, asked
from tests.sources.gemini import gemini_files
from tests.sources.opencode import opencode_files

pytestmark = pytest.mark.anyio


@pytest.fixture
def claude(empty_home: Path) -> Path:
    return empty_home / ".claude"


async def run_sync(orchestrator: Orchestrator, home: Path) -> dict[str, StoreReport]:
    reports = await sync(orchestrator, READERS, Paths(home, {}))
    return {report.source: report for report in reports}


async def channels(orchestrator: Orchestrator) -> list[dict[str, Any]]:
    page = await orchestrator.registry.read(lambda tx: list_channels(tx, {}, Page(limit=100)))
    return list(page["items"])


HELLO = [{"role": "user", "text": "Hello."}, {"role": "assistant", "text": "Hello, what is it?"}]


async def texts(orchestrator: Orchestrator, channel: str, *roles: str) -> list[str]:
    messages = await orchestrator.registry.get_conversations(channel, limit=1000)
    return [message["text"] for message in messages if message["role"] in (roles or (message["role"],))]


def two_turns(number: int = 7) -> Dialogue:
    talk = Dialogue(session_id(number))
    talk.user("Why does the basket lose its items?")
    talk.says("It makes a new list each time.", "msg_1")
    talk.user("Fix it, please.")
    talk.says("Done: the list is kept now.", "msg_2")
    return talk


async def test_sessions_of_claude_code_and_cursor_are_found_from_any_folder(
    orchestrator: Orchestrator, empty_home: Path, claude: Path
) -> None:
    write(claude, working_session())
    cursor = CursorFiles(empty_home / ".config" / "Cursor" / "User")
    cursor.conversation("c-1", asked("b-1", "How do I memoize fibonacci?"), answered("b-2", "With lru_cache."))
    reports = await run_sync(orchestrator, empty_home)
    assert {name: report.parsed for name, report in reports.items()} == {"claude-code": 1, "cursor": 1}
    found = await orchestrator.run({"operation": "extract", "query": {"text": "fibonacci memoize"}})
    assert [message["text"] for message in found["messages"]] == ["How do I memoize fibonacci?", "With lru_cache."]
    [basket] = [item for item in await channels(orchestrator) if item["source"] == "claude-code"]
    assert (basket["session_id"], basket["project_path"]) == (session_id(1), "/home/ann/shop")
    assert basket["channel"].startswith("claude-code_session_20260504_0900")
    assert await texts(orchestrator, basket["channel"], "tool") != []


async def test_a_second_sync_reads_nothing_and_a_longer_session_adds_only_its_end(
    orchestrator: Orchestrator, empty_home: Path, claude: Path
) -> None:
    talk = two_turns()
    write(claude, talk)
    assert (await run_sync(orchestrator, empty_home))["claude-code"].new_messages == 4
    again = (await run_sync(orchestrator, empty_home))["claude-code"]
    assert (again.seen, again.parsed, again.new_messages) == (1, 0, 0)
    talk.user("And the tests?")
    write(claude, talk)
    grown = (await run_sync(orchestrator, empty_home))["claude-code"]
    assert (grown.parsed, grown.new_messages) == (1, 1)
    runs = await orchestrator.registry.read(lambda tx: list_executions(tx, {"operation": "import"}, Page()))
    assert runs["total"] == 2


async def test_an_answer_read_while_streaming_is_completed_and_not_doubled(
    orchestrator: Orchestrator, empty_home: Path, claude: Path
) -> None:
    talk = two_turns()
    talk.records[-1]["message"]["content"][0]["text"] = "Done: the li"
    write(claude, talk)
    await run_sync(orchestrator, empty_home)
    write(claude, two_turns())
    await run_sync(orchestrator, empty_home)
    [channel] = await channels(orchestrator)
    assert (await texts(orchestrator, channel["channel"]))[-1] == "Done: the list is kept now."
    assert channel["message_count"] == 4
    found = await orchestrator.run({"operation": "extract", "query": {"text": "list kept"}})
    assert found["messages"][-1]["text"] == "Done: the list is kept now."


async def test_a_call_read_while_it_ran_gets_its_outcome_although_it_printed_nothing(
    orchestrator: Orchestrator, empty_home: Path, claude: Path
) -> None:
    talk = two_turns()
    talk.calls("Bash", {"command": "git add -A"}, "c1", "msg_3")
    write(claude, talk)
    await run_sync(orchestrator, empty_home)
    talk.result("c1", "")
    write(claude, talk)
    await run_sync(orchestrator, empty_home)
    [channel] = await channels(orchestrator)
    *_, call = await orchestrator.registry.get_conversations(channel["channel"], limit=1000)
    assert (call["text"], call["payload"]["tool"]["status"]) == ("Bash git add -A", "completed")


async def undone_of(orchestrator: Orchestrator) -> list[str]:
    """Return the texts of the only channel's undone messages, and check that others answer instead of them."""
    [channel] = await channels(orchestrator)
    fetched = await orchestrator.run({"operation": "fetch", "query": {"session_id": channel["channel"]}})
    stored = await orchestrator.registry.get_conversations(channel["channel"], limit=1000)
    undone = [message["text"] for message in stored if message["payload"].get("superseded")]
    assert not any(text in fetched["session"]["summary"] for text in undone)
    for query in ({"text": "continue the conversation about the basket"}, {}, {"text": "delete basket", "limit": 2}):
        found = await orchestrator.run({"operation": "extract", "channel": channel["channel"], "query": query})
        assert not {message["text"] for message in found["messages"]}.intersection(undone)
        assert query or "left_out" not in found["metadata"]
        assert not any(text in str(found["stands_at"]) for text in undone if "stands_at" in found)
    return undone


async def test_a_turn_is_marked_when_it_is_rewound_after_it_was_read(
    orchestrator: Orchestrator, empty_home: Path, claude: Path
) -> None:
    talk = two_turns()
    write(claude, talk)
    await run_sync(orchestrator, empty_home)
    before = talk.records[1]["uuid"]
    talk.user("Leave it, please.", parentUuid=before)
    talk.says("Left as it was.", "msg_3")
    write(claude, talk)
    await run_sync(orchestrator, empty_home)
    assert await undone_of(orchestrator) == ["Fix it, please.", "Done: the list is kept now."]
    write(claude, two_turns())  # valid again after the client undoes the rewind
    await run_sync(orchestrator, empty_home)
    assert await undone_of(orchestrator) == []


@pytest.mark.both_databases
async def test_turns_that_copilot_deletes_when_they_are_undone_are_marked(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    log, root = copilot_files.Log(), empty_home / ".copilot"
    log.start()
    log.user("Why does the basket lose its items?")
    log.answer("It makes a new list each time.")
    log.user("Fix the basket, please.")
    log.answer("Done: the basket is kept now.")
    log.add("hook.end", hookType="userPromptSubmitted")
    log.user("Delete the basket.")
    log.answer("The basket is gone.")
    copilot_files.write_log(root, log)
    await run_sync(orchestrator, empty_home)
    assert await undone_of(orchestrator) == []
    del log.events[-2:]  # undone
    log.add("session.info", infoType="rewind", message="Rewound the conversation. Your files were left unchanged.")
    del log.events[1:3]  # old, and deleted for another reason
    copilot_files.write_log(root, log)
    await run_sync(orchestrator, empty_home)
    undone = ["Delete the basket.", "The basket is gone."]
    assert await undone_of(orchestrator) == undone
    log.user("Leave the basket as it is.")
    copilot_files.write_log(root, log)
    await run_sync(orchestrator, empty_home)
    assert await undone_of(orchestrator) == undone


async def test_a_session_whose_only_turn_was_undone_is_marked_and_no_new_one_is_made(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    stored, never_stored = (copilot_files.Log(copilot_files.session_id(number)) for number in (1, 2))
    for log in (stored, never_stored):
        log.start()
    stored.user("Delete the basket.")
    copilot_files.write_log(empty_home / ".copilot", stored)
    await run_sync(orchestrator, empty_home)
    del stored.events[-1]
    for log in (stored, never_stored):
        log.add("session.info", infoType="rewind")
        copilot_files.write_log(empty_home / ".copilot", log)
    await run_sync(orchestrator, empty_home)
    [channel] = await channels(orchestrator)
    [message] = await orchestrator.registry.get_conversations(channel["channel"])
    assert message["payload"]["superseded"]
    found = await orchestrator.run({"operation": "extract", "query": {"text": "delete the basket"}})
    assert [one["superseded"] for one in found["messages"]] == [True]


async def test_turns_that_opencode_deletes_when_they_are_undone_are_marked(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    talk, root = opencode_files.Dialogue(), empty_home / ".local" / "share" / "opencode"
    talk.user("Why does the basket lose its items?")
    old = talk.answer(opencode_files.text("It makes a new list each time."))
    talk.user("Fix the basket, please.")
    talk.answer(opencode_files.text("Done: the basket is kept now."))
    last = talk.user("Delete the basket."), talk.answer(opencode_files.text("The basket is gone."))
    opencode_files.write_database(root, talk)
    await run_sync(orchestrator, empty_home)
    talk.remove(*last)
    talk.user("Leave the basket as it is.")
    talk.remove(old)  # not by an undo
    talk.user("Thanks for the basket.")
    opencode_files.write_database(root, talk)
    await run_sync(orchestrator, empty_home)
    assert await undone_of(orchestrator) == ["Delete the basket.", "The basket is gone."]


async def test_messages_that_the_client_deletes_are_kept(
    orchestrator: Orchestrator, empty_home: Path, claude: Path
) -> None:
    write(claude, two_turns())
    await run_sync(orchestrator, empty_home)
    shutil.rmtree(claude)
    await run_sync(orchestrator, empty_home)
    [channel] = await channels(orchestrator)
    assert channel["message_count"] == 4


async def test_a_title_given_by_the_user_survives_the_next_sync(
    orchestrator: Orchestrator, empty_home: Path, claude: Path
) -> None:
    talk = two_turns()
    talk.aside("custom-title", customTitle="Basket", sessionId=talk.session_id)
    write(claude, talk)
    await run_sync(orchestrator, empty_home)
    [channel] = await channels(orchestrator)
    await orchestrator.run({"operation": "tag", "channel": channel["channel"], "query": {"title": "Mine"}})
    talk.user("More?")
    write(claude, talk)
    await run_sync(orchestrator, empty_home)
    [channel] = await channels(orchestrator)
    assert (channel["title"], channel["message_count"]) == ("Mine", 5)


async def test_damage_is_reported_by_store_and_the_rest_is_read(
    orchestrator: Orchestrator, empty_home: Path, claude: Path
) -> None:
    file = write(claude, two_turns())
    file.write_bytes(b'{"type": "user", "mess\n' + file.read_bytes())
    report = (await run_sync(orchestrator, empty_home))["claude-code"]
    assert (report.new_messages, report.skipped_count) == (4, 1)
    [store] = await orchestrator.registry.read(list_stores)
    assert (store["source"], store["parsed"], len(store["skipped"])) == ("claude-code", 1, 1)


async def test_a_store_that_cannot_be_read_is_reported_and_stops_nothing(
    orchestrator: Orchestrator, empty_home: Path, claude: Path
) -> None:
    write(claude, two_turns())
    broken = empty_home / ".config" / "Cursor" / "User" / "globalStorage" / "state.vscdb"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"no database" * 1000)
    reports = await run_sync(orchestrator, empty_home)
    assert reports["claude-code"].new_messages == 4
    assert reports["cursor"].skipped[0].what == str(broken)


async def test_sessions_of_gemini_copilot_and_opencode_are_imported_once_each_under_their_own_source(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    gemini_files.write(empty_home / ".gemini", gemini_files.working_chat())
    copilot_files.write_log(empty_home / ".copilot", copilot_files.working_log())
    copilot_files.write_chat(empty_home / ".config" / "Code" / "User", copilot_files.working_chat())
    opencode = empty_home / ".local" / "share" / "opencode"
    opencode_files.write_database(opencode, opencode_files.working_dialogue())

    reports = await run_sync(orchestrator, empty_home)
    again = await run_sync(orchestrator, empty_home)

    assert reports.keys() == {"gemini-cli", "copilot-cli", "copilot-vscode", "opencode"}
    assert not any(report.skipped or report.new_messages for report in again.values())
    found = {(item["channel"].partition("_")[0], item["message_count"]) for item in await channels(orchestrator)}
    with_a_sub_agent = {("copilot-cli", 7), ("copilot-cli", 3)}
    assert found == {("gemini-cli", 10), ("copilot-vscode", 8), ("opencode", 9), *with_a_sub_agent}


async def test_garbage_collection_is_restored_after_a_sync_and_after_one_that_fails(
    orchestrator: Orchestrator, empty_home: Path, claude: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_: object, **_of: object) -> None:
        raise StorageError("Could not write the registry.", "OperationalError: disk I/O error")

    write(claude, two_turns())
    before = gc.get_threshold()
    with monkeypatch.context() as outage:
        outage.setattr(orchestrator.registry, "write", broken)
        with pytest.raises(StorageError):
            await run_sync(orchestrator, empty_home)
    assert gc.get_threshold() == before
    await run_sync(orchestrator, empty_home)
    assert gc.get_threshold() == before


async def test_long_sessions_are_stored_in_small_batches(
    orchestrator: Orchestrator, empty_home: Path, claude: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.sync.sync.BATCH_CHARACTERS", 10_000)
    for number in range(4):
        talk = two_turns(number)
        talk.calls("Read", {"file_path": "/home/ann/shop/a.py"}, f"call_{number}", "msg_3")
        talk.result(f"call_{number}", "x" * 3000)
        write(claude, talk)
    assert (await run_sync(orchestrator, empty_home))["claude-code"].parsed == 4
    runs = await orchestrator.registry.read(lambda tx: list_executions(tx, {"operation": "import"}, Page()))
    assert runs["total"] == 2


async def test_during_a_question_a_sync_stores_in_small_batches(
    orchestrator: Orchestrator, empty_home: Path, claude: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.sync.sync.SHARED_BATCH_MESSAGES", 1)
    for asks, first, total in ((False, 0, 1), (True, 3, 4)):
        for number in range(first, first + 3):
            write(claude, two_turns(number))
        if asks:
            await orchestrator.run({"operation": "list", "query": {}})
        await run_sync(orchestrator, empty_home)
        runs = await orchestrator.registry.read(lambda tx: list_executions(tx, {"operation": "import"}, Page()))
        assert runs["total"] == total


async def test_a_sync_waits_for_callers_that_wait_for_an_answer(
    orchestrator: Orchestrator, empty_home: Path, claude: Path
) -> None:
    write(claude, two_turns())
    asked, answered = asyncio.Event(), asyncio.Event()

    async def slow(_: bool) -> None:
        asked.set()
        await answered.wait()

    orchestrator.before_reading = slow
    waiting = asyncio.create_task(orchestrator.run({"operation": "list", "query": {}}))
    await asked.wait()
    await asyncio.wait_for(orchestrator.yield_to_callers(), 60)  # a caller that waits for this sync is not waited for
    answered.set()
    await waiting
    orchestrator.before_reading = None

    holding, let_go = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        holding.set()
        let_go.wait(60)

    writer = asyncio.create_task(orchestrator.registry.write(hold))
    await asyncio.to_thread(holding.wait, 60)
    logging = asyncio.create_task(
        orchestrator.run({"operation": "conversation_log", "channel": "c", "source": "cursor", "messages": HELLO})
    )
    await asyncio.sleep(0)
    giving_way = asyncio.create_task(orchestrator.yield_to_callers())
    await asyncio.sleep(0)
    assert not giving_way.done()
    let_go.set()
    assert (await logging)["success"]
    await asyncio.gather(giving_way, writer)


async def test_a_sync_reads_after_it_has_waited_for_callers(
    orchestrator: Orchestrator, empty_home: Path, claude: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(claude, two_turns())
    called, quiet = asyncio.Event(), asyncio.Event()

    async def yield_to_callers() -> None:
        called.set()
        await quiet.wait()

    monkeypatch.setattr(orchestrator, "yield_to_callers", yield_to_callers)
    syncing = asyncio.create_task(run_sync(orchestrator, empty_home))
    await asyncio.wait_for(called.wait(), 60)
    assert await channels(orchestrator) == []
    quiet.set()
    assert (await syncing)["claude-code"].new_messages == 4


async def test_two_sub_agents_with_the_same_short_id_stay_two_and_both_can_be_opened(
    orchestrator: Orchestrator, empty_home: Path, claude: Path
) -> None:
    for number in (1, 2, 3):
        work = Dialogue(session_id(number), common={"isSidechain": True, "agentId": "a1b2c3d4"})
        work.user(f"Look for the basket in place {number}.")
        work.says("Nothing there.", f"msg_{number}")
        write_agent(claude, work, "a1b2c3d4")
    for _ in range(2):
        await run_sync(orchestrator, empty_home)
    agents = await channels(orchestrator)
    assert [agent["message_count"] for agent in agents] == [2, 2, 2]
    several = await orchestrator.run({"operation": "fetch", "query": {"session_id": "agent-a1b2c3d4"}})
    assert all(agent["channel"] in several["error"]["details"] for agent in agents)


async def test_a_sub_agent_in_a_copied_session_is_one(
    orchestrator: Orchestrator, empty_home: Path, claude: Path
) -> None:
    work = Dialogue(session_id(1), common={"isSidechain": True, "agentId": "a1b2c3d4"})
    work.user("Look for the basket.")
    write_agent(claude, work, "a1b2c3d4")
    work.says("Found.", "msg_1")
    write_agent(claude, replace(work, session_id=session_id(2)), "a1b2c3d4")
    await run_sync(orchestrator, empty_home)
    [agent] = await channels(orchestrator)
    assert await texts(orchestrator, agent["channel"]) == ["Look for the basket.", "Found."]


async def test_hints_and_candidates_do_not_quote_undone_turns(
    orchestrator: Orchestrator, empty_home: Path, claude: Path
) -> None:
    asked = "HikariPool connection is not available, RefundService.refund calls the PG cancel api in a transaction"
    for number in (7, 8):
        talk = Dialogue(session_id(number))
        talk.user("HikariPool has no connection: RefundService.refund calls the PG cancel api")
        talk.says("Move the HTTP call out of the transaction.", "msg_1")
        before = talk.records[-1]["uuid"]
        talk.user(f"Delete the refund: {asked}")
        talk.says("Deleted.", "msg_2")
        talk.user("Keep it.", parentUuid=before)
        write(claude, talk)
        await run_sync(orchestrator, empty_home)
        hint = await orchestrator.run({"operation": "hint", "query": {"text": asked}})
        assert "Move the HTTP call out of the transaction." in hint["hint"]
        assert "Delete" not in hint["hint"]
    found = await orchestrator.run({"operation": "extract", "query": {"text": asked}})
    assert "Delete" not in str([found["messages"], [one["messages"] for one in found["candidates"]]])
    sessions = await orchestrator.run({"operation": "search_sessions", "query": {"text": asked}})
    marks = [[match.get("superseded") for match in session["matches"]] for session in sessions["sessions"]]
    assert marks == [[None, True], [None, True]], "the valid message comes first"
