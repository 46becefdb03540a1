"""Loads: many clients at once, a long mix of reads and writes, and undisturbed writing."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from pathlib import Path

from mcp import Client

from benchmarks.costs.load import CONNECTION_LOST
from benchmarks.faults.service import Service, send_raw

CROWD, LISTENERS = 1000, 500
STEADY_S = 30.0


async def steady(_: Service) -> None:
    """Only let the clients write for `STEADY_S`."""
    await asyncio.sleep(STEADY_S)


async def crowd(running: Service) -> None:
    """Open event streams and unfinished requests, `LISTENERS` of each, and send `CROWD` requests at once."""
    open_requests = [asyncio.create_task(send_raw(running.port, "GET /bo/events", "\r\n")) for _ in range(LISTENERS)]
    open_requests += [asyncio.create_task(send_raw(running.port, "POST /mcp", "")) for _ in range(LISTENERS)]
    requests = [send_raw(running.port, "GET /bo/channels", "Connection: close\r\n\r\n") for _ in range(CROWD)]
    answers = await asyncio.gather(*requests)
    print("  ", dict(Counter(answer[9:12].decode() for answer in answers)), "of", CROWD, flush=True)
    for one in open_requests:
        one.cancel()
    await asyncio.gather(*open_requests, return_exceptions=True)


async def mixed(running: Service, minutes: float) -> None:
    """Search while clients log, and print the server's memory, open files and WAL size now and then."""
    until, lost = time.monotonic() + 60 * minutes, 0
    while time.monotonic() < until:
        try:
            await _questions(running.url)
        except CONNECTION_LOST:
            lost += 1
        print(f"   {_figures(running)}, {lost} connections lost", flush=True)
        await asyncio.sleep(min(minutes * 3, 60))


async def _questions(url: str) -> None:
    async with Client(url) as client:
        for _ in range(20):
            await client.call_tool("extract", {"query": {"text": "check it please"}})
            await client.call_tool("list_sessions", {"project": "all"})


def _figures(running: Service) -> str:
    about = Path(f"/proc/{running.pid}")
    memory = next(line for line in (about / "status").read_text().splitlines() if line.startswith("VmRSS"))
    log = running.home / "registry.db-wal"
    wal = log.stat().st_size if log.exists() else 0
    return f"{memory.split()[1]} kB, {len(os.listdir(about / 'fd'))} open files, {wal >> 10} kB of WAL"
