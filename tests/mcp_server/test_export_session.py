"""Test exports of a session by an AI client: as text, or into a new file."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from starlette.applications import Starlette

from mcp_server.server import create_server
from orchestrator.service import Orchestrator
from tests.mcp_server.calls import call

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


@pytest.fixture
async def client(orchestrator: Orchestrator, project: Path) -> AsyncIterator[Client]:
    messages = [{"role": "user", "text": "인증은 어떻게?", "model": "claude-opus-4"}]
    await orchestrator.run({"operation": "save", "channel": "auth", "messages": messages})
    server = create_server(orchestrator.run, ("history",), str(project), is_local=True)
    async with Client(server) as connected:
        yield connected


async def export(client: Client, **arguments: Any) -> dict[str, Any]:
    return await call(client, "export_session", **{"session_id": "auth", **arguments})


async def test_a_session_is_exported_as_text(client: Client) -> None:
    for to, begins in (("markdown", "---\n"), ("json", "{"), ("html", "<!DOCTYPE html>")):
        result = (await export(client, format=to))["result"]
        assert (result["session_id"], result["format"]) == ("auth", to)
        assert result["text"].startswith(begins)
        assert "인증은 어떻게?" in result["text"]


async def test_a_session_is_written_to_a_new_file(client: Client, project: Path) -> None:
    result = (await export(client, format="json", path="auth.json"))["result"]
    assert result == {"session_id": "auth", "format": "json", "path": str(project / "auth.json")}
    written = json.loads((project / "auth.json").read_text(encoding="utf-8"))
    assert (written["messages"][0]["text"], written["messages"][0]["model"]) == ("인증은 어떻게?", "claude-opus-4")


async def test_an_export_overwrites_no_file(client: Client, project: Path) -> None:
    kept = project / "notes.md"
    kept.write_text("mine", encoding="utf-8")
    refused = await export(client, path=str(kept))
    assert refused["error"]["code"] == "INVALID_REQUEST"
    assert "exists already" in refused["error"]["message"]
    assert "; a correct call: export_session({" in refused["error"]["details"]
    assert kept.read_text(encoding="utf-8") == "mine"


NOT_WRITTEN = [
    ({"format": "docx"}, "format: given \"docx\"; allowed: 'markdown', 'json', 'html' or 'pdf'"),
    ({"format": "pdf"}, "path: given none; allowed: a new file that ends in .pdf"),
    ({"path": "no/such/folder/auth.md"}, "allowed: a file in an existing folder"),
    ({"path": ".bashrc"}, "allowed: a name that ends in .md"),
    ({"path": "auth.md", "format": "html"}, "allowed: a name that ends in .html"),
]


async def test_a_path_that_cannot_be_written_is_refused(client: Client, subtests: pytest.Subtests) -> None:
    for arguments, said in NOT_WRITTEN:
        with subtests.test(arguments=arguments, said=said):
            refused = await export(client, **arguments)
            assert refused["error"]["code"] == "INVALID_REQUEST"
            assert said in refused["error"]["details"]


async def test_a_large_document_is_refused_as_text_and_written_to_a_file(
    orchestrator: Orchestrator, client: Client, project: Path
) -> None:
    messages = [{"role": "user", "text": "인증은 어떻게? " * 600}]
    await orchestrator.run({"operation": "save", "channel": "auth", "messages": messages})
    refused = await export(client)
    assert refused["error"]["code"] == "INVALID_REQUEST"
    assert "path: given none; allowed: a new file that ends in .md" in refused["error"]["details"]
    assert (await export(client, path="auth.md"))["result"]["path"] == str(project / "auth.md")


async def test_an_unknown_session_is_not_found(client: Client) -> None:
    assert (await export(client, session_id="none"))["error"]["code"] == "NOT_FOUND"


async def test_a_relative_path_needs_a_known_folder(orchestrator: Orchestrator, client: Client) -> None:
    async with Client(create_server(orchestrator.run, ("all",), is_local=True)) as nowhere:
        refused = await export(nowhere, path="auth.md")
    assert "an absolute path" in refused["error"]["details"]


async def test_the_default_toolset_has_no_tool_that_writes_files(orchestrator: Orchestrator, client: Client) -> None:
    async with Client(create_server(orchestrator.run)) as small:
        assert "export_session" not in {tool.name for tool in (await small.list_tools()).tools}
    assert "export_session" in {tool.name for tool in (await client.list_tools()).tools}


def client_over_http(app: Starlette) -> Client:
    web = httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1:8765")
    return Client(streamable_http_client("http://127.0.0.1:8765/mcp", http_client=web))


async def test_over_http_no_file_is_written_on_the_server(
    orchestrator: Orchestrator, client: Client, project: Path
) -> None:
    served = create_server(orchestrator.run, ("history",), str(project)).streamable_http_app(stateless_http=True)
    async with served.router.lifespan_context(served), client_over_http(served) as remote:
        refused = await export(remote, path=str(project / "auth.md"))
        assert refused["error"]["code"] == "INVALID_REQUEST"
        assert "without it" in refused["error"]["details"]
        assert "인증은 어떻게?" in (await export(remote))["result"]["text"]
    assert os.listdir(project) == []
