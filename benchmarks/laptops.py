"""Sync two laptops over connections that break: python -m benchmarks.laptops [--rounds N] [--on NAME]

Three real servers run. A client on each laptop logs turn by turn, in its own conversation and in a shared one, while
each connection to the remote registry breaks after a random number of bytes, in a request or in an answer. The laptops
exchange several times a second, so that many exchanges are interrupted. In each round both laptops and the remote
registry are killed once (-9). At the end the connections hold, and all three are checked for the acknowledged messages:
`lost` and `doubled` should be 0.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import shutil
import subprocess
import tempfile
from collections import Counter
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from httpx2 import AsyncClient
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from benchmarks.costs.load import log_until_stopped, own_and_shared_writer
from benchmarks.faults.service import Service, serve, service
from benchmarks.setup import servers
from benchmarks.setup.registries import REGISTRIES
from benchmarks.setup.writers import Writer, audit
from orchestrator.remote import background_exchange

LAPTOPS = ("laptop1", "laptop2")
MAX_BREAKS = 500
INTERVAL_S = 0.2
"""Pause between two exchanges of a laptop, and before a retry."""
CHUNK = 500  # bytes
REQUEST, ANSWER = "in requests", "in answers"
MEAN_BYTES = {REQUEST: 1_500, ANSWER: 5_000}
"""Mean number of bytes after which a connection breaks: most exchanges succeed, but few of the long pushes."""
TIMEOUT_S = 300.0
HEADS = ("machine", "messages acknowledged", "lost", "doubled")


class UnreliableProxy:
    """A proxy to a local port whose connections break, unless `is_reliable`."""

    def __init__(self, to: int) -> None:
        self._to, self.port = to, servers.free_port()
        self.is_reliable = False
        self.bytes_forwarded = 0
        self.breaks = Counter[str]()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", self.port)
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._server.close()

    async def _connect(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        try:
            far, forth = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:  # the server was killed
            back.transport.abort()
            return
        with suppress(OSError, ExceptionGroup, asyncio.CancelledError):  # cancelled at the end of the run
            async with asyncio.TaskGroup() as group:
                group.create_task(self._forward(near, forth, REQUEST))
                group.create_task(self._forward(far, back, ANSWER))
        for writer in (forth, back):
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: str) -> None:
        """Forward data; at a break the bytes before it still arrive, so that the message is incomplete."""
        left = round(random.expovariate(1 / MEAN_BYTES[way]))
        while chunk := await reader.read(CHUNK):
            breaks = len(chunk) > left and not self.is_reliable and self.breaks.total() < MAX_BREAKS
            passed = chunk[:left] if breaks else chunk
            left -= len(passed)
            self.bytes_forwarded += len(passed)
            writer.write(passed)
            await writer.drain()
            if breaks:
                self.breaks[way] += 1
                await asyncio.sleep(0)  # lets the bytes be sent before the connection is closed
                break
        raise ConnectionResetError  # closes the other direction too


def _serve_with_short_pauses(home: Path, port: int, env: dict[str, str]) -> None:
    """Run `ctxr serve` with short pauses between exchanges."""
    background_exchange.INTERVAL_S = background_exchange.MAX_BACKOFF_S = INTERVAL_S
    serve(home, port, env)


class Laptop:
    """A laptop's registry and server, and the writers of its client."""

    def __init__(self, name: str, home: Path, remote_url: str, token: str) -> None:
        remote = {"CTXR_REMOTE_URL": remote_url, "CTXR_TOKEN": token}
        self.name, self.writers = name, own_and_shared_writer(name)
        self.service = Service(home, **remote)
        self.service.forked = _serve_with_short_pauses

    async def exchange(self) -> None:
        """Pull and push until nothing waits to be sent."""
        async with asyncio.timeout(TIMEOUT_S):
            while True:
                for way in ("pull", "push"):
                    await _ctxr(self.service, way, "--json")
                if not json.loads(await _ctxr(self.service, "status", "--json"))["waiting"]:
                    return


async def _ctxr(machine: Service, *words: str) -> str:
    """Run a command in a service's environment and return its output."""
    done = await asyncio.to_thread(
        subprocess.run, [servers.CTXR, *words], env=machine.env, capture_output=True, text=True, check=False
    )
    return done.stdout


async def _token(remote: Service) -> str:
    made = await _ctxr(remote, "token", "create", "--name", "laptops", "--scope", "write", "--json")
    return str(json.loads(made)["token"])


async def run(database: str, rounds: int) -> None:
    """Run the laptops, break connections, kill servers, and print what each machine has."""
    async with AsyncExitStack() as stack:
        remote = stack.enter_context(service(database))
        token = await _token(remote)
        proxy = await stack.enter_async_context(UnreliableProxy(remote.port))
        laptops = list[Laptop]()
        for name in LAPTOPS:
            home = Path(tempfile.mkdtemp(prefix=f"ctxr-{name}-"))
            stack.callback(shutil.rmtree, home, ignore_errors=True)
            laptops.append(await asyncio.to_thread(Laptop, name, home, f"http://127.0.0.1:{proxy.port}", token))
            stack.callback(laptops[-1].service.kill)
            await laptops[-1].service.restart_quickly()
        errors = await _write_and_kill(laptops, remote, rounds)
        proxy.is_reliable = True
        for laptop in (*laptops, *laptops):  # the first pulls what the second pushes
            await laptop.exchange()
        broken = ", ".join(f"{times} {way}" for way, times in sorted(proxy.breaks.items()))
        traffic = f"{proxy.breaks.total()} breaks ({broken}), {proxy.bytes_forwarded >> 10} kB"
        print(f"{traffic}, {3 * rounds} kills, {errors} errors")
        print(*HEADS, sep=" | ")
        all_writers = list(itertools.chain(*(laptop.writers for laptop in laptops)))
        print("remote", *await _audit(remote, all_writers, token), sep=" | ", flush=True)
        for laptop in laptops:
            print(laptop.name, *await _audit(laptop.service, all_writers), sep=" | ", flush=True)


async def _write_and_kill(laptops: list[Laptop], remote: Service, rounds: int) -> int:
    """Let both laptops write while one machine after the other is killed; return the number of wrong answers."""
    errors, stop = list[str](), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for laptop in laptops:
            group.create_task(log_until_stopped(laptop.service.url, laptop.writers, stop, errors))
        for machine in (*(laptop.service for laptop in laptops), remote) * rounds:
            await asyncio.sleep(random.uniform(1, 4))
            await machine.restart_quickly()
        stop.set()
    for error in errors[:5]:
        print("  ", error)
    return len(errors)


async def _audit(machine: Service, all_writers: list[Writer], token: str = "") -> tuple[int, int, int]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        AsyncClient(headers=headers, timeout=TIMEOUT_S) as http,
        Client(streamable_http_client(machine.url, http_client=http)) as reader,
    ):
        found = await audit(all_writers, reader)
    return found.acknowledged, found.lost, found.doubled


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.laptops", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--on", default="sqlite", choices=REGISTRIES, help="database of the remote registry")
    options = parser.parse_args()
    asyncio.run(run(options.on, options.rounds))


if __name__ == "__main__":
    main()
