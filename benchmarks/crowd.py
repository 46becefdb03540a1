"""1, 8 and 64 writers at one server, on each database: python -m benchmarks.crowd [--seconds S] [--on NAME] …

Every writer has a conversation of its own and tells it turn by turn over MCP; PostgreSQL writes to disk what it
acknowledges, as SQLite does. The writers take their share of the machine too.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

from mcp import Client

from benchmarks.setup import servers
from benchmarks.setup.figures import Spread
from benchmarks.setup.registries import REGISTRIES
from benchmarks.setup.writers import Writer, audit

WRITERS = (1, 8, 64)
SECONDS = 20.0
PATIENCE_S = 60.0
HEADS = ("registry", "writers", "messages/s", "p50 / p95 in ms", "server's CPU ms a message", "lost", "doubled")


def measure(name: str, seconds: float) -> Iterator[list[str]]:
    """The lines of the table for one registry."""
    with REGISTRIES[name]() as url:
        for count in WRITERS:
            yield [name, str(count), *asyncio.run(crowded(url, count, seconds))]


async def crowded(url: str, count: int, seconds: float) -> list[str]:
    """What so many writers get done."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        env = servers.environment(home) | {"CTXR_EMBED_MODEL": "off"} | ({"CTXR_DATABASE_URL": url} if url else {})
        process = servers.start_http(servers.PRODUCT_HTTP, home, port := servers.free_port(), env)
        try:
            writers = [Writer(f"writer{number}", f"cursor_session_{count}_{number}") for number in range(count)]
            async with AsyncExitStack() as stack:
                address = f"http://127.0.0.1:{port}/mcp"
                clients = [
                    await stack.enter_async_context(Client(address, read_timeout_seconds=PATIENCE_S)) for _ in writers
                ]
                before, took, began = _cpu(process.pid), list[float](), time.monotonic()
                async with asyncio.TaskGroup() as group:
                    for client, writer in zip(clients, writers, strict=True):
                        group.create_task(_tell(client, writer, began + seconds, took))
                used, lasted = _cpu(process.pid) - before, time.monotonic() - began
                found = await audit(writers, clients[0])
        finally:
            servers.end(process)
    told = found.acknowledged
    figures = (f"{told / lasted:.0f}", str(Spread.of(took)), f"{1000 * used / told:.1f}")
    return [*figures, str(found.lost), str(found.doubled)]


async def _tell(client: Client, writer: Writer, end: float, took: list[float]) -> None:
    while (started := time.monotonic()) < end:
        await writer.log_turn(client)
        took.append(time.monotonic() - started)


def _cpu(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crowd", description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each line")
    parser.add_argument("--on", action="append", choices=REGISTRIES, help="may be repeated; all by default")
    options = parser.parse_args()
    print(*HEADS, sep=" | ")
    for name in options.on or REGISTRIES:
        for row in measure(name, options.seconds):
            print(*row, sep=" | ", flush=True)


if __name__ == "__main__":
    main()
