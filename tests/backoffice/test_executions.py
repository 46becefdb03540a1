"""Test /bo/ao: runs, statistics, the graph, and running operations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from orchestrator.service import Orchestrator
from registry.domain import new_id
from registry.storage.database import WriteTransaction
from registry.storage.records.executions import Execution, save_execution
from tests.backoffice.conftest import Log

pytestmark = pytest.mark.anyio

NOON = datetime(2025, 9, 29, 12, tzinfo=UTC)


def execution(
    operation: str, after: timedelta, duration_ms: float, code: str | None = None, client: str | None = None
) -> Execution:
    error = {"code": code, "message": "no", "details": ""} if code else None
    return Execution(
        id=new_id("exec"),
        operation=operation,
        source="cursor",
        client=client,
        channel="c",
        status={None: "succeeded", "NOT_FOUND": "not_found"}.get(code, "failed"),
        error=error,
        started_at=NOON + after,
        finished_at=NOON + after,
        duration_ms=duration_ms,
        request={},
        result=None,
        steps=[],
    )


async def record(orchestrator: Orchestrator, *runs: Execution) -> None:
    def work(tx: WriteTransaction) -> None:
        for run in runs:
            save_execution(tx, run)

    await orchestrator.registry.write(work)


async def listed(http: httpx.AsyncClient, **query: Any) -> list[str]:
    answer = await http.get("/bo/ao/executions", params=query)
    assert answer.status_code == 200, answer.text
    return [item["operation"] for item in answer.json()["items"]]


@pytest.mark.both_databases
async def test_every_run_is_listed_with_its_caller(http: httpx.AsyncClient, log: Log) -> None:
    http.headers["User-Agent"] = "hook/" + "9" * 300
    [id] = await log("c", "about fibonacci", source="cursor")
    await http.get("/bo/search?q=fibonacci")
    await http.patch("/bo/channels/c", json={"nickname": "fib"})
    await http.delete(f"/bo/conversations/{id}")
    await http.post(f"/bo/conversations/{id}/restore")
    items = (await http.get("/bo/ao/executions?order=asc")).json()["items"]
    assert [item["operation"] for item in items] == ["conversation_log", "search", "tag", "delete", "restore"]
    assert [item["source"] for item in items] == ["cursor", *["api"] * 4]
    assert {len(item["client"]) for item in items} == {200}
    assert {item["status"] for item in items} == {"succeeded"}


async def test_showing_is_no_execution_but_searching_is(http: httpx.AsyncClient, log: Log) -> None:
    await log("c", "hello")
    for address in ("channels", "channels/c", "conversations", "extracts", "ao/executions", "ao/statistics"):
        assert (await http.get(f"/bo/{address}")).status_code == 200
    assert await listed(http) == ["conversation_log"]
    for address in ("channels?q=hello", "conversations?q=hello", "search?q=hello"):
        assert (await http.get(f"/bo/{address}")).json()["total"] == 1
    assert sorted(await listed(http)) == ["conversation_log", "search", "search", "search_sessions"]


async def test_one_execution_has_its_steps(http: httpx.AsyncClient, log: Log) -> None:
    await log("c", "about fibonacci", "lru_cache")
    await http.post("/bo/ao/run", json={"operation": "retrieve", "query": {"text": "fibonacci"}})
    [item] = (await http.get("/bo/ao/executions?operation=retrieve")).json()["items"]
    one = (await http.get(f"/bo/ao/executions/{item['id']}")).json()
    assert one["request"]["query"]["text"] == "fibonacci"
    assert [step["node"] for step in one["steps"]] == ["plan", "cr_query", "filter", "cr_write"]
    assert {step["status"] for step in one["steps"]} == {"succeeded"}
    assert one["steps"][1]["detail"]["candidates"] == 1
    assert one["channel"] == "c"


async def test_a_refused_request_is_recorded_with_its_error(http: httpx.AsyncClient) -> None:
    refused = await http.post("/bo/conversations", json={"channel": "c", "messages": []})
    [item] = (await http.get("/bo/ao/executions?status=failed")).json()["items"]
    assert item["operation"] == "conversation_log"
    assert item["error"] == refused.json()["error"]


@pytest.mark.both_databases
async def test_executions_are_filtered_by_each_field(http: httpx.AsyncClient, orchestrator: Orchestrator) -> None:
    await record(
        orchestrator,
        execution("conversation_log", timedelta(0), 1),
        execution("extract", timedelta(days=1), 1, "NOT_FOUND"),
    )
    assert await listed(http) == ["extract", "conversation_log"]
    assert await listed(http, operation="save") == await listed(http, operation="conversation_log")
    assert await listed(http, operation="save") == ["conversation_log"]
    assert await listed(http, status="not_found") == ["extract"]
    assert await listed(http, status="failed") == []
    assert await listed(http, error_code="NOT_FOUND") == ["extract"]
    assert await listed(http, error_code="TIMEOUT") == []
    assert await listed(http, to="2025-09-29") == ["conversation_log"]
    assert await listed(http, **{"from": "2025-09-30"}) == ["extract"]
    assert await listed(http, channel="c", source="cursor", order="asc") == ["conversation_log", "extract"]
    assert await listed(http, channel="other") == await listed(http, source="other") == []


@pytest.mark.both_databases
async def test_paging_neither_repeats_nor_skips_while_executions_arrive(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    runs = [execution("tag", timedelta(0), i) for i in range(5)]
    await record(orchestrator, *runs)
    seen, cursor = [], None
    for _ in range(3):
        page = (
            await http.get("/bo/ao/executions", params={"limit": 2} | ({"cursor": cursor} if cursor else {}))
        ).json()
        seen += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
        await record(orchestrator, execution("tag", timedelta(hours=1), 0))
    assert seen == [run.id for run in reversed(runs)], "equal times are in order of arrival"


def outcomes(count: int, succeeded: int, not_found: int = 0, failed: int = 0) -> dict[str, int]:
    return {"count": count, "succeeded": succeeded, "guessed": 0, "not_found": not_found, "failed": failed}


def p(*shares: float) -> dict[str, float]:
    return dict(zip(("p50_ms", "p95_ms", "p99_ms"), shares, strict=True))


async def test_statistics_equal_counts_made_by_hand(http: httpx.AsyncClient, orchestrator: Orchestrator) -> None:
    saves = [execution("conversation_log", timedelta(seconds=i), i) for i in range(1, 101)]
    extracts = [
        execution("extract", timedelta(minutes=5), 10, client="cursor-vscode 1.9.0"),
        execution("extract", timedelta(minutes=5), 20, "NOT_FOUND", client="cursor-vscode 1.9.0"),
        execution("extract", timedelta(minutes=5), 30, "TIMEOUT", client="cursor-vscode 2.0.1"),
        execution("extract", timedelta(minutes=5), 40, "NOT_FOUND", client="cursor-vscode"),
    ]
    await record(orchestrator, *saves, *extracts, execution("extract", timedelta(days=9), 7))
    figures = (await http.get("/bo/ao/statistics?from=2025-09-29&to=2025-09-29&bucket=minute")).json()
    of_extracts = {**outcomes(4, 1, 2, 1), "success_rate": 0.75, **p(20, 40, 40)}
    assert figures == {
        "bucket_s": 60,
        "total": {**outcomes(104, 101, 2, 1), "success_rate": 103 / 104, **p(48, 95, 99)},
        "operations": [
            {"operation": "conversation_log", **outcomes(100, 100), "success_rate": 1, **p(50, 95, 99)},
            {"operation": "extract", **of_extracts},
        ],
        "errors": {"NOT_FOUND": 2, "TIMEOUT": 1},
        "series": [
            {"at": "2025-09-29T12:00:00.000Z", "count": 59, "failed": 0, "mean_ms": 30, **p(30, 57, 59)},
            {"at": "2025-09-29T12:01:00.000Z", "count": 41, "failed": 0, "mean_ms": 80, **p(80, 98, 100)},
            {"at": "2025-09-29T12:05:00.000Z", "count": 4, "failed": 1, "mean_ms": 25, **p(20, 40, 40)},
        ],
        "clients": [{"client": "cursor-vscode", **of_extracts}],
    }


async def test_statistics_without_runs_are_zeros_and_nulls(http: httpx.AsyncClient) -> None:
    figures = (await http.get("/bo/ao/statistics")).json()
    assert (figures["total"]["count"], figures["total"]["success_rate"], figures["total"]["p50_ms"]) == (0, None, None)
    assert (figures["operations"], figures["errors"], figures["series"]) == ([], {}, [])


@pytest.mark.both_databases
async def test_the_series_is_divided_as_asked_or_to_fit_the_period(http: httpx.AsyncClient) -> None:
    cases: list[tuple[str, int]] = [
        ("", 86_400),
        ("from=2025-09-29T10:00&to=2025-09-29T13:00", 60),
        ("from=2025-09-23&to=2025-09-29", 3600),
        ("from=2025-01-01&to=2025-09-29", 86_400),
        ("from=2025-01-01&to=2025-09-29&bucket=hour", 3600),
        ("bucket=90", 90),
    ]
    for query, bucket_s in cases:
        assert (await http.get(f"/bo/ao/statistics?{query}")).json()["bucket_s"] == bucket_s


async def test_the_graph_has_its_nodes_and_every_operations_path(http: httpx.AsyncClient) -> None:
    graph = (await http.get("/bo/ao/graph")).json()
    assert set(graph["nodes"]) == {"plan", "cr_query", "filter", "relax", "transform", "external_action", "cr_write"}
    assert graph["paths"]["conversation_log"] == ["plan", "cr_write"]
    assert {"from": "plan", "to": "cr_query"} in graph["edges"]


async def test_an_operation_runs_and_answers_in_the_orchestrators_format(http: httpx.AsyncClient) -> None:
    saved = await http.post(
        "/bo/ao/run", json={"operation": "save", "channel": "c", "messages": [{"role": "user", "text": "fibonacci"}]}
    )
    assert (saved.status_code, saved.json()["success"], len(saved.json()["stored_ids"])) == (200, True, 1)
    found = (await http.post("/bo/ao/run", json={"operation": "extract", "query": {"text": "fibonacci"}})).json()
    assert [message["text"] for message in found["messages"]] == ["fibonacci"]
    assert found["metadata"]["filtered_count"] == 1


FAILING = [
    ({"operation": "nonsense"}, 400, "INVALID_REQUEST"),
    ({"operation": "extract", "query": {"limit": 0}}, 400, "INVALID_REQUEST"),
    ({"operation": "extract", "channel": "nobody"}, 404, "NOT_FOUND"),
    ({"operation": "daily_briefing", "query": {"date": "2025-09-29"}}, 404, "NOT_FOUND"),
    ({"operation": "create_backup", "query": {"path": "/tmp/x.zip"}}, 400, "INVALID_REQUEST"),
    ({}, 400, "INVALID_REQUEST"),
]


async def test_a_failed_operation_is_the_envelope_with_its_status(
    http: httpx.AsyncClient, subtests: pytest.Subtests
) -> None:
    for request_, status, code in FAILING:
        with subtests.test(request_=request_, status=status, code=code):
            answer = await http.post("/bo/ao/run", json=request_)
            assert (answer.status_code, answer.json()["ok"], answer.json()["error"]["code"]) == (status, False, code)
