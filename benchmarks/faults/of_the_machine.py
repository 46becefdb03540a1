"""Faults of the machine: a process that is killed, a full disk, a clock that goes back."""

from __future__ import annotations

import asyncio
import random
import shutil
from contextlib import suppress
from pathlib import Path

from mcp import Client

from benchmarks.faults.service import Service

DISK = "64m"
"""The size of the disk that fills up."""
SETTLED_S = 3.0
TURNS, PATIENCE_S = 10, 300.0
A_PAGE = 4096
WITHOUT_ROOM_S = 10
FAKETIME = str(next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), "libfaketimeMT.so.1"))


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


async def clock_back(running: Service) -> None:
    """Its clock goes back by a day, forward by a year, and is right again, while it runs (Debian's `libfaketime`)."""
    clock = running.home / "clock"
    clock.write_text("+0", encoding="ascii")
    told = {"FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    await running.again(LD_PRELOAD=FAKETIME, **told)
    for offset in ("-1d", "+1y", "+0"):
        await _some_turns(running)
        clock.write_text(offset, encoding="ascii")
    await _some_turns(running)


async def _some_turns(running: Service) -> None:
    """Wait until a few more are acknowledged: at that time, then, it works."""
    until = running.turns() + TURNS
    async with asyncio.timeout(PATIENCE_S):
        while running.turns() < until:  # noqa: ASYNC110, the clients tell it in no other way
            await asyncio.sleep(0.1)
