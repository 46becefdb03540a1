"""Test that answers include what clients have just written, without an explicit sync."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from cli.incoming.hook import spool_record
from mcp_server.server import create_server
from orchestrator.opening import open_orchestrator
from orchestrator.sync.spool import append
from registry.access import Access, Level
from registry.settings import Settings
from sources.base import FoundSession, Skipped
from sources.claude_code.reader import ClaudeCode
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, write

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("migrated_home")]

ASK = {"operation": "extract", "query": {"text": "basket items"}}


def talk() -> Dialogue:
    dialogue = Dialogue(session_id(1))
    dialogue.user("Why does the basket lose its items?")
    dialogue.says("It makes a new list each time.", "msg_1")
    return dialogue


async def test_an_answer_includes_messages_written_just_before(empty_home: Path) -> None:
    write(empty_home / ".claude", talk())
    async with open_orchestrator(Settings()) as orchestrator:
        found = await orchestrator.run(ASK)
    assert [message["text"] for message in found["messages"]] == [
        "Why does the basket lose its items?",
        "It makes a new list each time.",
    ]


async def test_a_question_does_not_wait_for_a_long_sync_and_a_later_one_finds_its_messages(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(empty_home / ".claude", talk())
    monkeypatch.setattr("orchestrator.sync.sync.MAX_FIRST_WAIT_S", 0.0)
    monkeypatch.setattr("orchestrator.sync.sync.MAX_WAIT_S", 0.0)
    is_answered, read = threading.Event(), ClaudeCode.sessions

    def slowly(reader: ClaudeCode, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        is_answered.wait()
        yield from read(reader, store, seen)

    monkeypatch.setattr(ClaudeCode, "sessions", slowly)
    async with open_orchestrator(Settings()) as orchestrator:
        answers: list[dict[str, Any]] = [await orchestrator.run(ASK)]
        is_answered.set()
        while not answers[-1]["success"]:
            await asyncio.sleep(0.01)
            answers.append(await orchestrator.run(ASK))
    assert answers[0]["error"]["code"] == "NOT_FOUND"


async def test_a_question_about_now_finds_messages_written_after_a_running_sync_read_the_file(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(empty_home / ".claude", talk())
    has_read, may_go_on, read = threading.Event(), threading.Event(), ClaudeCode.sessions

    def early(reader: ClaudeCode, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        found = list(read(reader, store, seen))
        has_read.set()
        may_go_on.wait(60)
        yield from found

    monkeypatch.setattr("orchestrator.sync.sync.MAX_FIRST_WAIT_S", 60.0)
    monkeypatch.setattr(ClaudeCode, "sessions", early)
    async with open_orchestrator(Settings()) as orchestrator:
        assert orchestrator.before_reading
        earlier = asyncio.ensure_future(orchestrator.before_reading(False))
        await asyncio.to_thread(has_read.wait, 60)
        later = talk()
        later.user("And for guests?")
        write(empty_home / ".claude", later)
        now = asyncio.ensure_future(orchestrator.before_reading(True))
        await asyncio.sleep(0)
        may_go_on.set()
        await asyncio.gather(earlier, now)
        found = await orchestrator.registry.read(lambda tx: tx.exec_driver_sql("SELECT text FROM conversation").all())
    assert ("And for guests?",) in found


async def test_a_shared_registry_does_not_import_a_persons_folders(empty_home: Path, postgres_url: str) -> None:
    write(empty_home / ".claude", talk())
    async with open_orchestrator(Settings(database_url=postgres_url)) as orchestrator:
        assert (await orchestrator.run(ASK))["error"]["code"] == "NOT_FOUND"


async def test_messages_written_after_an_answer_are_in_the_next_one(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.sync.sync.PAUSE_FACTOR", 0)
    monkeypatch.setattr("orchestrator.sync.sync.MAX_WAIT_S", 20.0)
    async with open_orchestrator(Settings()) as orchestrator:
        assert not (await orchestrator.run(ASK))["success"]
        write(empty_home / ".claude", talk())
        assert (await orchestrator.run(ASK))["success"]


async def test_a_new_chat_is_named_by_the_id_that_its_hooks_send(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.sync.sync.PAUSE_FACTOR", 1e6)
    settings = Settings()
    async with open_orchestrator(settings) as orchestrator:
        await orchestrator.run(ASK)
        told = {"session_id": "chat-7", "prompt": "Call this one basket-bug.", "cwd": "/home/ann/shop"}
        append(str(settings.home), spool_record("claude-code", "UserPromptSubmit", told, time.time()))
        named = await orchestrator.run({"operation": "tag", "channel": "chat-7", "query": {"nickname": "basket-bug"}})
    assert named["channel"]["nickname"] == "basket-bug"


async def test_during_the_first_import_every_answer_has_its_progress(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(empty_home / ".claude", talk())
    go_on = threading.Event()

    class Slow(ClaudeCode):
        def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
            go_on.wait(20)
            yield from super().sessions(store, seen)

    monkeypatch.setattr("orchestrator.opening.READERS", (Slow(),))
    monkeypatch.setattr("orchestrator.sync.sync.MAX_FIRST_WAIT_S", 0.0)
    monkeypatch.setattr("orchestrator.sync.sync.PAUSE_FACTOR", 0)
    async with open_orchestrator(Settings()) as orchestrator:
        say = {"role": "user", "text": "The basket items"}
        await orchestrator.run({"operation": "save", "channel": "c", "messages": [say]})
        async with Client(create_server(orchestrator.run, ("all",))) as client:

            async def call(tool: str, **arguments: Any) -> dict[str, Any]:
                return (await client.call_tool(tool, arguments)).structured_content or {}

            early = await call("extract", query="basket items")
            listed = await call("list_sessions")
            nothing = await call("extract", query="zebra")
            some = Access("ann", Level.READ, ("c",), ())
            seen = await orchestrator.run({"operation": "list", "query": {}}, access=some)
            go_on.set()
            monkeypatch.setattr("orchestrator.sync.sync.MAX_FIRST_WAIT_S", 20.0)
            later = await call("extract", query="basket items")
    assert early["result"]["metadata"]["syncing"] == listed["result"]["syncing"] == {"done": 0, "left": 1}
    assert "syncing" not in seen, "a restricted token does not see the import of others"
    assert "1 of 1 histories on this machine are still being read" in nothing["error"]["details"]
    assert "syncing" not in later["result"]["metadata"]
