"""Test account exports: importing one repeatedly adds each message once, in the channel of its pushed messages."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from orchestrator.service import Orchestrator
from orchestrator.sync.store_report import StoreReport
from orchestrator.sync.sync import sync
from registry.storage.conversations.channels import list_channels
from registry.storage.paging import Page
from registry.storage.records.executions import list_executions
from sources.base import Paths
from sources.exports.reader import exports_in
from tests.sources.exports.export_files import (
    ChatGptChat,
    ClaudeChat,
    an_id,
    chatgpt_chat,
    chatgpt_files,
    claude_chat,
    claude_files,
    write_zip,
)

pytestmark = pytest.mark.anyio


async def bring_in(orchestrator: Orchestrator, path: Path) -> StoreReport:
    with ExitStack() as stack:
        [report] = await sync(orchestrator, exports_in(path, stack), Paths(path.parent, {}))
    return report


async def channels(orchestrator: Orchestrator) -> list[dict[str, Any]]:
    page = await orchestrator.registry.read(lambda tx: list_channels(tx, {}, Page(limit=100)))
    return list(page["items"])


async def messages(orchestrator: Orchestrator, channel: str) -> list[dict[str, Any]]:
    return list(await orchestrator.registry.get_conversations(channel, limit=1000))


async def test_an_exported_conversation_is_found_by_its_words(orchestrator: Orchestrator, tmp_path: Path) -> None:
    report = await bring_in(orchestrator, write_zip(tmp_path / "x.zip", claude_files(claude_chat())))
    assert (report.source, report.seen, report.parsed, report.new_messages) == ("claude", 1, 1, 10)
    found = await orchestrator.run({"operation": "extract", "query": {"text": "basket lose items"}})
    assert found["messages"][0]["text"] == "Why does the basket lose its items?"
    [channel] = await channels(orchestrator)
    assert (channel["source"], channel["session_id"], channel["title"]) == ("claude", an_id(1), "Baskets")
    assert channel["channel"] == "claude_session_20260504_090010"
    runs = await orchestrator.registry.read(lambda tx: list_executions(tx, {"operation": "import"}, Page()))
    assert runs["total"] == 1


async def test_a_regenerated_answer_stays_in_the_turn_of_its_question(
    orchestrator: Orchestrator, tmp_path: Path
) -> None:
    await bring_in(orchestrator, write_zip(tmp_path / "x.zip", chatgpt_files(chatgpt_chat())))
    found = await orchestrator.run({"operation": "extract", "query": {"text": "cache", "limit": 4}})
    texts = [message["text"] for message in found["messages"]]
    assert "Why does the basket lose its items?" in texts
    assert "It is the cache." in texts
    assert texts[:2] == ["Why does the basket lose its items?", "It is the cache."]


async def test_the_same_export_is_not_read_again(orchestrator: Orchestrator, tmp_path: Path) -> None:
    path = write_zip(tmp_path / "x.zip", chatgpt_files(chatgpt_chat()))
    await bring_in(orchestrator, path)
    with ExitStack() as stack:
        [export] = exports_in(path, stack)
        read: list[int] = []
        export.on_read = read.append
        [report] = await sync(orchestrator, [export], Paths(tmp_path, {}))
    assert (report.seen, report.parsed, report.new_messages, read) == (1, 0, 0, [])


async def test_a_newer_export_adds_messages_and_removes_none(orchestrator: Orchestrator, tmp_path: Path) -> None:
    deleted, kept, grown = (chatgpt_chat(number) for number in (1, 2, 3))
    older = write_zip(tmp_path / "older.zip", chatgpt_files(deleted, kept, grown))
    await bring_in(orchestrator, older)
    grown.asks("And the tests?")
    grown.title = "Baskets and tests"
    newer = write_zip(tmp_path / "newer.zip", chatgpt_files(kept, grown, chatgpt_chat(4)))
    report = await bring_in(orchestrator, newer)
    assert (report.seen, report.parsed, report.new_messages) == (4, 2, 10)
    counts = {item["session_id"]: item["message_count"] for item in await channels(orchestrator)}
    assert counts == {an_id(1): 9, an_id(2): 9, an_id(3): 10, an_id(4): 9}
    assert (await bring_in(orchestrator, older)).parsed == 0
    titles = {item["session_id"]: item["title"] for item in await channels(orchestrator)}
    assert titles[an_id(3)] == "Baskets and tests"


async def test_an_export_in_another_format_adds_to_the_same_conversations(
    orchestrator: Orchestrator, tmp_path: Path
) -> None:
    chats = [chatgpt_chat(number) for number in range(5)]
    await bring_in(orchestrator, write_zip(tmp_path / "x.zip", chatgpt_files(*chats)))
    report = await bring_in(orchestrator, write_zip(tmp_path / "y.zip", chatgpt_files(*chats, shards=2)))
    assert (report.parsed, report.new_messages) == (0, 0)


@pytest.mark.parametrize("source", ["claude", "chatgpt"])
async def test_a_conversation_that_was_logged_by_the_tool_stays_one_channel(
    orchestrator: Orchestrator, tmp_path: Path, source: str
) -> None:
    chat: Any = ClaudeChat() if source == "claude" else ChatGptChat()
    talk = ["Why does the basket lose its items?", "It makes a new list.", "Fix it, please.", "Done."]
    for question, answer in zip(talk[::2], talk[1::2], strict=True):
        chat.asks(question)
        chat.answers(answer)
    pushed = [
        {"role": role, "text": text, "timestamp": f"2026-05-04T09:00:{10 * place:02}Z"}
        for place, (role, text) in enumerate(zip(["user", "assistant"] * 2, talk, strict=True))
    ]
    name = f"{source}_session_mine"
    logged = {"operation": "save", "channel": name, "messages": pushed, "source": source}
    await orchestrator.run(logged)
    chat.asks("And the tests?")
    files = claude_files(chat) if source == "claude" else chatgpt_files(chat)
    report = await bring_in(orchestrator, write_zip(tmp_path / "x.zip", files))
    assert report.new_messages == 1
    [channel] = await channels(orchestrator)
    assert (channel["channel"], channel["session_id"]) == (name, an_id(1))
    assert [message["text"] for message in await messages(orchestrator, name)] == [*talk, "And the tests?"]
    again = await orchestrator.run(logged)
    assert again["new_count"] == 0


async def test_a_conversation_deleted_by_the_user_does_not_come_back(
    orchestrator: Orchestrator, tmp_path: Path
) -> None:
    chat = claude_chat()
    await bring_in(orchestrator, write_zip(tmp_path / "x.zip", claude_files(chat)))
    [channel] = await channels(orchestrator)
    await orchestrator.run({"operation": "delete", "channel": channel["channel"], "query": {"soft": True}})
    await bring_in(orchestrator, write_zip(tmp_path / "y.zip", claude_files(chat)))
    assert await channels(orchestrator) == []


async def test_a_damaged_export_is_read_again_and_a_whole_one_completes_it(
    orchestrator: Orchestrator, tmp_path: Path
) -> None:
    files = chatgpt_files(chatgpt_chat(1), chatgpt_chat(2))
    cut = {**files, "conversations.json": files["conversations.json"][:-50]}
    torn = write_zip(tmp_path / "torn.zip", cut)
    first, second = await bring_in(orchestrator, torn), await bring_in(orchestrator, torn)
    assert (first.parsed, first.skipped_count, second.parsed, second.skipped_count) == (1, 2, 0, 2)
    assert (await bring_in(orchestrator, write_zip(tmp_path / "whole.zip", files))).parsed == 1
