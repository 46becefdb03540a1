"""Test that a session or store that fails does not keep others from being imported."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.service import Orchestrator
from orchestrator.sync.sync import sync
from registry.domain import Message
from registry.ingest.own_calls import replace_own_call
from sources.base import Paths
from sources.readers import READERS
from tests.sources.antigravity import antigravity_files as antigravity
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, write
from tests.sources.gemini import gemini_files

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def store(empty_home: Path) -> Path:
    for number in range(3):
        talk = Dialogue(session_id(number))
        talk.user(f"Why does basket {number} lose its items?")
        talk.says("It makes a new list each time.", f"msg_{number}")
        write(empty_home / ".claude", talk)
    return empty_home


NUTS = "The basket eats nuts."


@pytest.fixture
def poison(monkeypatch: pytest.MonkeyPatch, store: Path) -> Iterator[pytest.MonkeyPatch]:
    """Let one session of a store fail to be stored, until the patch is undone."""
    talk = Dialogue(session_id(1))
    talk.user(NUTS)
    write(store / ".claude", talk)
    gemini_files.write(store / ".gemini", gemini_files.working_chat())

    def fails(message: Message) -> Message:
        if message.text == NUTS:
            raise ArithmeticError("too many nuts")
        return replace_own_call(message)

    with monkeypatch.context() as patch:
        for module in ("from_client", "save"):
            patch.setattr(f"registry.ingest.{module}.replace_own_call", fails)
        yield patch


async def test_a_session_that_cannot_be_stored_does_not_stop_others(
    orchestrator: Orchestrator, store: Path, poison: pytest.MonkeyPatch
) -> None:
    paths = Paths(store, {})
    first, second = await sync(orchestrator, READERS, paths)
    assert (first.new_messages, first.is_complete) == (4, False)
    assert [Path(one.what).stem for one in first.skipped] == [session_id(1)]
    assert (second.new_messages, second.is_complete) == (10, True)
    poison.undo()
    again, _ = await sync(orchestrator, READERS, paths)
    assert (again.new_messages, again.is_complete, again.skipped) == (1, True, [])


async def test_an_unexpected_error_in_one_store_does_not_stop_others(
    orchestrator: Orchestrator, store: Path, poison: pytest.MonkeyPatch
) -> None:
    def fails(_: str) -> int:
        raise ArithmeticError("too many nuts")

    poison.setattr("orchestrator.sync.sync.BATCH_MESSAGES", 1)
    poison.setattr("orchestrator.sync.sync._length", lambda said: fails(said) if NUTS in str(said) else 1)
    first, second = await sync(orchestrator, READERS, Paths(store, {}))
    assert (first.is_complete, first.skipped[0].why) == (False, "importing it failed: ArithmeticError: too many nuts")
    assert (second.new_messages, second.is_complete) == (10, True)
    poison.undo()
    again, _ = await sync(orchestrator, READERS, Paths(store, {}))
    assert (first.new_messages + again.new_messages, again.is_complete) == (5, True)


@pytest.mark.both_databases
async def test_names_that_are_not_valid_text_stop_nothing(orchestrator: Orchestrator, empty_home: Path) -> None:
    korean = Path(os.fsdecode(b"\xc7\xd1\xb1\xdb"))  # a folder made on a system with another encoding
    history = empty_home / korean / ".aider.chat.history.md"
    history.parent.mkdir()
    history.write_text("# aider chat started at 2026-11-22 07:11:16\n\n#### Hi  \n\nHello\n", encoding="utf-8")
    talk = Dialogue(session_id(4))
    talk.user("Hello")
    file = write(empty_home / ".claude", talk, stem=str(korean))
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps({"type": "\ud83d", "uuid": "\ud83d"}) + "\n")  # half of an emoji
        lines.write(json.dumps(talk.records[0] | {"uuid": "a\0"}) + "\n")
    first = await sync(orchestrator, READERS, Paths(empty_home, {}))
    assert [(one.source, one.is_complete, one.new_messages) for one in first] == [
        *(("claude-code", True, 8), ("aider", True, 2)),
    ]
    again = await sync(orchestrator, READERS, Paths(empty_home, {}))
    assert [(one.is_complete, one.parsed, one.has_news) for one in again] == [(True, 0, False)] * 2


async def test_a_folder_of_another_user_and_a_link_without_target_are_reported(
    orchestrator: Orchestrator, empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = empty_home / ".grok" / "sessions" / "shop" / session_id(1)
    session.mkdir(parents=True)
    (session / "updates.jsonl").symlink_to("/mnt/drive/updates.jsonl")

    def guarded(really: Any) -> Any:
        def call(path: Any, **more: Any) -> Any:
            if str(path).startswith(f"{empty_home}/.claude/"):
                raise PermissionError(13, "Permission denied", str(path))
            return really(path, **more)

        return call

    with monkeypatch.context() as patch:
        for name in ("stat", "scandir"):
            patch.setattr(os, name, guarded(getattr(os, name)))
        reports = await sync(orchestrator, READERS, Paths(empty_home, {}))
    assert [(one.source, one.skipped[0].why.split(".")[-1].strip()) for one in reports] == [
        *(("claude-code", "permission denied"), ("grok-cli", "no such file or directory")),
        ("memory-files", "permission denied"),
    ]
    reports = await sync(orchestrator, READERS, Paths(empty_home, {}))
    assert [(one.source, one.new_messages) for one in reports] == [("claude-code", 6), ("grok-cli", 0)]


async def test_conversations_that_only_their_client_can_read_are_counted(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    root = empty_home / ".gemini" / "antigravity"
    antigravity.write(root, antigravity.working_steps())
    cascade = empty_home / ".codeium" / "windsurf" / "cascade"
    for file in (root / "conversations" / antigravity.SESSION, root / "conversations" / "other", cascade / "a"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_name(f"{file.name}.pb").write_bytes(b"\x9a\x01")
    reports = {one.source: one for one in await sync(orchestrator, READERS, Paths(empty_home, {}))}
    assert reports["antigravity"].new_messages > 0
    assert [(one.what, one.why) for name in ("antigravity", "windsurf") for one in reports[name].skipped] == [
        (f"{root}/conversations/*.pb (1)", "only Antigravity can read it"),
        (f"{cascade}/*.pb (1)", "encrypted by Windsurf"),
    ]
