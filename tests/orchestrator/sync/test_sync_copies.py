"""Test conversations that Cursor stores in several places: each is imported once, in any order of reading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator.service import Orchestrator
from orchestrator.sync.drain import drain
from orchestrator.sync.spool import append
from orchestrator.sync.store_report import StoreReport
from orchestrator.sync.sync import sync
from registry.storage.conversations.channels import list_channels
from registry.storage.paging import Page
from sources.base import Paths
from sources.readers import READERS
from tests.sources.cursor.cursor_files import CursorFiles
from tests.sources.cursor.cursor_files import answered as bubble_answered
from tests.sources.cursor.cursor_files import asked as bubble_asked
from tests.sources.cursor_agent.cursor_agent_files import (
    CWD,
    START_MS,
    AgentFiles,
    agent_id,
    answered,
    asked,
    entry,
    mirror,
    text,
    working_session,
)

pytestmark = pytest.mark.anyio

QUESTION, ANSWER = "Why does the basket lose its items?", "It makes a new list."
WHOLE = [
    *("Let me look.", "I will read it.", "Read basket.py\n\n     1|return []", "Shell pytest\n\n1 failed", ANSWER),
]


@pytest.fixture
def cursor(empty_home: Path) -> AgentFiles:
    return AgentFiles(empty_home / ".cursor")


@pytest.fixture
def ide(empty_home: Path) -> CursorFiles:
    return CursorFiles(empty_home / ".config" / "Cursor" / "User")


async def run_sync(orchestrator: Orchestrator, home: Path, *names: str) -> dict[str, StoreReport]:
    readers = [reader for reader in READERS if reader.name in names or not names]
    return {report.source: report for report in await sync(orchestrator, readers, Paths(home, {}))}


async def only_channel(orchestrator: Orchestrator) -> dict[str, Any]:
    page = await orchestrator.registry.read(lambda tx: list_channels(tx, {}, Page(limit=100)))
    [channel] = page["items"]
    return dict(channel)


EVERYBODY = ["user", "assistant", "tool", "thinking"]


async def spoken(orchestrator: Orchestrator) -> list[str]:
    """Return the texts of the only channel in order, without injected ones."""
    channel = await only_channel(orchestrator)
    messages = await orchestrator.registry.get_conversations(channel["channel"], limit=1000)
    return [each["text"] for each in messages if each["role"] != "system"]


async def test_a_conversation_of_the_command_line_is_found_from_any_folder(
    orchestrator: Orchestrator, empty_home: Path, cursor: AgentFiles
) -> None:
    cursor.chat(1, *working_session())
    cursor.transcript(1, *mirror())
    assert (await run_sync(orchestrator, empty_home))["cursor-agent"].parsed == 1
    channel = await only_channel(orchestrator)
    assert (channel["source"], channel["session_id"]) == ("cursor-agent", agent_id(1))
    found = await orchestrator.run({"operation": "extract", "query": {"text": "basket items", "roles": EVERYBODY}})
    assert [message["text"] for message in found["messages"]] == [QUESTION, *WHOLE]


async def test_a_transcript_yields_to_the_database(
    orchestrator: Orchestrator, empty_home: Path, cursor: AgentFiles
) -> None:
    cursor.transcript(1, *mirror())
    await run_sync(orchestrator, empty_home)
    assert await spoken(orchestrator) == [QUESTION, "I will read it.", f"Read {CWD}/basket.py", "Shell pytest", ANSWER]

    cursor.chat(1, *working_session())
    await run_sync(orchestrator, empty_home)
    assert await spoken(orchestrator) == [QUESTION, *WHOLE]
    assert (await only_channel(orchestrator))["message_count"] == 8
    cursor.transcript(1, *mirror(), *mirror()[-1:])
    await run_sync(orchestrator, empty_home)
    assert await spoken(orchestrator) == [QUESTION, *WHOLE]
    found = await orchestrator.run({"operation": "extract", "query": {"text": "pytest", "roles": EVERYBODY}})
    assert [each["text"] for each in found["messages"]] == [QUESTION, *WHOLE]


async def test_a_transcript_adds_turns_that_the_database_has_lost(
    orchestrator: Orchestrator, empty_home: Path, cursor: AgentFiles
) -> None:
    store = cursor.chat(1, *working_session())
    cursor.describe(store.parent, title="The basket")
    await run_sync(orchestrator, empty_home)
    store.write_bytes(b"no database" * 500)
    newer = [entry("user", text("Fix it")), entry("assistant", text("Fixed."))]
    cursor.transcript(1, *mirror(), *newer)
    await run_sync(orchestrator, empty_home)
    assert await spoken(orchestrator) == [QUESTION, *WHOLE, "Fix it", "Fixed."]

    store.unlink()
    cursor.chat(1, *working_session(), asked("Fix it"), answered(text("Fixed.")), name="The basket")
    await run_sync(orchestrator, empty_home)
    assert await spoken(orchestrator) == [QUESTION, *WHOLE, "Fix it", "Fixed."]
    channel = await only_channel(orchestrator)
    assert channel["title"] == "The basket"
    messages = await orchestrator.registry.get_conversations(channel["channel"], limit=100)
    assert not [each for each in messages if str(each["payload"].get("native_id")).startswith("copy:")]


@pytest.mark.parametrize("first", ["cursor", "cursor-agent"])
async def test_a_conversation_in_the_ide_is_not_doubled_by_its_transcript(
    orchestrator: Orchestrator, empty_home: Path, cursor: AgentFiles, ide: CursorFiles, first: str
) -> None:
    bubbles = [bubble_asked("b-1", QUESTION), bubble_answered("b-2", "I will read it."), bubble_answered("b-3", ANSWER)]
    ide.conversation(agent_id(1), *bubbles, createdAt=START_MS, lastUpdatedAt=START_MS + 600_000, name="Basket")
    cursor.transcript(1, *mirror())
    await run_sync(orchestrator, empty_home, first)
    await run_sync(orchestrator, empty_home)
    assert await spoken(orchestrator) == [QUESTION, "I will read it.", ANSWER]
    channel = await only_channel(orchestrator)
    assert (channel["source"], channel["title"]) == ("cursor", "Basket")
    messages = await orchestrator.registry.get_conversations(channel["channel"], limit=100)
    assert {each["source"] for each in messages} == {"cursor"}


async def test_a_conversation_in_the_ide_and_in_the_agents_database_is_one(
    orchestrator: Orchestrator, empty_home: Path, cursor: AgentFiles, ide: CursorFiles
) -> None:
    ide.conversation(agent_id(1), bubble_asked("b-1", QUESTION), bubble_answered("b-2", ANSWER))
    cursor.chat(1, *working_session(), asked("Fix it"), answered(text("Fixed.")))
    for _ in range(2):
        await run_sync(orchestrator, empty_home)
        assert await spoken(orchestrator) == [QUESTION, ANSWER, "Fix it", "Fixed."]
        cursor.describe(next(cursor.root.glob("chats/*/*")), title="Changed")
    ide.conversation(agent_id(1))  # a record without bubbles: messages deleted by the client are kept
    await run_sync(orchestrator, empty_home)
    assert await spoken(orchestrator) == [QUESTION, ANSWER, "Fix it", "Fixed."]


async def test_words_said_twice_stay_two_when_the_database_is_read(
    orchestrator: Orchestrator, empty_home: Path, cursor: AgentFiles
) -> None:
    twice = [asked("continue"), answered(text("Done."))] * 2
    copied = [entry("user", text("continue")), entry("assistant", text("Done."))] * 2
    cursor.chat(1, *twice[:2])
    await run_sync(orchestrator, empty_home)
    next(cursor.root.glob("chats/*/*/store.db")).write_bytes(b"no database" * 500)
    cursor.transcript(1, *copied)
    await run_sync(orchestrator, empty_home)
    assert await spoken(orchestrator) == ["continue", "Done."] * 2
    next(cursor.root.glob("chats/*/*/store.db")).unlink()
    cursor.chat(1, *twice)
    await run_sync(orchestrator, empty_home)
    assert await spoken(orchestrator) == ["continue", "Done."] * 2


@pytest.mark.both_databases
async def test_messages_that_a_hook_told_are_not_doubled_by_transcript_or_database(
    orchestrator: Orchestrator, tmp_path: Path, empty_home: Path, cursor: AgentFiles
) -> None:
    for event, told in (("beforeSubmitPrompt", {"prompt": QUESTION}), ("afterAgentResponse", {"text": ANSWER})):
        payload = {"conversation_id": agent_id(1), "generation_id": "g1", **told}
        append(str(tmp_path), {"source": "cursor-agent", "event": event, "at": START_MS / 1000, "payload": payload})
    await drain(orchestrator, tmp_path)
    assert await spoken(orchestrator) == [QUESTION, ANSWER]
    cursor.transcript(1, *mirror())
    await run_sync(orchestrator, empty_home)
    calls = ["I will read it.", f"Read {CWD}/basket.py", "Shell pytest"]
    assert sorted(await spoken(orchestrator)) == sorted([QUESTION, ANSWER, *calls])
    cursor.chat(1, *working_session())
    await run_sync(orchestrator, empty_home)
    assert sorted(await spoken(orchestrator)) == sorted([QUESTION, *WHOLE])


async def test_a_conversation_pushed_as_cursor_is_the_one_of_the_agents_database(
    orchestrator: Orchestrator, empty_home: Path, cursor: AgentFiles
) -> None:
    more = "Fix it in the basket, and run the tests of that module again"
    words = [("user", QUESTION), ("assistant", ANSWER), ("user", more), ("assistant", "Fixed.")]
    pushed = [
        {"role": role, "text": words, "timestamp": f"2026-04-27T01:0{minute}:00Z"}
        for minute, (role, words) in enumerate(words, 5)
    ]
    await orchestrator.run({"operation": "save", "channel": "cursor_session_x", "messages": pushed, "source": "cursor"})
    cursor.chat(1, *working_session(), asked(more, "9:07 PM"), answered(text("Fixed.")))
    await run_sync(orchestrator, empty_home)
    assert (await only_channel(orchestrator))["session_id"] == agent_id(1)
    assert sorted(await spoken(orchestrator)) == sorted([QUESTION, *WHOLE, more, "Fixed."])


async def test_a_busy_database_is_read_the_next_time_without_a_change(
    orchestrator: Orchestrator, empty_home: Path, cursor: AgentFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sources.kit.sqlite_store import BusyDatabase, ClientDatabase

    cursor.chat(1, *working_session())
    with monkeypatch.context() as busy:

        def refuse(*_: object) -> None:
            raise BusyDatabase("store.db is locked by another program.", "locked")

        busy.setattr(ClientDatabase, "_open", refuse)
        report = (await run_sync(orchestrator, empty_home))["cursor-agent"]
        assert (report.parsed, report.is_complete) == (0, False)
        assert "1 conversation in use" in report.skipped[0].why
    assert (await run_sync(orchestrator, empty_home))["cursor-agent"].parsed == 1
    assert (await run_sync(orchestrator, empty_home))["cursor-agent"].parsed == 0
