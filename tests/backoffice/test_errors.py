"""Test errors: each has the envelope, names the wrong field, and reveals no internals."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from orchestrator.service import Orchestrator
from registry.errors import OperationTimeout, StorageError
from registry.registry import Registry
from tests.backoffice.conftest import problem_of

pytestmark = pytest.mark.anyio


WRONG_PARAMETERS = [
    ("conversations?limit=0", "limit"),
    ("conversations?limit=1001", "limit"),
    ("conversations?limit=many", "limit"),
    ("conversations?order=up", "order"),
    ("conversations?cursor=x", "cursor"),
    ("conversations?cursor=eyJhdCI6IjIwMjUiLCJuIjoxfQ", "cursor"),
    ("conversations?role=bot", "role.0"),
    ("conversations?from=soon", "from"),
    ("conversations?to=2025-13-01", "to"),
    ("conversations?include_deleted=perhaps", "include_deleted"),
    ("conversations?color=red", "color"),
    ("conversations?source=", "source"),
    ("channels?limit=0", "limit"),
    ("channels?nickname=x", "nickname"),
    ("channels/" + "x" * 201, "channel"),
    ("channels/%00", "channel"),
    ("channels/x?y=1", "y"),
    ("extracts?status=x", "status"),
    ("search", "q"),
    ("search?q=", "q"),
    ("search?q=x&cursor=x", "cursor"),
    ("search?q=x&order=asc", "order"),
    ("ao/executions?operation=dance", "operation"),
    ("ao/executions?status=lost", "status"),
    ("ao/executions/x?y=1", "y"),
    ("ao/statistics?bucket=week", "bucket"),
    ("ao/statistics?bucket=0", "bucket"),
    ("ao/graph?x=1", "x"),
    ("events?x=1", "x"),
]


async def test_a_wrong_parameter_is_named(http: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    for query, field in WRONG_PARAMETERS:
        with subtests.test(query=query, field=field):
            error = problem_of(await http.get(f"/bo/{query}"))
            assert error["code"] == "INVALID_REQUEST"
            assert error["details"].startswith(f"{field}: "), error


WRONG_FIELDS = [
    ({"channel": "c"}, "messages"),
    ({"channel": "c", "messages": []}, "messages"),
    ({"channel": "c", "messages": "hello"}, "messages"),
    ({"channel": "c", "messages": [{"role": "robot", "text": "x"}]}, "messages.0.role"),
    ({"channel": "c", "messages": [{"role": "user"}]}, "messages.0.text"),
    ({"channel": "c", "messages": [{"role": "user", "text": "x", "timestamp": "soon"}]}, "messages.0.timestamp"),
    ({"channel": "\n", "messages": [{"role": "user", "text": "x"}]}, "channel"),
    ({"channel": "c", "messages": [{"role": "user", "text": "x"}], "operation": "delete"}, "operation"),
    ({"channel": "c", "messages": [{"role": "user", "text": "x"}], "source": ""}, "source"),
    ([1], "body"),
    (None, "body"),
]


async def test_a_wrong_field_of_a_body_is_named(http: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    for body, field in WRONG_FIELDS:
        with subtests.test(body=body, field=field):
            error = problem_of(await http.post("/bo/conversations", json=body))
            assert error["code"] == "INVALID_REQUEST"
            assert error["details"].startswith(f"{field}: "), error


async def test_a_body_that_is_not_json_is_refused(http: httpx.AsyncClient) -> None:
    cases: list[tuple[bytes, str, str]] = [
        (b'{"channel": ', "application/json", "body: at character 12"),
        (b'{"channel": "\xff"}', "application/json", ""),
        (b"[" * 100_000, "application/json", ""),
        (b"{}", "text/plain", "Content-Type: given 'text/plain'; allowed: application/json"),
        (b"channel=c", "application/x-www-form-urlencoded", "Content-Type"),
    ]
    for content, kind, told in cases:
        error = problem_of(await http.post("/bo/conversations", content=content, headers={"Content-Type": kind}))
        assert error["code"] == "INVALID_REQUEST"
        assert told in error["details"]


async def test_an_unknown_address_is_not_found(http: httpx.AsyncClient) -> None:
    for method, path in [("GET", "/nowhere"), ("GET", "/bo/"), ("POST", "/bo/dance")]:
        assert problem_of(await http.request(method, path), 404)["code"] == "NOT_FOUND"


async def test_a_wrong_method_is_refused_with_the_allowed_ones(http: httpx.AsyncClient) -> None:
    cases: list[tuple[str, str]] = [("PUT", "/bo/channels"), ("DELETE", "/bo/ao/run"), ("POST", "/health")]
    for method, path in cases:
        answer = await http.request(method, path)
        assert problem_of(answer, 405)["code"] == "INVALID_REQUEST"
        assert answer.headers["Allow"]


async def test_a_body_too_large_is_refused_before_it_is_read(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backoffice.middleware.MAX_BODY", 100)
    headers = {"Content-Type": "application/json"}
    announced = await http.post("/bo/conversations", content=b"x" * 101, headers=headers)

    async def growing() -> Any:
        for _ in range(3):
            yield b"x" * 50

    silent = await http.post("/bo/conversations", content=growing(), headers=headers)
    assert problem_of(announced, 413)["code"] == problem_of(silent, 413)["code"] == "INVALID_REQUEST"


async def test_an_unreachable_registry_is_a_storage_error(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(*_: Any, **_of: object) -> Any:
        raise StorageError("Could not read the registry.", "disk on fire")

    monkeypatch.setattr(Registry, "read", lost)
    monkeypatch.setattr(Registry, "write", lost)
    body = {"channel": "c", "messages": [{"role": "user", "text": "x"}]}
    answers = [
        *[await http.get(f"/bo/{address}") for address in ("channels", "channels/c", "search?q=x", "events")],
        await http.post("/bo/conversations", json=body),
    ]
    for answer in answers:
        error = problem_of(answer, 500)
        assert (error["code"], error["details"]) == ("STORAGE_ERROR", "disk on fire")
    assert (await http.get("/health")).status_code == 200


async def test_a_timeout_keeps_its_code(
    http: httpx.AsyncClient, orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def late(*_: Any, **__: Any) -> Any:
        raise OperationTimeout("Took too long.")

    monkeypatch.setattr(orchestrator, "_run", late)
    assert problem_of(await http.get("/bo/search?q=x"), 504)["code"] == "TIMEOUT"


async def test_a_bug_reveals_nothing_to_the_caller(http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        raise RuntimeError("the password is hunter2")

    monkeypatch.setattr("backoffice.executions.describe_graph", broken)
    error = problem_of(await http.get("/bo/ao/graph"), 500)
    assert error["code"] == "INTERNAL_ERROR"
    assert "hunter2" not in str(error)
    assert 'ctxr_http_requests_total{route="/bo/ao/graph",status="500"} 1.0' in (await http.get("/metrics")).text
