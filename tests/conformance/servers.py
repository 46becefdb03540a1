"""Servers under test, each a separate process with an empty registry."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
CTXR = str(Path(sys.executable).with_name("ctxr"))
STDIO = (CTXR, "mcp")
HTTP = (CTXR, "serve", "--port")
START_SECONDS = 120
LEAKING = ("CTXR_", "LANGSMITH_", "LANGCHAIN_", "CLAUDE_", "CODEX_", "CURSOR_", "GEMINI_", "COPILOT_")
"""Prefixes of settings that would let a test read the developer's own histories and accounts."""


def environment(home: Path) -> dict[str, str]:
    """Return this process's environment with an empty registry in `home` and no other settings of the product."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith((*LEAKING, "XDG_"))}
    return inherited | {"HOME": str(home), "CTXR_HOME": str(home / "registry"), "CTXR_EMBED_MODEL": "off"}


@contextmanager
def http_server(command: Sequence[str], home: Path) -> Iterator[str]:
    """Start a server whose command ends with its port; yield the address of its MCP endpoint."""
    port = free_port()
    process = subprocess.Popen([*command, str(port)], cwd=ROOT, env=environment(home))
    try:
        wait_for(port, process)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    """Return a port on which no program listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the process accepts connections."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"{process.args!r} does not answer on port {port} (exit status {process.poll()})")
