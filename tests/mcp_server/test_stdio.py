"""The server as a client starts it: a process on pipes, its registry opened behind the handshake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated

from registry.registry import Registry
from tests.conformance.servers import environment

HEAVY = ("numpy", "orchestrator.semantic.meaning", "sqlalchemy", "langgraph", "fastapi", "alembic", "httpx")
MESSAGES = [{"role": "user", "text": "fibonacci?"}, {"role": "assistant", "text": "memoize"}]


@pytest.mark.anyio
async def test_what_one_process_logs_another_finds_and_is_told_of(tmp_path: Path) -> None:
    uri = "registry://channels/c"
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "mcp_server"], env={**os.environ, "CTXR_HOME": str(tmp_path)}
    )
    async with Client(server) as claude, claude.listen(resource_subscriptions=[uri]) as news:
        await claude.call_tool("list_sessions", {})
        registry = Registry(f"sqlite:///{tmp_path / 'registry.db'}")
        await registry.save_conversation("c", MESSAGES, "cursor")
        registry.close()
        with anyio.fail_after(60):
            assert await anext(aiter(news)) == ResourceUpdated(uri)
        found = await claude.call_tool("extract", {"query": {"text": "fibonacci"}})
    assert found.structured_content is not None
    assert [m["text"] for m in found.structured_content["result"]["messages"]] == ["fibonacci?", "memoize"]


def test_the_handshake_waits_for_no_graph_and_no_database() -> None:
    code = f"import sys, mcp_server.transport.stdio; print([name for name in {HEAVY} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    """A server past its handshake, whose registry cannot be opened."""
    home = tmp_path_factory.mktemp("home")
    (home / "registry").mkdir()
    (home / "registry" / "registry.db").write_bytes(b"no database at all" * 100)
    first = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    with subprocess.Popen(
        [sys.executable, "-m", "mcp_server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**environment(home), "CTXR_SHARED": "off"},
        text=True,
    ) as started:
        say(started, json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": first}), "")
        assert heard(started)["id"] == 1
        yield started
        assert started.stdin
        started.stdin.close()


def say(process: subprocess.Popen[str], *lines: str) -> None:
    assert process.stdin
    process.stdin.write("\n".join(lines) + "\n")
    process.stdin.flush()


def heard(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout
    answer: dict[str, Any] = json.loads(process.stdout.readline())
    return answer


def test_a_registry_that_cannot_be_opened_is_an_answer_not_a_crash(process: subprocess.Popen[str]) -> None:
    for number in range(2):
        call = {"name": "extract", "arguments": {"query": {"text": "fibonacci"}}}
        say(process, json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}))
        assert heard(process)["result"]["structuredContent"]["error"]["code"] == "STORAGE_ERROR"


@pytest.mark.parametrize(
    ("line", "request_id"),
    [
        (
            r'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list","arguments":{"q":"\ud800"}}}',
            7,
        ),
        (r'{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"\udfff"}}', "a"),
        ('{"id":8,"method":"ping"}', 8),
        ('{"jsonrpc":"2.0","id":9,', None),
        ("[" * 5000, None),
    ],
)
def test_a_line_that_cannot_be_read_gets_an_error_and_the_next_one_its_answer(
    process: subprocess.Popen[str], line: str, request_id: int | str | None
) -> None:
    say(process, line, json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}))
    answers = [heard(process) for _ in range(2)]
    [error] = [answer["error"] for answer in answers if answer["id"] == request_id]
    assert error["code"] in (-32700, -32600)
    assert {answer["id"] for answer in answers} == {2, request_id}
