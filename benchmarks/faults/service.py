"""A real `ctxr serve` with its own home, which can be killed and restarted."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from benchmarks.setup import servers
from benchmarks.setup.registries import REGISTRIES
from cli.main import cli

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["cli.main", "cli.running.serve"])


def serve(home: Path, port: int, env: dict[str, str]) -> None:
    """Run `ctxr serve` in a forked process."""
    os.environ.clear()
    os.environ.update(env)
    with (home / "server.log").open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    cli(["serve", "--port", str(port)], prog_name="ctxr")


class Service:
    """A running `ctxr serve`. `more` are further environment variables."""

    def __init__(self, home: Path, database_url: str = "", at_end: ExitStack | None = None, /, **more: str) -> None:
        self.home, self.port, self.database_url = home, servers.free_port(), database_url
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.turns: Callable[[], int] = int
        """Returns the number of turns that were acknowledged to all clients."""
        self.forked = serve
        """The function that a forked process runs."""
        self.at_end = at_end or ExitStack()
        """Stops what a fault has started, after the server has ended."""
        given = {"CTXR_DATABASE_URL": database_url} if database_url else {}
        # HOME: the user's own histories must not be imported
        self.env = servers.environment(home) | {"CTXR_EMBED_MODEL": "off", "HOME": str(home), **given, **more}
        self.process: subprocess.Popen[bytes] | ForkServerProcess = self._start()

    def _start(self, **more: str) -> subprocess.Popen[bytes]:
        return servers.start_http(servers.PRODUCT_HTTP, self.home, self.port, self.env | more)

    async def restart(self, **more: str) -> None:
        """Kill the server (-9) and start it with further environment variables."""
        self.kill()
        self.process = await asyncio.to_thread(partial(self._start, **more))

    @property
    def pid(self) -> int:
        return self.process.pid or 0

    def kill(self) -> None:
        """Kill the server (-9) and wait until it has ended."""
        self.process.kill()
        self.process.join() if isinstance(self.process, ForkServerProcess) else self.process.wait()

    async def restart_quickly(self) -> None:
        """Kill the server and start it as a fork that has imported the program, which is faster than `restart`."""
        self.kill()
        self.process = FORKED.Process(target=self.forked, args=(self.home, self.port, self.env))
        self.process.start()
        await asyncio.to_thread(servers.wait_until_accepting, self.port)
        await send_raw(self.port, "GET /health", "Connection: close\r\n\r\n")  # waits until it answers


@contextmanager
def service(database: str, disk: str = "") -> Iterator[Service]:
    """Run a service with a new registry on the named database; `disk`: size of a RAM disk for its home (needs root)."""
    with ExitStack() as stack:
        home = Path(tempfile.mkdtemp(prefix="ctxr-faults-"))
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        if disk:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={disk}", "tmpfs", home], check=True)
            stack.callback(lambda: subprocess.run(["umount", "--lazy", home], check=True))
        at_end = stack.enter_context(ExitStack())
        running = Service(home, stack.enter_context(REGISTRIES[database]()), at_end)
        stack.callback(running.kill)
        yield running


async def send_raw(port: int, what: str, end: str) -> bytes:
    """Send a request line and `end`, which may leave the headers unfinished; return the answer or the error's name."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{what} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{end}".encode())
        answer = await reader.read()
        writer.close()
    except OSError as exc:
        return type(exc).__name__.encode()
    return answer
