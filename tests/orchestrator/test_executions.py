"""Test the records of runs: each explains its run, whatever the outcome."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from orchestrator.recording import recorder
from orchestrator.service import Orchestrator
from registry.errors import StorageError
from registry.registry import Registry
from registry.storage.connections import WRITERS
from registry.storage.paging import Page
from registry.storage.records.executions import get_execution, list_executions

pytestmark = pytest.mark.anyio

ASKED = {"role": "user", "text": "how do I memoize fibonacci?", "timestamp": "2026-01-05T12:00:00Z"}
ANSWERED = {"role": "assistant", "text": "with functools.lru_cache", "timestamp": "2026-01-05T12:00:09Z"}
SAVE: dict[str, Any] = {
    "operation": "save",
    "channel": "c",
    "messages": [ASKED, ANSWERED],
    "source": "cursor",
}


async def recorded(orchestrator: Orchestrator) -> list[dict[str, Any]]:
    """Return all records with their details, oldest first."""

    def work(tx: Any) -> list[dict[str, Any]]:
        page = list_executions(tx, {}, Page(limit=100, order="asc"))
        return [get_execution(tx, item["id"]) for item in page["items"]]

    return await orchestrator.registry.read(work)


def detail(execution: dict[str, Any], node: str) -> dict[str, Any]:
    [step] = [step for step in execution["steps"] if step["node"] == node]
    return dict(step["detail"])


async def test_a_run_of_a_client_with_any_name_is_recorded(orchestrator: Orchestrator) -> None:
    await orchestrator.run({"operation": "list"}, "half a letter \ud800 and none \x00")
    [run] = await recorded(orchestrator)
    assert run["client"] == "half a letter \N{REPLACEMENT CHARACTER} and none \N{REPLACEMENT CHARACTER}"


async def test_a_saved_turn_is_recorded_with_its_client_path_and_counts(orchestrator: Orchestrator) -> None:
    await orchestrator.run(SAVE, "cursor-vscode 1.2")
    await orchestrator.run(SAVE, "cursor-vscode 1.2")
    first, again = await recorded(orchestrator)
    assert (first["operation"], first["source"], first["client"], first["channel"], first["status"]) == (
        "conversation_log",
        "cursor",
        "cursor-vscode 1.2",
        "c",
        "succeeded",
    )
    assert [step["node"] for step in first["steps"]] == ["plan", "cr_write"]
    assert all(step["status"] == "succeeded" and step["duration_ms"] >= 0 for step in first["steps"])
    assert detail(first, "plan")["path"] == ["plan", "cr_write"]
    assert detail(first, "cr_write") == {"channel": "c", "new": 2, "duplicates": 0}
    assert detail(again, "cr_write") == {"channel": "c", "new": 0, "duplicates": 2}
    assert "memoize" not in str(first)


async def test_the_record_of_an_extraction_says_what_was_kept_and_why_the_rest_was_dropped(
    orchestrator: Orchestrator,
) -> None:
    more = [{"role": "user", "text": "fibonacci as a pretty picture of a sunflower, with gold and blue"}]
    await orchestrator.run({**SAVE, "messages": [ASKED, ANSWERED, *more]})
    await orchestrator.run(
        {
            "operation": "extract",
            "query": {"text": "memoize fibonacci lru_cache", "from": "2026-01-05T00:00:00Z"},
            "source": "claude",
        }
    )
    _, execution = await recorded(orchestrator)
    assert [step["node"] for step in execution["steps"]] == ["plan", "cr_query", "filter", "cr_write"]
    found = detail(execution, "cr_query")
    assert found["channel"] == execution["channel"] == "c"
    assert found["candidates"] == 3
    assert "message index" in found["by"]
    assert "fibonacci" in found["words"]
    decided = detail(execution, "filter")
    verdicts = decided["verdicts"]
    kept = [verdict["kept"] for verdict in verdicts]
    assert (kept.count(True), kept.count(False)) == (decided["kept"], decided["dropped"])
    assert kept.count(True) >= 1
    assert all(verdict["kept"] or verdict["reason"] for verdict in verdicts)
    assert detail(execution, "cr_write")["extract_result"].startswith("ext_")
    assert execution["request"]["query"]["text"] == "memoize fibonacci lru_cache"
    assert "from" in execution["request"]["query"], "as the client named it"


async def test_a_run_that_found_nothing_or_failed_is_recorded_with_its_error(orchestrator: Orchestrator) -> None:
    await orchestrator.run({"operation": "extract", "channel": "nope", "source": "claude"})
    await orchestrator.run({"operation": "save", "channel": "c", "messages": []})
    await orchestrator.run({"operation": "dance"})
    unknown, empty, dance = await recorded(orchestrator)
    assert (unknown["status"], unknown["error"]["code"]) == ("not_found", "NOT_FOUND")
    assert [(step["node"], step["status"]) for step in unknown["steps"]] == [
        ("plan", "succeeded"),
        ("cr_query", "not_found"),
    ]
    assert (empty["status"], dance["status"]) == ("failed", "failed")
    assert (empty["operation"], empty["error"]["code"]) == ("conversation_log", "INVALID_REQUEST")
    assert "messages" in empty["error"]["details"]
    assert (dance["operation"], dance["error"]["code"]) == ("unknown", "INVALID_REQUEST")


@asynccontextmanager
async def blocked_writes(registry: Registry) -> AsyncIterator[None]:
    """Block writes to the registry."""
    writers = WRITERS[registry.dialect]
    begun, freed = threading.Barrier(writers + 1), threading.Event()
    blocking = asyncio.gather(*(registry.write(lambda tx: (begun.wait(), freed.wait(30))) for _ in range(writers)))
    await asyncio.to_thread(begun.wait)
    try:
        yield
    finally:
        freed.set()
        await blocking


@pytest.mark.slow
async def test_an_operation_past_its_limit_is_a_timeout_and_stores_all_or_nothing(
    orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "MAX_WAIT_S", 0.1)
    registry = orchestrator.registry
    hurried = Orchestrator(registry, timeout_s=0.05)
    await orchestrator.run({**SAVE, "channel": "warm"})
    async with blocked_writes(registry):
        answer = await hurried.run(SAVE)
    assert answer["error"]["code"] == "TIMEOUT"
    assert "CTXR_TIMEOUT_S" in answer["error"]["details"]
    await hurried.settle()
    assert len(await registry.get_conversations("c")) in (0, 2)
    assert (await orchestrator.run(SAVE))["message_count"] == 2
    assert len(await registry.get_conversations("c")) == 2
    assert [run["status"] for run in await recorded(orchestrator)][1] == "failed"


async def test_a_run_that_failed_because_storage_failed_is_recorded_when_storage_is_back(
    orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_: object, **_of: object) -> None:
        raise StorageError("Could not write the registry.", "OperationalError: disk I/O error")

    with monkeypatch.context() as outage:
        outage.setattr(orchestrator.registry, "write", broken)
        answer = await orchestrator.run(SAVE)
        assert answer["error"]["code"] == "STORAGE_ERROR"
    assert (await orchestrator.run({"operation": "search", "query": {"text": "fibonacci"}}))["success"]
    failed, search = await recorded(orchestrator)
    assert (failed["operation"], failed["error"]["details"]) == (
        "conversation_log",
        "OperationalError: disk I/O error",
    )
    assert search["status"] == "succeeded"


async def test_a_bug_tells_the_caller_only_where_it_is_recorded(
    orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def buggy(*_: object, **__: object) -> None:
        raise ZeroDivisionError("secret of the inside")

    monkeypatch.setattr("orchestrator.operations.conversation_log.ingest_from_tool", buggy)
    answer = await orchestrator.run(SAVE)
    assert answer["error"]["code"] == "INTERNAL_ERROR"
    assert "secret" not in str(answer)
    [execution] = await recorded(orchestrator)
    assert execution["id"] in answer["error"]["details"]
    assert "secret of the inside" in caplog.text


async def _let_tasks_run() -> None:
    """Let every task run that waits for no thread."""
    for _ in range(100):
        await asyncio.sleep(0)


async def test_a_cancelled_run_is_recorded_and_leaves_nothing_half_written(orchestrator: Orchestrator) -> None:
    await orchestrator.run({**SAVE, "channel": "warm"})
    async with blocked_writes(orchestrator.registry):
        run = asyncio.create_task(orchestrator.run(SAVE))
        await _let_tasks_run()
        assert orchestrator.running()
        run.cancel()
        await _let_tasks_run()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert await orchestrator.registry.get_conversations("c") == []
    await orchestrator.settle()
    cancelled = (await recorded(orchestrator))[-1]
    assert (cancelled["channel"], cancelled["error"]["code"]) == ("c", "TIMEOUT")


async def test_a_hint_that_its_client_did_not_wait_for_is_no_failure(orchestrator: Orchestrator) -> None:
    async with blocked_writes(orchestrator.registry):
        run = asyncio.create_task(orchestrator.run({"operation": "hint", "query": {"text": "memoize fibonacci again"}}))
        while not (running := orchestrator.running()) or not running[0]["steps"]:
            await _let_tasks_run()
        run.cancel()
        await _let_tasks_run()
    await asyncio.wait([run])
    await orchestrator.settle()
    [late] = await recorded(orchestrator)
    assert (late["status"], late["error"]) == ("succeeded", None)
    assert late["steps"][-1]["detail"]["note"] == "too late: the client had stopped waiting"


async def test_nothing_is_sent_to_langsmith(orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch) -> None:
    import langsmith

    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    monkeypatch.setenv("LANGSMITH_API_KEY", "key")
    seen: list[bool | str | None] = []
    real = orchestrator._graph.astream

    def watched(*args: Any, **kwargs: Any) -> Any:
        seen.append(langsmith.utils.tracing_is_enabled())
        return real(*args, **kwargs)

    monkeypatch.setattr(orchestrator._graph, "astream", watched)
    await orchestrator.run(SAVE)
    assert seen == [False]


@pytest.mark.slow
async def test_an_answer_does_not_wait_for_its_record_while_storage_is_stuck(
    orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "MAX_WAIT_S", 0.2)
    hurried = Orchestrator(orchestrator.registry, timeout_s=0.1)
    async with blocked_writes(orchestrator.registry), asyncio.timeout(20):  # shorter than the block
        answers = await asyncio.gather(*(hurried.run({**SAVE, "channel": f"c{i}"}) for i in range(4)))
    assert {answer["error"]["code"] for answer in answers} == {"TIMEOUT"}
    await hurried.settle()
    assert [run["error"]["code"] for run in await recorded(hurried)] == ["TIMEOUT"] * 4


async def test_deeply_nested_context_is_refused(orchestrator: Orchestrator) -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    answer = await orchestrator.run({**SAVE, "messages": [{**ASKED, "context": deep}]})
    assert answer["error"]["code"] == "INVALID_REQUEST"
    assert "nested at most" in answer["error"]["details"]


async def test_a_deleted_message_is_not_shown_as_a_preview(orchestrator: Orchestrator) -> None:
    ids = (await orchestrator.run(SAVE))["stored_ids"]
    await orchestrator.run({"operation": "delete", "query": {"id": ids[0]}})
    [channel] = (await orchestrator.run({"operation": "list"}))["sessions"]
    assert channel["first_message_preview"] is None
