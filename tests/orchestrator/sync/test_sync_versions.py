"""Test stores that several versions of a client wrote: each message is imported once, in order, and none is lost."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from orchestrator.service import Orchestrator
from orchestrator.sync.sync import sync
from registry.storage.conversations.channels import list_channels
from registry.storage.paging import Page
from sources.base import Paths
from sources.readers import READERS
from tests.sources.copilot import copilot_files as copilot

pytestmark = pytest.mark.anyio


async def run_sync(orchestrator: Orchestrator, home: Path) -> None:
    await sync(orchestrator, READERS, Paths(home, {}))


async def only_channel(orchestrator: Orchestrator) -> dict[str, Any]:
    page = await orchestrator.registry.read(lambda tx: list_channels(tx, {}, Page(limit=100)))
    [channel] = page["items"]
    return dict(channel)


async def messages_of(orchestrator: Orchestrator) -> list[dict[str, Any]]:
    """Return the messages of the only channel in order."""
    channel = await only_channel(orchestrator)
    return list(await orchestrator.registry.get_conversations(channel["channel"], limit=1000))


async def texts_in(orchestrator: Orchestrator) -> list[str]:
    return [message["text"] for message in await messages_of(orchestrator)]


def converted_session() -> copilot.Log:
    """Return the log into which Copilot CLI converts `old_history` when it resumes the session, and a new turn."""
    log, listing = copilot.Log(copilot.session_id(9)), copilot.request("call_1", "bash", {"command": "ls"})
    log.start()
    log.user("Hello, 안녕")
    log.answer("", listing)
    log.run(listing, "basket.py")
    log.answer("One file.")
    log.user("Hello, 안녕")
    log.answer("Again.")
    return log


@pytest.mark.parametrize("is_synced_before", [True, False])
async def test_a_session_of_copilots_first_versions_that_a_newer_one_resumed_is_imported_once(
    orchestrator: Orchestrator, empty_home: Path, is_synced_before: bool
) -> None:
    root = empty_home / ".copilot"
    document = root / "history-session-state" / f"session_{copilot.session_id(9)}_1759957816398.json"
    document.parent.mkdir(parents=True)
    document.write_text(json.dumps(copilot.old_history()), encoding="utf-8")
    if is_synced_before:
        await run_sync(orchestrator, empty_home)
    copilot.write_log(root, converted_session())
    await run_sync(orchestrator, empty_home)

    messages = await messages_of(orchestrator)
    texts = ["Hello, 안녕", "bash ls\n\nbasket.py", "One file.", "Hello, 안녕", "Again."]
    assert [message["text"] for message in messages] == texts
    assert {str(message["timestamp"])[:10] for message in messages} == {"2026-03-18"}


async def test_of_two_files_of_a_session_the_newer_one_gives_the_title(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    root, log = empty_home / ".copilot", copilot.Log()
    log.start()
    log.user("Why is the basket empty?")
    os.utime(copilot.write_log(root, log, form="file"), (1_770_000_000, 1_770_000_000))
    log.answer("It makes a new list.")
    copilot.write_log(root, log, "name: The empty basket")
    await run_sync(orchestrator, empty_home)

    assert (await only_channel(orchestrator))["title"] == "The empty basket"
    assert await texts_in(orchestrator) == ["Why is the basket empty?", "It makes a new list."]
