"""Test impossible times (years 1, 2099, 9999): no message is lost, and none is listed as the newest."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from orchestrator.service import Orchestrator
from orchestrator.sync.sync import sync
from registry.domain import Message, Role, Session
from sources.base import FoundSession, Paths, Skipped, Source
from sources.exports.reader import exports_in
from sources.readers import READERS
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, write
from tests.sources.exports.export_files import claude_chat, claude_files

pytestmark = pytest.mark.anyio

WRONG = ["9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00.000Z", "2099-05-04T09:00:00.000Z"]


def log(*messages: tuple[str, str | None], channel: str = "chat") -> dict[str, Any]:
    sent = [{"role": "user", "text": text, **({"timestamp": at} if at else {})} for text, at in messages]
    return {"operation": "conversation_log", "channel": channel, "messages": sent}


async def newest(orchestrator: Orchestrator) -> list[str]:
    answer = await orchestrator.run({"operation": "list", "query": {}})
    return [session["channel"] for session in answer["sessions"]]


async def test_conversations_with_a_wrong_time_are_imported_with_their_neighbour(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    for number, wrong in enumerate((None, *WRONG), 1):
        talk = Dialogue(session_id(number))
        talk.user(f"Question {number}?")
        talk.says("Answer.", "msg_1")
        talk.user("Thanks.")
        talk.records[1]["timestamp"] = wrong or talk.records[1]["timestamp"]
        write(empty_home / ".claude", talk)
    [report] = await sync(orchestrator, READERS, Paths(empty_home, {}))
    assert (report.parsed, report.new_messages, report.is_complete) == (4, 12, True)
    for session in (await orchestrator.run({"operation": "list", "query": {}}))["sessions"]:
        [_, answer, _] = await orchestrator.registry.get_conversations(session["channel"])
        is_wrong = session["session_id"] != session_id(1)
        if is_wrong:
            assert answer["timestamp"] == "2026-05-04T09:00:10.000Z"
        assert answer["payload"].get("time") == ("inferred" if is_wrong else None)
        assert "time" not in session, "the other times are valid"
    [report] = await sync(orchestrator, READERS, Paths(empty_home, {}))
    assert report.new_messages == 0


async def test_an_export_with_wrong_times_is_imported_whole(orchestrator: Orchestrator, tmp_path: Path) -> None:
    chats = json.loads(claude_files(*map(claude_chat, (1, 2, 3)))["conversations.json"])
    for chat, wrong in zip(chats, WRONG, strict=True):
        for told in (chat, *chat["chat_messages"]):
            told["created_at"] = told["updated_at"] = wrong
    (tmp_path / "conversations.json").write_text(json.dumps(chats))
    with ExitStack() as stack:
        [report] = await sync(orchestrator, exports_in(tmp_path, stack), Paths(tmp_path, {}))
    assert (report.new_messages, report.skipped) == (30, [])


@pytest.mark.parametrize("wrong", WRONG)
async def test_a_message_logged_with_a_wrong_time_gets_the_time_of_receipt(
    orchestrator: Orchestrator, wrong: str
) -> None:
    chat = log(("What is a monad?", wrong), ("And a functor?", wrong), channel="ahead")
    first = await orchestrator.run(chat)
    await orchestrator.run(log(("Hello?", None), channel="later"))
    assert await newest(orchestrator) == ["later", "ahead"]
    again = await orchestrator.run(chat)
    assert (again["stored_ids"], again["new_count"]) == (first["stored_ids"], 0)
    [message, _] = await orchestrator.registry.get_conversations("ahead")
    assert message["timestamp"] == message["received_at"]
    assert message["payload"]["said_at"][4:] == wrong[4:]


async def test_a_search_near_the_year_9999_finds_nothing(orchestrator: Orchestrator) -> None:
    cases: list[dict[str, str]] = [
        {"text": "monad before:0001-01-01"},
        {"text": "monad after:9999-12-31"},
        {"text": "monad before:0001-01-01T00:00:00+14:00"},
        {"text": "monad", "from": "9999-12-31T23:59:59Z"},
        {"text": "monad", "to": "0001-01-01"},
    ]
    await orchestrator.run(log(("What is a monad?", None)))
    for query in cases:
        for operation in ("search", "search_sessions", "extract"):
            answer = await orchestrator.run({"operation": operation, "query": query})
            assert answer.get("error", {"code": "NOT_FOUND"})["code"] == "NOT_FOUND"
            assert not answer.get("messages")
            assert not answer.get("sessions")


@pytest.mark.parametrize("operation", ["list", "search_sessions"])
async def test_an_offset_too_large_for_the_database_is_refused(orchestrator: Orchestrator, operation: str) -> None:
    answer = await orchestrator.run({"operation": operation, "query": {"text": "monad", "offset": 2**63}})
    assert answer["error"]["code"] == "INVALID_REQUEST"
    assert "offset: given 9223372036854775808" in answer["error"]["details"]


class OneBadSession(Source):
    """A reader that finds three conversations, the second of which cannot be stored."""

    name = "one-bad"

    def find(self, paths: Paths) -> Iterator[Path]:
        yield paths.home

    def stamp(self, store: Path) -> str:
        return ""

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        for number in (1, 2, 3):
            at = datetime(2026, 5, 4) if number == 2 else None  # a time without a zone cannot be compared with others
            said = Message(Role.USER, f"Question {number}?", at, more={"native_id": f"m-{number}"})
            yield FoundSession(f"s-{number}", "1", Session(f"s-{number}", (said,)))


async def test_a_conversation_that_cannot_be_stored_does_not_lose_its_neighbours(
    orchestrator: Orchestrator, tmp_path: Path
) -> None:
    [report] = await sync(orchestrator, [OneBadSession()], Paths(tmp_path, {}))
    assert (report.parsed, report.new_messages, report.is_complete) == (2, 2, False)
    assert [one.what for one in report.skipped] == ["s-2"]
