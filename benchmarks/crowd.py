"""Load one server with 1, 8 and 64 writers, on each database: python -m benchmarks.crowd [--seconds S] [--on NAME] …

Each writer logs its own conversation turn by turn over MCP, and uses the same CPUs as the server. PostgreSQL syncs
each commit to disk, as SQLite does.
"""

from __future__ import annotations

import argparse
import asyncio
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
TIMEOUT_S = 60.0
HEADS = ("registry", "writers", "messages/s", "p50 / p95 in ms", "server's CPU ms a message", "lost", "doubled")


def measure(name: str, seconds: float) -> Iterator[list[str]]:
    """Yield the table rows of one registry."""
    with REGISTRIES[name]() as url:
        for count in WRITERS:
            yield [name, str(count), *asyncio.run(run_writers(url, count, seconds))]


async def run_writers(url: str, count: int, seconds: float) -> list[str]:
    """Run `count` writers for some seconds; return the row's figures."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        env = servers.environment(home) | {"CTXR_EMBED_MODEL": "off"} | ({"CTXR_DATABASE_URL": url} if url else {})
        process = servers.start_http(servers.PRODUCT_HTTP, home, port := servers.free_port(), env)
        try:
            writers = [Writer(f"writer{number}", f"cursor_session_{count}_{number}") for number in range(count)]
            async with AsyncExitStack() as stack:
                address = f"http://127.0.0.1:{port}/mcp"
                clients = [
                    await stack.enter_async_context(Client(address, read_timeout_seconds=TIMEOUT_S)) for _ in writers
                ]
                before, took, began = servers.cpu_seconds(process.pid), list[float](), time.monotonic()
                async with asyncio.TaskGroup() as group:
                    for client, writer in zip(clients, writers, strict=True):
                        group.create_task(_write_until(client, writer, began + seconds, took))
                used, lasted = servers.cpu_seconds(process.pid) - before, time.monotonic() - began
                found = await audit(writers, clients[0])
        finally:
            servers.kill(process)
    acknowledged = found.acknowledged
    figures = (f"{acknowledged / lasted:.0f}", str(Spread.of(took)), f"{1000 * used / acknowledged:.1f}")
    return [*figures, str(found.lost), str(found.doubled)]


async def _write_until(client: Client, writer: Writer, end: float, took: list[float]) -> None:
    while (started := time.monotonic()) < end:
        await writer.log_turn(client)
        took.append(time.monotonic() - started)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crowd", description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="duration of each measurement")
    parser.add_argument("--on", action="append", choices=REGISTRIES, help="may be repeated; all by default")
    options = parser.parse_args()
    print(*HEADS, sep=" | ")
    for name in options.on or REGISTRIES:
        for row in measure(name, options.seconds):
            print(*row, sep=" | ", flush=True)


if __name__ == "__main__":
    main()
