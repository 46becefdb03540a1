"""Two laptops and a registry elsewhere, over a line that breaks: python -m benchmarks.laptops [--rounds N] [--on NAME]

Three real servers. A client on each laptop logs turn by turn, in a conversation of its own and in one that both share,
while every connection to the registry elsewhere breaks after any number of bytes, in what is sent or in an answer. The
laptops exchange several times a second, so that dozens of breaks meet the exchange at work. In each round each laptop
and the registry elsewhere are killed once (-9). Then the line holds, and what was acknowledged is looked for on all
three machines: `lost` and `doubled` should be 0.
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
MOST_BREAKS = 500
"""Then the line holds."""
INTERVAL_S = 0.2
"""A laptop exchanges, or tries again, this often."""
PIECE = 500
SENT, ANSWERED = "in what was sent", "in answers"
CARRIED = {SENT: 1_500, ANSWERED: 5_000}
"""Bytes after which a connection breaks, in the mean: most exchanges go through, a long push only now and then."""
PATIENCE_S = 300.0
HEADS = ("machine", "messages acknowledged", "lost", "doubled")


class Line:
    """What lies between the laptops and a port of this machine: connections that break, unless it `holds`."""

    def __init__(self, to: int) -> None:
        self._to, self.port = to, servers.free_port()
        self.holds = False
        self.carried = 0
        self.breaks = Counter[str]()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", self.port)
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._server.close()

    async def _carry(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        try:
            far, forth = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:  # it was killed
            back.transport.abort()
            return
        with suppress(OSError, ExceptionGroup, asyncio.CancelledError):  # cancelled when all is over
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass_on(near, forth, SENT))
                group.create_task(self._pass_on(far, back, ANSWERED))
        for writer in (forth, back):
            writer.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: str) -> None:
        """Pass on what comes; the last bytes before a break arrive, so that the other side has half of it."""
        left = round(random.expovariate(1 / CARRIED[way]))
        while piece := await reader.read(PIECE):
            breaks = len(piece) > left and not self.holds and self.breaks.total() < MOST_BREAKS
            passed = piece[:left] if breaks else piece
            left -= len(passed)
            self.carried += len(passed)
            writer.write(passed)
            await writer.drain()
            if breaks:
                self.breaks[way] += 1
                await asyncio.sleep(0)  # it leaves before the connection does
                break
        raise ConnectionResetError  # one side has gone: so does the other


def _serve_often(home: Path, port: int, env: dict[str, str]) -> None:
    """`ctxr serve` on a laptop that does not wait long for the line."""
    background_exchange.INTERVAL_S = background_exchange.MAX_BACKOFF_S = INTERVAL_S
    serve(home, port, env)


class Laptop:
    """A machine with a registry of its own, its server, and a client that logs there."""

    def __init__(self, name: str, home: Path, elsewhere: str, token: str) -> None:
        remote = {"CTXR_REMOTE_URL": elsewhere, "CTXR_TOKEN": token}
        self.name, self.writers = name, own_and_shared_writer(name)
        self.service = Service(home, **remote)
        self.service.forked = _serve_often

    async def exchange(self) -> None:
        """Push and pull until nothing waits."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for way in ("pull", "push"):
                    await _ctxr(self.service, way, "--json")
                if not json.loads(await _ctxr(self.service, "status", "--json"))["waiting"]:
                    return


async def _ctxr(there: Service, *words: str) -> str:
    """What a command says in a service's folder."""
    done = await asyncio.to_thread(
        subprocess.run, [servers.CTXR, *words], env=there.env, capture_output=True, text=True, check=False
    )
    return done.stdout


async def _token(elsewhere: Service) -> str:
    made = await _ctxr(elsewhere, "token", "create", "--name", "laptops", "--scope", "write", "--json")
    return str(json.loads(made)["token"])


async def apart(database: str, rounds: int) -> None:
    """Let it happen, and print what is where."""
    async with AsyncExitStack() as stack:
        elsewhere = stack.enter_context(service(database))
        token = await _token(elsewhere)
        line = await stack.enter_async_context(Line(elsewhere.port))
        laptops = list[Laptop]()
        for name in LAPTOPS:
            home = Path(tempfile.mkdtemp(prefix=f"ctxr-{name}-"))
            stack.callback(shutil.rmtree, home, ignore_errors=True)
            laptops.append(await asyncio.to_thread(Laptop, name, home, f"http://127.0.0.1:{line.port}", token))
            stack.callback(laptops[-1].service.kill)
            await laptops[-1].service.soon_again()
        errors = await _go_on(laptops, elsewhere, rounds)
        line.holds = True
        for laptop in (*laptops, *laptops):  # the first pulls what the second pushes
            await laptop.exchange()
        broken = ", ".join(f"{times} {way}" for way, times in sorted(line.breaks.items()))
        print(f"{line.breaks.total()} breaks ({broken}), {line.carried >> 10} kB, {3 * rounds} kills, {errors} errors")
        print(*HEADS, sep=" | ")
        told = list(itertools.chain(*(laptop.writers for laptop in laptops)))
        print("elsewhere", *await _found(elsewhere, told, token), sep=" | ", flush=True)
        for laptop in laptops:
            print(laptop.name, *await _found(laptop.service, told), sep=" | ", flush=True)


async def _go_on(laptops: list[Laptop], elsewhere: Service, rounds: int) -> int:
    """Both write while one after the other is killed; how many calls were answered wrongly."""
    errors, stop = list[str](), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for laptop in laptops:
            group.create_task(log_until_stopped(laptop.service.url, laptop.writers, stop, errors))
        for machine in (*(laptop.service for laptop in laptops), elsewhere) * rounds:
            await asyncio.sleep(random.uniform(1, 4))
            await machine.soon_again()
        stop.set()
    for error in errors[:5]:
        print("  ", error)
    return len(errors)


async def _found(machine: Service, told: list[Writer], token: str = "") -> tuple[int, int, int]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        AsyncClient(headers=headers, timeout=PATIENCE_S) as http,
        Client(streamable_http_client(machine.url, http_client=http)) as reader,
    ):
        found = await audit(told, reader)
    return found.acknowledged, found.lost, found.doubled


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.laptops", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--on", default="sqlite", choices=REGISTRIES, help="what is elsewhere")
    options = parser.parse_args()
    asyncio.run(apart(options.on, options.rounds))


if __name__ == "__main__":
    main()
