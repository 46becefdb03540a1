"""Time a cold start: from the start of a stdio server's process to its answer to `tools/list`."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.setup import servers
from benchmarks.setup.figures import Comparison, Spread

PAIRS = 10
AIM = 2.0
LEAVE_SECONDS = 10
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1.0"},
}


def measure(pairs: int = PAIRS) -> Comparison:
    """Start an empty server and the product alternately; the first round creates the registry and is not counted."""
    with tempfile.TemporaryDirectory() as folder:
        rounds = [
            (
                seconds_to_tools(servers.EMPTY_STDIO, Path(folder)),
                seconds_to_tools(servers.PRODUCT_STDIO, Path(folder)),
            )
            for _ in range(1 + pairs)
        ]
    empty, product = zip(*rounds[1:], strict=True)
    return Comparison("cold start to tools/list", Spread.of(empty), Spread.of(product), AIM)


def seconds_to_tools(command: servers.Command, home: Path) -> float:
    """Return the seconds from a server's start to its list of tools."""
    started = time.perf_counter()
    process = open_window(command, servers.environment(home))
    try:
        return time.perf_counter() - started
    finally:
        close_window(process)


def open_window(command: servers.Command, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a server, initialize the connection and list its tools, as a client does."""
    process = subprocess.Popen(
        command,
        cwd=servers.ROOT,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    ask(process, "initialize", HELLO)
    send_message(process, {"method": "notifications/initialized"})
    ask(process, "tools/list", {})
    return process


def close_window(process: subprocess.Popen[bytes]) -> None:
    """Close the connection and wait until the server has ended."""
    try:
        process.communicate(timeout=LEAVE_SECONDS)
    except subprocess.TimeoutExpired:
        servers.kill(process)


def ask(process: subprocess.Popen[bytes], method: str, params: dict[str, Any]) -> None:
    """Send a request and wait for its answer. RuntimeError if the server ends."""
    send_message(process, {"id": method, "method": method, "params": params})
    assert process.stdout is not None
    for line in process.stdout:
        answer = json.loads(line)
        if answer.get("id") == method:
            assert "result" in answer, answer
            return
    raise RuntimeError(f"The server ended instead of answering {method}")


def send_message(process: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    """Send one JSON-RPC message."""
    assert process.stdin is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()
