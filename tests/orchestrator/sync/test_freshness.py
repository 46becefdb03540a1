"""What a client wrote a moment ago is in the answer, without anybody asking for a sync."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from orchestrator.opening import open_orchestrator
from registry.settings import Settings
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, write

pytestmark = pytest.mark.anyio

ASK = {"operation": "extract", "query": {"text": "basket items"}}


def talk() -> Dialogue:
    dialogue = Dialogue(session_id(1))
    dialogue.user("Why does the basket lose its items?")
    dialogue.says("It makes a new list each time.", "msg_1")
    return dialogue


async def test_a_question_is_answered_from_what_was_written_just_before(empty_home: Path) -> None:
    write(empty_home / ".claude", talk())
    async with open_orchestrator(Settings()) as orchestrator:
        found = await orchestrator.run(ASK)
    assert [message["text"] for message in found["messages"]] == [
        "Why does the basket lose its items?",
        "It makes a new list each time.",
    ]


async def test_a_question_does_not_wait_for_a_long_sync_and_the_next_one_has_it(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(empty_home / ".claude", talk())
    monkeypatch.setattr("orchestrator.sync.freshness.PATIENCE_S", 0.0)
    async with open_orchestrator(Settings()) as orchestrator:
        answers: list[dict[str, Any]] = [await orchestrator.run(ASK)]
        while not answers[-1]["success"]:
            await asyncio.sleep(0.01)
            answers.append(await orchestrator.run(ASK))
    assert answers[0]["error"]["code"] == "NOT_FOUND"


async def test_a_shared_registry_takes_nothing_from_a_person_s_folders_by_itself(
    empty_home: Path, postgres_url: str
) -> None:
    write(empty_home / ".claude", talk())
    async with open_orchestrator(Settings(database_url=postgres_url)) as orchestrator:
        assert (await orchestrator.run(ASK))["error"]["code"] == "NOT_FOUND"
