"""Loads: a crowd at once, a long mixture, and a pooler between the program and its database."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from pathlib import Path

from mcp import Client

from benchmarks.costs.load import CONNECTION_LOST
from benchmarks.faults.service import Service, asked

CROWD, LISTENERS = 1000, 500
STEADY_S = 30.0


async def steady(_: Service) -> None:
    """Nothing happens for a while."""
    await asyncio.sleep(STEADY_S)


async def crowd(running: Service) -> None:
    """Beside those who log five hundred listen, as many send requests that never end, and a thousand ask at once."""
    held = [asyncio.create_task(asked(running.port, "GET /bo/events", "\r\n")) for _ in range(LISTENERS)]
    held += [asyncio.create_task(asked(running.port, "POST /mcp", "")) for _ in range(LISTENERS)]
    all_asked = [asked(running.port, "GET /bo/channels", "Connection: close\r\n\r\n") for _ in range(CROWD)]
    answers = await asyncio.gather(*all_asked)
    print("  ", dict(Counter(answer[9:12].decode() for answer in answers)), "of", CROWD, flush=True)
    for one in held:
        one.cancel()
    await asyncio.gather(*held, return_exceptions=True)


async def mixed(running: Service, minutes: float) -> None:
    """Questions beside what is logged; once in a while its memory, open files and log of writes are printed."""
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
    return f"{memory.split()[1]} kB, {len(os.listdir(about / 'fd'))} files, {wal >> 10} kB of log"
