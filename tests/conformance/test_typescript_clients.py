"""Test the product with the official TypeScript clients, over both transports and in both protocol eras."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.node import INSTALL_SECONDS, Node
from tests.conformance.servers import STDIO, environment

pytestmark = pytest.mark.timeout(INSTALL_SECONDS + 60)

CLIENT = Path(__file__).with_name("client.mjs")
PROTOCOLS = {"v1": "2025-11-25", "v2-legacy": "2025-11-25", "v2-modern": "2026-07-28"}
ASKED = {"role": "user", "text": "피보나치 함수를 memoize 할 수 있을까?", "timestamp": "2026-11-20T09:00:00Z"}
ANSWERED = {"role": "assistant", "text": "Yes: add functools.cache.", "timestamp": "2026-11-20T09:00:05Z"}


@pytest.fixture(params=PROTOCOLS)
def sdk(request: pytest.FixtureRequest) -> str:
    """Return the client library and its protocol era."""
    return str(request.param)


@pytest.fixture(params=["stdio", "http"])
def target(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Return how the client reaches the product."""
    if request.param == "stdio":
        return ("stdio", *STDIO)
    return ("http", request.getfixturevalue("product_url"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return one home for all clients over stdio, so that they share one local process; each has its own channel."""
    return tmp_path_factory.mktemp("home")


def test_a_typescript_client_logs_and_finds_a_conversation(
    sdk: str, target: tuple[str, ...], node: Node, home: Path
) -> None:
    channel = f"cursor_session_{sdk}"
    conversation = {"channel": channel, "messages": [ASKED, ANSWERED]}
    tools, logged, resent, found, bad, missing, unknown = talk(
        node,
        sdk,
        target,
        home,
        {"method": "listTools"},
        call("conversation_log", conversation),
        call("conversation_log", conversation),
        call("extract", {"channel": channel, "query": {"text": "피보나치"}}),
        call("extract", {"channel": channel, "query": {"limit": 0}}),
        call("extract", {"channel": "cursor_session_never_seen", "query": {"text": "피보나치"}}),
        call("no_such_tool", {}),
    )
    assert {"conversation_log", "extract"} <= {tool["name"] for tool in tools["result"]["tools"]}
    assert result_of(logged)["new_count"] == 2
    assert result_of(resent)["new_count"] == 0
    assert result_of(resent)["stored_ids"] == result_of(logged)["stored_ids"]
    assert [m["text"] for m in result_of(found)["messages"]] == [ASKED["text"], ANSWERED["text"]]
    assert error_of(bad)["code"] == "INVALID_REQUEST"
    assert "limit" in json.dumps(error_of(bad)["details"])
    assert error_of(missing)["code"] == "NOT_FOUND"
    assert error_of(unknown)["code"] == "INVALID_REQUEST"
    assert "nearest" in error_of(unknown)["details"]


def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return a client's step: a call of a tool."""
    return {"method": "callTool", "params": {"name": tool, "arguments": arguments}}


def talk(node: Node, sdk: str, target: tuple[str, ...], home: Path, *steps: dict[str, Any]) -> list[dict[str, Any]]:
    """Run the steps in a client; return each answer as {"result"} or {"error"}."""
    script = ("--input-type=module", "--eval", CLIENT.read_text(encoding="utf-8"))
    run = node.run(*script, sdk, *target, given=json.dumps(steps), env=environment(home))
    assert run.returncode == 0, run.stderr
    said = json.loads(run.stdout)
    assert said["protocol"] == PROTOCOLS[sdk]
    return list(said["answers"])


def result_of(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a successful call, after checking that structured content and JSON text agree."""
    envelope = envelope_of(answer)
    assert envelope["ok"], envelope
    return dict(envelope["result"])


def error_of(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the error of a failed call, which is a normal MCP result with `isError`."""
    envelope = envelope_of(answer)
    assert not envelope["ok"], envelope
    assert answer["result"]["isError"]
    return dict(envelope["error"])


def envelope_of(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the envelope of a call with any outcome."""
    result = answer["result"]
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    return dict(result["structuredContent"])
