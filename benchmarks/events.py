"""Time how soon a client of the event stream sees messages: python -m benchmarks.events [--events N] [--on NAME] …

One client listens to a server, and this process stores the messages. Also measures the cost of an idle stream.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import psycopg

from benchmarks.setup import servers
from benchmarks.setup.figures import Spread
from benchmarks.setup.registries import REGISTRIES
from registry.registry import Registry

EVENTS = 100
PAUSE_S = (3.0, 0.7)
"""Shortest pause between two messages, and its random extra. Long, because a server polls more often after a write."""
IDLE_S = 30.0
HEADS = ("registry", "p50 / p95 from commit to event in ms", "idle: transactions a minute", "server's CPU ms a minute")


def measure(name: str, events: int) -> Iterator[list[str]]:
    """Yield the table row of one registry."""
    with REGISTRIES[name]() as url:
        yield [name, *asyncio.run(_measure(url, events))]


async def _measure(url: str, events: int) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        env = servers.environment(home) | {"CTXR_EMBED_MODEL": "off", "CTXR_DATABASE_URL": url}
        process = servers.start_http(servers.PRODUCT_HTTP, home, port := servers.free_port(), env)
        registry = Registry(url)
        try:
            async with (
                httpx.AsyncClient(timeout=None) as client,  # noqa: S113, the stream has no end
                client.stream("GET", f"http://127.0.0.1:{port}/bo/events") as stream,
            ):
                texts = _texts(stream.aiter_lines())
                await asyncio.sleep(PAUSE_S[0])
                took = [await _time_event(registry, texts, number) for number in range(events)]
                await asyncio.sleep(PAUSE_S[0])
                idle = await _idle(url, process.pid)
        finally:
            registry.close()
            servers.kill(process)
    return [str(Spread.of(took)), *idle]


async def _texts(lines: AsyncIterator[str]) -> AsyncIterator[str]:
    async for line in lines:
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: ")).get("text", "")


async def _time_event(registry: Registry, texts: AsyncIterator[str], number: int) -> float:
    least, more = PAUSE_S
    await asyncio.sleep(least + more * random.random())
    text = f"Message {number}"
    await registry.save_conversation("events", [{"role": "user", "text": text}], "cursor")
    stored = time.monotonic()
    while await anext(texts) != text:
        pass
    return time.monotonic() - stored


async def _idle(url: str, pid: int) -> list[str]:
    before, used = _transactions(url), servers.cpu_seconds(pid)
    await asyncio.sleep(IDLE_S)
    minute = 60 / IDLE_S
    return [f"{minute * (_transactions(url) - before):.0f}", f"{minute * 1000 * (servers.cpu_seconds(pid) - used):.0f}"]


_COMMITTED = "SELECT pg_stat_force_next_flush(), xact_commit FROM pg_stat_database WHERE datname = current_database()"


def _transactions(url: str) -> int:
    """Return the number of committed transactions of the database."""
    with psycopg.connect(url, prepare_threshold=None, autocommit=True) as connection:
        row = connection.execute(_COMMITTED).fetchone()
    return int(row[1]) if row else 0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.events", description=__doc__)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--on", action="append", choices=("postgresql", "pgbouncer"), help="both by default")
    options = parser.parse_args()
    print(*HEADS, sep=" | ")
    for name in options.on or ("postgresql", "pgbouncer"):
        for row in measure(name, options.events):
            print(*row, sep=" | ", flush=True)


if __name__ == "__main__":
    main()
