"""The servers that are compared: their commands, their start and their certain end."""

from __future__ import annotations

import compileall
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mcp.client.stdio import StdioServerParameters

Command = tuple[str, ...]

ROOT = Path(__file__).parents[2]
CTXR = str(Path(sys.executable).with_name("ctxr"))
BARE = (sys.executable, "-m", "benchmarks.setup.bare_server")

EMPTY_STDIO: Command = (*BARE, "empty")
BARE_STDIO: Command = (*BARE, "stdio")
BARE_HTTP: Command = (*BARE, "http")  # and the port
PRODUCT_STDIO: Command = (CTXR, "mcp")
PRODUCT_HTTP: Command = (CTXR, "serve", "--port")  # and the port

START_SECONDS = 300
MODEL = "CTXR_EMBED_MODEL"
"""Off, what is measured is the search by words; a new registry is read by the built-in model for a while."""


PACKAGES = ("registry", "sources", "orchestrator", "mcp_server", "backoffice", "cli")


def compile_program() -> None:
    """As `make up` and pip leave it: else every start that is measured compiles it anew."""
    for package in PACKAGES:
        compileall.compile_dir(ROOT / package, quiet=1)


def environment(home: Path) -> dict[str, str]:
    """This process's environment with the registry in `home` and no other setting of the product than the model.

    A server that is measured works alone; what the local process makes of it is a measurement of its own.
    """
    inherited = {name: value for name, value in os.environ.items() if name == MODEL or not name.startswith("CTXR_")}
    return inherited | {"CTXR_HOME": str(home), "CTXR_SHARED": "off"}


def stdio(command: Command, home: Path) -> StdioServerParameters:
    """How an MCP client starts a server of its own."""
    return StdioServerParameters(command=command[0], args=list(command[1:]), env=environment(home), cwd=ROOT)


@contextmanager
def http(command: Command, home: Path, env: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run an HTTP server and give its address; whatever happens, it is gone afterwards."""
    port = free_port()
    process = start_http(command, home, port, env)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        end(process)


def start_http(
    command: Command, home: Path, port: int, env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start an HTTP server and return as soon as it accepts connections."""
    log = home / "server.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*command, str(port)], cwd=ROOT, env=env or environment(home), stdout=output, stderr=output
        )
    deadline = time.monotonic() + START_SECONDS
    while not accepts(port):
        ended = process.poll()
        if ended is not None or time.monotonic() > deadline:
            end(process)
            why = "no answer" if ended is None else f"ended with {ended}"
            raise RuntimeError(f"{' '.join(command)} does not start ({why}): {log.read_text(encoding='utf-8')}")
        time.sleep(0.05)
    return process


def until_accepted(port: int) -> None:
    """Wait until somebody listens on a port of this machine."""
    while not accepts(port):
        time.sleep(0.02)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a server (-9) and wait until it is gone."""
    process.kill()
    process.wait()


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def accepts(port: int) -> bool:
    """Whether someone listens on a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
