"""Commands that start the product and the bare servers, and functions to start and end them."""

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
BARE_HTTP: Command = (*BARE, "http")  # the caller adds the port
PRODUCT_STDIO: Command = (CTXR, "mcp")
PRODUCT_HTTP: Command = (CTXR, "serve", "--port")  # the caller adds the port

START_SECONDS = 300
MODEL = "CTXR_EMBED_MODEL"
"""Set to "off" to measure search by words only: the built-in model would index a new registry in the background."""


PACKAGES = ("registry", "sources", "orchestrator", "mcp_server", "backoffice", "cli")


def compile_program() -> None:
    """Compile the packages as `make up` and pip do, so that measured starts do not compile them."""
    for package in PACKAGES:
        compileall.compile_dir(ROOT / package, quiet=1)


def environment(home: Path) -> dict[str, str]:
    """Return this process's environment with the registry in `home` and no other setting of the product than the model.

    The local process is off; `windows` measures it.
    """
    inherited = {name: value for name, value in os.environ.items() if name == MODEL or not name.startswith("CTXR_")}
    return inherited | {"CTXR_HOME": str(home), "CTXR_SHARED": "off"}


def stdio(command: Command, home: Path) -> StdioServerParameters:
    """Return the parameters with which an MCP client starts a stdio server."""
    return StdioServerParameters(command=command[0], args=list(command[1:]), env=environment(home), cwd=ROOT)


@contextmanager
def http(command: Command, home: Path, env: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run an HTTP server, yield its address, and kill it at the end."""
    port = free_port()
    process = start_http(command, home, port, env)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        kill(process)


def start_http(
    command: Command, home: Path, port: int, env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start an HTTP server and return as soon as it accepts connections. RuntimeError if it does not start."""
    log = home / "server.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*command, str(port)], cwd=ROOT, env=env or environment(home), stdout=output, stderr=output
        )
    deadline = time.monotonic() + START_SECONDS
    while not accepts(port):
        ended = process.poll()
        if ended is not None or time.monotonic() > deadline:
            kill(process)
            why = "no answer" if ended is None else f"ended with {ended}"
            raise RuntimeError(f"{' '.join(command)} does not start ({why}): {log.read_text(encoding='utf-8')}")
        time.sleep(0.05)
    return process


def wait_until_accepting(port: int) -> None:
    """Wait until a local port accepts connections."""
    while not accepts(port):
        time.sleep(0.02)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a server (-9) and wait until it is gone."""
    process.kill()
    process.wait()


def cpu_seconds(pid: int) -> float:
    """Return the seconds of CPU that a process and its threads have used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    """Return a free local port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
