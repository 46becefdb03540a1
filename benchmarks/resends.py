"""What a chat costs that comes again whole: python -m benchmarks.resends [--messages N …] [--megabytes N]

Processor time of a real `ctxr serve`, from the first byte of a call over HTTP to the last of its answer: N known
messages and two new ones; the same to a bare server of the same SDK that only counts them; and one message of many
megabytes. The line of a client counts as well: its own time is not ours, and left out.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from statistics import median
from typing import Any

from mcp import Client

from benchmarks.costs.calls import log
from benchmarks.setup import servers
from benchmarks.setup.conversations import Message, conversation
from benchmarks.setup.figures import table

ROUNDS = 11
BEFORE = 3
"""Rounds that do not count: what was loaded late, and what a new process does once."""
SEND_AT_ONCE = 500
HEADS = ("processor time of the server in ms", "median", "most", "bare server")


def processor_time(pid: int) -> float:
    """Seconds that all threads of another process have worked (Linux: its clock has a number of its own)."""
    return time.clock_gettime(~pid << 3 | 2)


async def resent(known: int, pid: int, url: str) -> list[float]:
    """Seconds for each of some turns in which `known` messages come again with two new ones."""
    messages = conversation(seed=known, count=known + 2 * (BEFORE + ROUNDS))
    channel = f"claude_session_resent_{known}"
    async with Client(url, read_timeout_seconds=600) as client:
        for start in range(0, known, SEND_AT_ONCE):
            await log(client, channel, messages[start : min(known, start + SEND_AT_ONCE)])
        took = [
            await _cost(pid, log(client, channel, messages[: known + 2 * turn]))
            for turn in range(1, BEFORE + ROUNDS + 1)
        ]
    return took[BEFORE:]


async def bare(known: int, pid: int, url: str) -> float:
    """The same turns to a server that does nothing with them; the median."""
    messages = conversation(seed=known, count=known + 2)
    arguments = {"channel": "claude_session_resent", "messages": messages}
    async with Client(url, read_timeout_seconds=600) as client:
        took = [await _cost(pid, client.call_tool("acknowledge", arguments)) for _ in range(BEFORE + ROUNDS)]
    return median(took[BEFORE:])


async def long_message(megabytes: int, pid: int, url: str) -> list[float]:
    """Seconds for each of three conversations with one message of so many megabytes."""
    async with Client(url, read_timeout_seconds=600) as client:
        return [
            await _cost(pid, log(client, f"claude_session_long_{seed}", [_long(seed, megabytes)])) for seed in range(3)
        ]


def _long(seed: int, megabytes: int) -> Message:
    text = "\n".join(message["text"] for message in conversation(seed, 2600 * megabytes))
    cut = text.encode()[: megabytes * 1_000_000].decode(errors="ignore")
    return {"role": "user", "text": cut}


async def _cost(pid: int, call: Coroutine[Any, Any, object]) -> float:
    before = processor_time(pid)
    await call
    return processor_time(pid) - before


async def measure(sizes: list[int], megabytes: int, show: Callable[[tuple[str, ...]], None]) -> None:
    """Both, on one registry."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        env = servers.environment(home) | {"CTXR_EMBED_MODEL": "off", "HOME": folder}
        port, other = servers.free_port(), servers.free_port()
        product = servers.start_http(servers.PRODUCT_HTTP, home, port, env)
        plain = servers.start_http(servers.BARE_HTTP, home, other)
        try:
            for known in sizes:
                took = await resent(known, product.pid, f"http://127.0.0.1:{port}/mcp")
                beside = await bare(known, plain.pid, f"http://127.0.0.1:{other}/mcp")
                show(_row(f"{known} known and 2 new", took, beside))
            if megabytes:
                took = await long_message(megabytes, product.pid, f"http://127.0.0.1:{port}/mcp")
                show(_row(f"one message of {megabytes} MB", took))
        finally:
            servers.end(product)
            servers.end(plain)


def _row(what: str, took: list[float], beside: float | None = None) -> tuple[str, ...]:
    other = "-" if beside is None else f"{beside * 1000:.1f}"
    return (what, f"{median(took) * 1000:.1f}", f"{max(took) * 1000:.1f}", other)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.resends", description=__doc__)
    parser.add_argument("--messages", type=int, nargs="*", default=[100, 1000, 2000, 10_000])
    parser.add_argument("--megabytes", type=int, default=13)
    options = parser.parse_args()
    rows: list[tuple[str, ...]] = []
    asyncio.run(measure(options.messages, options.megabytes, rows.append))
    print(table(HEADS, rows))


if __name__ == "__main__":
    main()
