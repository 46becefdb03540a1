"""A big store is read in a process of its own, and what comes in is the same."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from orchestrator.service import Orchestrator
from orchestrator.sync import reading_ahead
from orchestrator.sync.sync import sync
from registry.domain import Role
from registry.storage.conversations.channels import ChannelFilter, list_channels
from registry.storage.database import ReadTransaction
from registry.storage.index.engines import index_of
from registry.storage.paging import Page
from registry.text.analysis.analyzer import analyze
from sources.base import FoundSession, Places, Skipped
from sources.claude_code.reader import ClaudeCode
from sources.readers import READERS
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, write

pytestmark = pytest.mark.anyio

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2


@pytest.fixture(autouse=True)
def store(empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(reading_ahead, "WORTH_SESSIONS", 3)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    for number in range(3):
        talk = Dialogue(session_id(number))
        talk.user(f"Why does basket {number} lose its items? The key is {KEY}. <private>No.</private>")
        talk.says("It makes a new list each time.", f"msg_{number}")
        write(empty_home / ".claude", talk)
    return empty_home


async def brought_in(orchestrator: Orchestrator, home: Path) -> tuple[int, list[str]]:
    [report] = await sync(orchestrator, READERS, Places(home, {}))
    assert report.is_complete
    channels = await orchestrator.registry.read(lambda tx: list_channels(tx, ChannelFilter(), Page()))
    stored = [await orchestrator.registry.get_conversations(one["channel"]) for one in channels["items"]]
    return report.new_messages, sorted(message["text"] for messages in stored for message in messages)


def said(number: int) -> str:
    return f"Why does basket {number} lose its items? The key is [secret:github-token:"


async def test_what_another_process_has_read_is_stored_masked_and_found(
    orchestrator: Orchestrator, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_here(*_: object) -> Iterator[FoundSession | Skipped]:
        pytest.fail("it is read in this process")

    monkeypatch.setattr(ClaudeCode, "sessions", not_here)
    new, texts = await brought_in(orchestrator, store)
    assert new == 6
    assert texts[:3] == ["It makes a new list each time."] * 3
    for number, text in enumerate(texts[3:]):
        assert text.startswith(said(number))
        assert text.endswith("[private]")
    found = await orchestrator.run({"operation": "extract", "query": {"text": "basket 2"}})
    assert said(2) in str(found["messages"])

    def holders(tx: ReadTransaction) -> list[int]:
        return index_of(tx).holders(tx, [[token] for token in analyze(texts[0])])

    assert len(await orchestrator.registry.read(holders)) == 3


async def test_where_no_process_can_be_started_it_is_read_here(
    orchestrator: Orchestrator, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(store / "nothing-here"))
    assert (await brought_in(orchestrator, store))[0] == 6


async def test_what_a_process_that_ended_early_has_not_brought_is_read_here(
    orchestrator: Orchestrator, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, given = reading_ahead._next_chunk, list[reading_ahead.Chunk]()

    def two_sessions(told: IO[bytes]) -> reading_ahead.Chunk:
        chunk = real(told)
        if given or chunk is None:
            raise reading_ahead._Failed
        given.append(chunk._replace(found=chunk.found[:2]))
        return given[0]

    monkeypatch.setattr(reading_ahead, "_next_chunk", two_sessions)
    assert (await brought_in(orchestrator, store))[0] == 6
    assert len(given) == 1


def test_only_big_stores_that_can_be_counted_are_worth_it(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = next(reader for reader in READERS if isinstance(reader, ClaudeCode))
    assert reading_ahead.is_worth_it(reader, store / ".claude")
    monkeypatch.setattr(reading_ahead, "WORTH_SESSIONS", 4)
    assert not reading_ahead.is_worth_it(reader, store / ".claude")


def test_the_tokens_of_the_other_process_are_those_of_this_one(store: Path) -> None:
    reader = ClaudeCode()
    for chunk in reading_ahead._chunks_of(reader.name, store / ".claude"):
        for text, tokens in chunk.tokens.items():
            assert tokens.split() == analyze(text)
        messages = [message for one in chunk.found if isinstance(one, FoundSession) for message in one.session.messages]
        assert {message.text for message in messages if message.role is Role.ASSISTANT} == chunk.tokens.keys()
