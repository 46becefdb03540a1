"""A real `ctxr serve` in a folder of its own, which can be ended and started again."""

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
    """`ctxr serve` in a process that was forked."""
    os.environ.clear()
    os.environ.update(env)
    with (home / "server.log").open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    cli(["serve", "--port", str(port)], prog_name="ctxr")


class Service:
    """It serves over HTTP, under another command if need be."""

    def __init__(self, home: Path, database_url: str = "", at_end: ExitStack | None = None, /, **more: str) -> None:
        self.home, self.port, self.database_url = home, servers.free_port(), database_url
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.turns: Callable[[], int] = int
        """How many turns those who log were told are stored."""
        self.forked = serve
        """What a fork of this process does to serve."""
        self.at_end = at_end or ExitStack()
        """Ends what a fault leaves running, when the registry is gone."""
        given = {"CTXR_DATABASE_URL": database_url} if database_url else {}
        # No history of who runs this is read, and no model takes the processor.
        self.env = servers.environment(home) | {"CTXR_EMBED_MODEL": "off", "HOME": str(home), **given, **more}
        self.process: subprocess.Popen[bytes] | ForkServerProcess = self._started()

    def _started(self, **more: str) -> subprocess.Popen[bytes]:
        return servers.start_http(servers.PRODUCT_HTTP, self.home, self.port, self.env | more)

    async def again(self, **more: str) -> None:
        """Kill it (-9) and start it again, with more in its environment."""
        self.kill()
        self.process = await asyncio.to_thread(partial(self._started, **more))

    @property
    def pid(self) -> int:
        """Of the process that serves."""
        return self.process.pid or 0

    def kill(self) -> None:
        """End it at once, and wait until it is gone."""
        self.process.kill()
        self.process.join() if isinstance(self.process, ForkServerProcess) else self.process.wait()

    async def soon_again(self) -> None:
        """The same, in a process that has the program in it already: a hundred starts would take too long."""
        self.kill()
        self.process = FORKED.Process(target=self.forked, args=(self.home, self.port, self.env))
        self.process.start()
        await asyncio.to_thread(servers.until_accepted, self.port)
        await asked(self.port, "GET /health", "Connection: close\r\n\r\n")  # it listens before it answers


@contextmanager
def service(database: str, disk: str = "") -> Iterator[Service]:
    """One over a new registry, by its database's name; `disk`: in memory, of that size, and its own (root only)."""
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


async def asked(port: int, what: str, end: str) -> bytes:
    """What is answered to a request, whose headers may never end."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{what} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{end}".encode())
        answer = await reader.read()
        writer.close()
    except OSError as exc:
        return type(exc).__name__.encode()
    return answer
