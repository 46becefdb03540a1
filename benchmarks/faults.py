"""What a registry does when things break: python -m benchmarks.faults [--only NAME …] [--kills N] [--minutes N]

Each fault happens to a real `ctxr serve` while clients log turn by turn; then what they were told is stored is held
against what is. `lost` and `doubled` should be 0. On PostgreSQL too, where it says so.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import multiprocessing
import os
import random
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from mcp import Client

from benchmarks.load import HTTP_CLIENTS, OUTCOME_HEADS, Outcome, outcome, two_conversations, write_on
from benchmarks.setup import servers
from benchmarks.writers import Writer, audit
from cli.main import cli
from tests.databases import running_postgres

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["cli.main", "cli.running.serve"])


def _serve(home: Path, port: int, env: dict[str, str]) -> None:
    """`ctxr serve` in a process that was forked."""
    os.environ.clear()
    os.environ.update(env)
    with (home / "server.log").open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    cli(["serve", "--port", str(port)], prog_name="ctxr")


SETTLED_S = 3.0
"""After the last fault, until the clients stop."""
DISK = "64m"
"""The size of the disk that fills up."""
A_PAGE = 4096
WITHOUT_ROOM_S = 10


class Service:
    """`ctxr serve` in a folder of its own, which can be ended and started again, as another command if need be."""

    def __init__(self, home: Path, database_url: str = "") -> None:
        self.home, self.port = home, servers.free_port()
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        given = {"CTXR_DATABASE_URL": database_url} if database_url else {}
        # No history of who runs this is read, and no model takes the processor.
        self._env = servers.environment(home) | {"CTXR_EMBED_MODEL": "off", "HOME": str(home), **given}
        self.process: subprocess.Popen[bytes] | ForkServerProcess = self._started()

    def _started(self, **more: str) -> subprocess.Popen[bytes]:
        return servers.start_http(servers.PRODUCT_HTTP, self.home, self.port, self._env | more)

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
        self.process = FORKED.Process(target=_serve, args=(self.home, self.port, self._env))
        self.process.start()
        await asyncio.to_thread(servers.until_accepted, self.port)
        await _ask(self.port, "GET /health", "Connection: close\r\n\r\n")  # it listens before it answers


@contextmanager
def service(database: str, disk: str = "") -> Iterator[Service]:
    """One over a new registry on `sqlite` or `postgresql`; `disk`: in memory, of that size, and its own (root only)."""
    with ExitStack() as stack:
        home = Path(tempfile.mkdtemp(prefix="ctxr-faults-"))
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        if disk:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={disk}", "tmpfs", home], check=True)
            stack.callback(lambda: subprocess.run(["umount", "--lazy", home], check=True))
        url = ""
        if database == "postgresql":
            server = running_postgres(fsync="on", full_page_writes="on", synchronous_commit="on")
            url = stack.enter_context(stack.enter_context(server).database())
        running = Service(home, url)
        stack.callback(running.kill)
        yield running


Fault = Callable[[Service], Awaitable[None]]


async def under_load(what: str, fault: Fault, database: str = "sqlite", disk: str = "") -> Outcome:
    """Clients log while the fault happens, and a little longer; then all is read back."""
    writers = [two_conversations(f"client{number}") for number in range(HTTP_CLIENTS)]
    errors = list[str]()
    with service(database, disk) as running:
        started = time.monotonic()
        async with _writing(running.url, writers, errors):
            await fault(running)
            await asyncio.sleep(SETTLED_S)
        took = time.monotonic() - started
        async with Client(running.url) as reader:
            found = await audit(list(itertools.chain(*writers)), reader)
    return outcome(f"{what}, {database}", writers, took, errors, found)


@asynccontextmanager
async def _writing(url: str, writers: Sequence[Sequence[Writer]], errors: list[str]) -> AsyncIterator[None]:
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for told in writers:
            group.create_task(write_on(url, told, stop, errors))
        yield
        stop.set()


async def kills(running: Service, count: int) -> None:
    """`kill -9` at any moment of its work."""
    for _ in range(count):
        await asyncio.sleep(random.uniform(0.2, 1.5))
        await running.soon_again()


async def full_disk(running: Service) -> None:
    """Its disk, which it has for itself, fills up, and stays so for a while once something was refused."""
    await asyncio.sleep(SETTLED_S)
    filler = running.home / "filler"
    with filler.open("wb", buffering=0) as full, suppress(OSError):
        while full.write(b"0" * A_PAGE):
            pass
    print("  ", shutil.disk_usage(running.home).free, "bytes of room", flush=True)
    refused = 0
    async with Client(running.url) as client:
        while not refused:
            told = {"channel": "claude_session_full", "messages": [{"role": "user", "text": "x" * A_PAGE}]}
            refused += (await client.call_tool("conversation_log", told)).is_error
            await asyncio.sleep(0.1)
    await asyncio.sleep(WITHOUT_ROOM_S)
    filler.unlink()


FAKETIME = str(next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), "libfaketimeMT.so.1"))


async def clock_back(running: Service) -> None:
    """Its clock goes back by a day, forward by a year, and is right again, while it runs (Debian's `libfaketime`)."""
    clock = running.home / "clock"
    clock.write_text("+0", encoding="ascii")
    told = {"FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    await running.again(LD_PRELOAD=FAKETIME, **told)
    for offset in ("-1d", "+1y", "+0"):
        await asyncio.sleep(SETTLED_S)
        clock.write_text(offset, encoding="ascii")


CROWD, LISTENERS = 1000, 500


async def crowd(running: Service) -> None:
    """Beside those who log five hundred listen, as many send requests that never end, and a thousand ask at once."""
    held = [asyncio.create_task(_ask(running.port, "GET /bo/events", "\r\n")) for _ in range(LISTENERS)]
    held += [asyncio.create_task(_ask(running.port, "POST /mcp", "")) for _ in range(LISTENERS)]
    asked = [_ask(running.port, "GET /bo/channels", "Connection: close\r\n\r\n") for _ in range(CROWD)]
    answers = await asyncio.gather(*asked)
    print("  ", dict(Counter(answer[9:12].decode() for answer in answers)), "of", CROWD, flush=True)
    for one in held:
        one.cancel()
    await asyncio.gather(*held, return_exceptions=True)


async def _ask(port: int, what: str, end: str) -> bytes:
    """What is answered to a request, whose headers may never end."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{what} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{end}".encode())
        answer = await reader.read()
        writer.close()
    except OSError as exc:
        return type(exc).__name__.encode()
    return answer


async def mixed(running: Service, minutes: float) -> None:
    """Questions beside what is logged; once in a while its memory, open files and log of writes are printed."""
    until = time.monotonic() + 60 * minutes
    while time.monotonic() < until:
        async with Client(running.url) as client:
            for _ in range(20):
                await client.call_tool("extract", {"query": {"text": "check it please"}})
                await client.call_tool("list_sessions", {"project": "all"})
        print("  ", _figures(running), flush=True)
        await asyncio.sleep(min(minutes * 3, 60))


def _figures(running: Service) -> str:
    about = Path(f"/proc/{running.pid}")
    memory = next(line for line in (about / "status").read_text().splitlines() if line.startswith("VmRSS"))
    log = running.home / "registry.db-wal"
    wal = log.stat().st_size if log.exists() else 0
    return f"{memory.split()[1]} kB, {len(os.listdir(about / 'fd'))} files, {wal >> 10} kB of log"


def faults(options: argparse.Namespace) -> dict[str, tuple[Fault, Sequence[str]]]:
    """By name, what happens, and on which databases."""
    both = ("sqlite", "postgresql")
    return {
        "kills": (lambda running: kills(running, options.kills), both),
        "full-disk": (full_disk, ("sqlite",)),
        "clock": (clock_back, both),
        "crowd": (crowd, both),
        "mixed": (lambda running: mixed(running, options.minutes), ("sqlite",)),
    }


def main() -> None:
    """Let happen what is asked for, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="one fault; may be repeated")
    parser.add_argument("--on", action="append", metavar="DATABASE", help="sqlite or postgresql; may be repeated")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long the mixed load goes on")
    options = parser.parse_args()
    print(*OUTCOME_HEADS, sep=" | ")
    for name, (fault, databases) in faults(options).items():
        for database in databases:
            if name in (options.only or [name]) and database in (options.on or [database]):
                disk = DISK if fault is full_disk else ""
                print(*asyncio.run(under_load(name, fault, database, disk)).row(), sep=" | ", flush=True)


if __name__ == "__main__":
    main()
