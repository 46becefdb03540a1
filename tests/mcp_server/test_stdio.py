"""Test the server as a client starts it: a process on pipes that opens its registry after the handshake."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from mcp.types import INVALID_REQUEST, PARSE_ERROR

from tests.conformance.servers import environment

HEAVY = ("numpy", "orchestrator.semantic.meaning", "sqlalchemy", "langgraph", "fastapi", "alembic", "httpx")
PROGRAM = f"""
import json, sys
from mcp_server.transport.stdio import run_stdio
loaded = [name for name in {HEAVY} if name in sys.modules]
from orchestrator.operations import operations
operations()
print(json.dumps([loaded, "langgraph" in sys.modules]), flush=True)
run_stdio()
"""


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    """Start a server whose registry cannot be opened, past its handshake."""
    home = tmp_path_factory.mktemp("home")
    (home / "registry").mkdir()
    (home / "registry" / "registry.db").write_bytes(b"no database at all" * 100)
    first = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**environment(home), "CTXR_SHARED": "off"},
        text=True,
    ) as started:
        loaded, operations_load_the_graph = receive(started)
        assert loaded == [], "the handshake loads neither graph nor database"
        assert not operations_load_the_graph
        send(started, json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": first}), "")
        assert receive(started)["id"] == 1
        yield started
        assert started.stdin
        started.stdin.close()


def send(process: subprocess.Popen[str], *lines: str) -> None:
    assert process.stdin
    process.stdin.write("\n".join(lines) + "\n")
    process.stdin.flush()


def receive(process: subprocess.Popen[str]) -> Any:
    assert process.stdout
    return json.loads(process.stdout.readline())


def test_a_registry_that_cannot_be_opened_is_an_error_answer_and_no_crash(process: subprocess.Popen[str]) -> None:
    for number in range(2):
        call = {"name": "extract", "arguments": {"query": {"text": "fibonacci"}}}
        send(process, json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}))
        assert receive(process)["result"]["structuredContent"]["error"]["code"] == "STORAGE_ERROR"


UNREADABLE: tuple[tuple[str, int | str | None, int], ...] = (
    (
        r'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list","arguments":{"q":"\ud800"}}}',
        7,
        PARSE_ERROR,
    ),
    (r'{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"\udfff"}}', "a", PARSE_ERROR),
    ('{"id":8,"method":"ping"}', 8, INVALID_REQUEST),
    ('{"jsonrpc":"2.0","id":9,', None, PARSE_ERROR),
    ("[" * 5000, None, PARSE_ERROR),
)


def test_an_unreadable_line_gets_an_error_and_the_next_one_its_answer(process: subprocess.Popen[str]) -> None:
    for line, request_id, code in UNREADABLE:
        send(process, line, json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}))
        answers = [receive(process) for _ in range(2)]
        [error] = [answer["error"] for answer in answers if answer["id"] == request_id]
        assert error["code"] == code, line
        assert {answer["id"] for answer in answers} == {2, request_id}
