"""Test the application as a whole: health, metrics, documentation, startup and shutdown."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from backoffice.app import create_app
from registry.settings import Settings
from tests.backoffice.conftest import Log

pytestmark = pytest.mark.anyio


async def test_the_server_says_that_it_is_alive_and_ready(http: httpx.AsyncClient) -> None:
    assert (await http.get("/health")).json() == {"status": "ok"}
    assert (await http.get("/ready")).json() == {"status": "ready"}


async def test_metrics_count_operations_and_requests(http: httpx.AsyncClient, log: Log) -> None:
    await log("커서/1", "hello")
    await log("c", "hello")
    await http.get("/bo/channels/%EC%BB%A4%EC%84%9C/1")
    await http.get("/bo/search?q=hello&channel=nobody")
    await http.get("/nowhere")
    answer = await http.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    lines = answer.text.splitlines()
    assert (
        'ctxr_operations_total{door="http",operation="conversation_log",outcome="succeeded",source="unknown"} 2.0'
        in lines
    )
    assert 'ctxr_operations_total{door="http",operation="search",outcome="NOT_FOUND",source="api"} 1.0' in lines
    assert 'ctxr_operation_duration_seconds_count{door="http",operation="conversation_log"} 2.0' in lines
    assert 'ctxr_http_requests_total{route="/bo/conversations",status="201"} 2.0' in lines
    assert 'ctxr_http_requests_total{route="/bo/channels/{channel:path}",status="200"} 1.0' in lines
    assert 'ctxr_http_requests_total{route="other",status="404"} 1.0' in lines
    assert any(line.startswith("process_cpu_seconds_total") for line in lines)
    assert "ctxr_operations_running 0.0" in lines
    assert "커서" not in answer.text


async def test_metric_labels_have_few_values_for_any_callers(http: httpx.AsyncClient) -> None:
    for number in range(3):
        log = {"channel": f"c{number}", "messages": [{"role": "user", "text": f"said {number}"}]}
        await http.post("/bo/conversations", json={**log, "meta": {"source": f"heron-{number}"}})
        await http.get(f"/bo/search?q=said&channel=c{number}", headers={"user-agent": f"heron/{number}"})
    lines = (await http.get("/metrics")).text.splitlines()
    assert len([line for line in lines if line.startswith("ctxr_operations_total")]) == 2
    assert not any("heron" in line for line in lines)


class Elements(HTMLParser):
    """Collect a page's elements and the addresses of its links and sources."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.addresses: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.addresses += [value for name, value in attrs if name in ("href", "src") and value]


async def test_the_index_links_to_pages_that_exist(http: httpx.AsyncClient) -> None:
    addresses = [one for one in Elements((await http.get("/")).text).addresses if not one.startswith("#")]
    assert "/insights" in addresses
    for address in addresses:
        assert (await http.get(address)).status_code == 200


async def test_the_documentation_loads_nothing_from_other_sites(http: httpx.AsyncClient) -> None:
    page = (await http.get("/docs")).text
    elements = Elements(page)
    assert "script" not in elements.tags
    assert all(address.startswith("/") for address in elements.addresses)
    assert "/openapi.json" in elements.addresses
    assert "PATCH /bo/channels/{channel}" in page
    assert "Make this recursion faster" in page, "an example of a body"
    assert "seconds of one point of the series" in page, "a field of an answer"


def operations_of(document: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method} {path}", operation)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]


async def test_every_route_is_described_and_none_answers_422(http: httpx.AsyncClient) -> None:
    document = (await http.get("/openapi.json")).json()
    page = (await http.get("/docs")).text
    for name, operation in operations_of(document):
        assert operation["description"], name
        assert "422" not in operation["responses"], name
        assert "4XX" in operation["responses"], name
        if "requestBody" in operation:
            assert operation["requestBody"]["content"]["application/json"], name
    assert len({operation["operationId"] for _, operation in operations_of(document)}) == len(operations_of(document))
    for path in document["paths"]:
        assert f"<code>GET {path}</code>" in page or f"<code>POST {path}</code>" in page


async def test_the_document_describes_every_parameter_and_how_to_send_a_token(http: httpx.AsyncClient) -> None:
    document = (await http.get("/openapi.json")).json()
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    parameters = [parameter for operation in operations for parameter in operation.get("parameters", [])]
    assert len(parameters) > 40
    assert [parameter["name"] for parameter in parameters if not parameter.get("description")] == []
    assert document["components"]["securitySchemes"] == {"token": {"type": "http", "scheme": "bearer"}}
    assert {"token": []} in document["security"]


async def test_every_reference_in_the_document_resolves(http: httpx.AsyncClient) -> None:
    text = (await http.get("/openapi.json")).text
    shapes = (await http.get("/openapi.json")).json()["components"]["schemas"]
    referenced = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert referenced <= shapes.keys()


def test_the_registry_and_background_work_are_open_while_the_server_runs(sqlite_url: str) -> None:
    stages = []

    @asynccontextmanager
    async def beside() -> AsyncIterator[None]:
        stages.append("entered")
        yield
        stages.append("left")

    app = create_app(Settings(database_url=sqlite_url), server_context=beside)
    with TestClient(app, base_url="http://localhost") as client:
        assert stages == ["entered"]
        assert client.get("/ready").status_code == 200
    assert stages == ["entered", "left"]


async def test_every_answer_has_a_content_type_and_head_answers_as_get(http: httpx.AsyncClient) -> None:
    for address in ("/bo/channels", "/health", "/docs", "/", "/openapi.json", "/bo/channels/nothing"):
        got, head = await http.get(address), await http.head(address)
        assert got.headers["X-Content-Type-Options"] == "nosniff"
        assert (head.status_code, head.content) == (got.status_code, b"")
    assert (await http.head("/bo/events")).status_code == 405


async def test_a_long_answer_is_compressed(http: httpx.AsyncClient) -> None:
    assert (await http.get("/openapi.json")).headers["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in (await http.get("/health")).headers


async def test_the_documentation_has_the_headers_of_every_page(http: httpx.AsyncClient) -> None:
    page = await http.get("/docs")
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert "<style" not in page.text
