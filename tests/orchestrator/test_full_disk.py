"""Test a database that can be read but not written: questions are answered, and writing resumes when there is room."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Never

import pytest
from sqlalchemy import event

from orchestrator.service import Orchestrator
from registry.errors import StorageError
from registry.registry import Registry
from registry.storage.database import Database

pytestmark = pytest.mark.anyio

QUESTION = "Why does the basket lose items?"
EXTRACT: dict[str, Any] = {"operation": "extract", "query": {"text": "basket"}}
NO_MORE = {"sqlite": "PRAGMA query_only = {}", "postgresql": "SET default_transaction_read_only = {}"}


@pytest.fixture
async def orchestrator(database_url: str) -> AsyncIterator[Orchestrator]:
    registry = Registry(database_url)
    await registry.save_conversation("c", [{"role": "user", "text": QUESTION}], "cursor")
    yield Orchestrator(registry)
    registry.close()


@contextmanager
def full_disk(registry: Registry) -> Iterator[None]:
    """Let every write fail."""
    statement, state = NO_MORE[registry.dialect], ["on"]

    @event.listens_for(registry.engine, "checkout")
    def say(connection: Any, *_: object) -> None:
        connection.execute(statement.format(*state))

    yield
    state[:] = ["off"]


async def log(orchestrator: Orchestrator, text: str) -> dict[str, Any]:
    return await orchestrator.run({"operation": "save", "channel": "c", "messages": [{"role": "user", "text": text}]})


async def test_questions_are_answered_and_writes_fail_with_the_reason(orchestrator: Orchestrator) -> None:
    with full_disk(orchestrator.registry):
        answer = await orchestrator.run(EXTRACT)
        refused = await log(orchestrator, "And on the phone?")
        listed = await orchestrator.run({"operation": "list"})
        forgetting = {"operation": "delete", "channel": "c", "query": {"soft": False, "dry_run": True}}
        tried = await orchestrator.run(forgetting)
    assert [message["text"] for message in answer["messages"]] == [QUESTION]
    assert refused["error"]["code"] == "STORAGE_ERROR"
    assert listed["pagination"]["total"] == tried["receipt"]["messages"] == 1
    assert (await log(orchestrator, "And on the phone?"))["success"]


async def test_an_answer_is_the_same_as_before_and_its_record_is_stored_when_there_is_room(
    orchestrator: Orchestrator,
) -> None:
    with full_disk(orchestrator.registry):
        answer = await orchestrator.run(EXTRACT, execution_id="exec_full")
    assert answer == await orchestrator.run(EXTRACT)
    await orchestrator.settle()
    query = "SELECT id FROM execution WHERE operation = 'extract' AND status = 'succeeded'"
    stored = await orchestrator.registry.read(lambda tx: tx.exec_driver_sql(query).scalars().all())
    assert len(stored) == 2
    assert "exec_full" in stored


async def test_an_answer_that_could_not_be_noted_names_no_next_page(orchestrator: Orchestrator) -> None:
    for number in range(6):
        await log(orchestrator, f"{QUESTION} Number {number}?")
    asked = {**EXTRACT, "query": {**EXTRACT["query"], "limit": 2}}
    assert "next_cursor" in (await orchestrator.run(asked))["metadata"]
    with full_disk(orchestrator.registry):
        answer = await orchestrator.run(asked)
    assert answer["messages"]
    assert "next_cursor" not in answer["metadata"]


async def test_forgetting_succeeds_although_the_file_cannot_be_rewritten(
    orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def refuse(_database: Database, statements: Sequence[str]) -> Never:
        raise StorageError("Could not maintain the registry.", f"OperationalError: disk full: {statements[0]}")

    monkeypatch.setattr(Database, "maintain", refuse)
    done = await orchestrator.run({"operation": "delete", "channel": "c", "query": {"soft": False}})
    assert done["success"], done
    assert done["receipt"]["messages"] == 1
    assert "Unused parts of the registry's files may still contain deleted text" in caplog.text
