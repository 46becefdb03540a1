"""Test the whole documented API with generated input, valid and invalid."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings

from orchestrator.service import Orchestrator
from registry.registry import Registry
from tests.backoffice.application import application
from tests.backoffice.conftest import Log, problem_of

HOST = "testserver"  # the host that schemathesis uses
ENDLESS = "/bo/events"


@pytest.fixture
def apps(sqlite_url: str, postgres_url: str) -> Iterator[list[FastAPI]]:
    """Return the application over each database; both get the same requests, because generating them takes longest."""
    registries = [Registry(url) for url in (sqlite_url, postgres_url)]
    yield [application(Orchestrator(registry), host=HOST) for registry in registries]
    for registry in registries:
        registry.close()


def test_any_input_gets_a_documented_answer(apps: list[FastAPI]) -> None:
    import schemathesis  # takes a second in each worker that collects this

    documents = [schemathesis.openapi.from_asgi("/openapi.json", app) for app in apps]
    for found in zip(*(document.get_all_operations() for document in documents), strict=True):
        operations: list[Any] = [one.ok() for one in found]
        [first, *_] = operations
        has_input = bool(first.path_parameters or first.query or first.body)
        for mode in schemathesis.GenerationMode if has_input else [schemathesis.GenerationMode.POSITIVE]:
            if first.path != ENDLESS:
                _try(operations, mode)


def _try(operations: list[Any], mode: Any) -> None:
    from schemathesis.specs.openapi import checks

    conform = [checks.content_type_conformance, checks.response_schema_conformance, checks.status_code_conformance]

    @settings(
        max_examples=2,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(operations[0].as_strategy(generation_mode=mode))
    def send(case: Any) -> None:
        for operation in operations:
            case.operation = operation
            answer = case.call()
            assert answer.status_code < 500, answer.text
            assert answer.status_code != 422, answer.text
            case.validate_response(answer, checks=conform)

    send()


@pytest.mark.anyio
async def test_cursors_that_were_changed_are_refused(http: httpx.AsyncClient, log: Log) -> None:
    await log("c", "hello")

    def cursor(**place: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")

    for place in ({"at": "2025-01-01", "n": 10**30}, {"at": "2025-01-01", "n": "1"}, {"at": "x", "n": 1}, {"n": 1}):
        for address in ("channels", "conversations", "extracts", "ao/executions"):
            answer = await http.get(f"/bo/{address}", params={"cursor": cursor(**place)})
            assert problem_of(answer)["details"].startswith("cursor: ")


@pytest.mark.anyio
async def test_characters_that_no_database_stores_do_no_harm(http: httpx.AsyncClient, log: Log) -> None:
    await log("c", "about fibonacci")
    for address in (
        "search?q=%00",
        "conversations?q=a%00b",
        "channels?tag=%00",
        "channels?project=%00",
    ):
        assert (await http.get(f"/bo/{address}")).json()["items"] == []
    assert (await http.get("/bo/channels?q=%00")).status_code == 200
    for address in ("conversations/%00", "ao/executions/%00"):
        assert problem_of(await http.get(f"/bo/{address}"), 404)
    body = '{"operation": "search", "query": {"text": "\\ud800 \\u0000 fibonacci"}}'
    sent = await http.post("/bo/ao/run", content=body, headers={"Content-Type": "application/json"})
    assert sent.json()["metadata"]["total_count"] == 1
    assert (await http.get("/bo/ao/executions?operation=search")).json()["total"] == 3


@pytest.mark.anyio
async def test_a_long_time_in_words_is_answered_soon(http: httpx.AsyncClient, log: Log) -> None:
    await log("c", "about fibonacci")
    until = {"operation": "share", "channel": "c", "query": {"with": "team", "until": "A" * 1_000_000}}
    started = time.monotonic()
    problem_of(await http.post("/bo/ao/run", json=until))
    problem_of(await http.get("/bo/channels", params={"from": "today " * 2000}))
    assert (await http.get("/bo/search", params={"q": "today " * 160})).status_code == 200
    assert time.monotonic() - started < 5
