"""Faults of the machine: a killed process, a full disk, a wrong clock."""

from __future__ import annotations

import asyncio
import random
import shutil
from contextlib import suppress
from pathlib import Path

from mcp import Client

from benchmarks.faults.service import Service

DISK = "64m"  # size of the disk that fills up
SETTLED_S = 3.0
TURNS, TIMEOUT_S = 10, 300.0
PAGE_BYTES = 4096
FULL_S = 10
FAKETIME = str(next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), "libfaketimeMT.so.1"))


async def kills(running: Service, count: int) -> None:
    """Kill the server (-9) at random moments and start it again, `count` times."""
    for _ in range(count):
        await asyncio.sleep(random.uniform(0.2, 1.5))
        await running.restart_quickly()


async def full_disk(running: Service) -> None:
    """Fill the server's own disk until a message is refused, keep it full for `FULL_S`, and free it."""
    await asyncio.sleep(SETTLED_S)
    filler = running.home / "filler"
    with filler.open("wb", buffering=0) as full, suppress(OSError):
        while full.write(b"0" * PAGE_BYTES):
            pass
    print("  ", shutil.disk_usage(running.home).free, "bytes free", flush=True)
    refused = 0
    async with Client(running.url) as client:
        while not refused:
            message = {"channel": "claude_session_full", "messages": [{"role": "user", "text": "x" * PAGE_BYTES}]}
            refused += (await client.call_tool("conversation_log", message)).is_error
            await asyncio.sleep(0.1)
    await asyncio.sleep(FULL_S)
    filler.unlink()


async def wrong_clock(running: Service) -> None:
    """Set the running server's clock back by a day, forward by a year, and right again (by Debian's `libfaketime`)."""
    clock = running.home / "clock"
    clock.write_text("+0", encoding="ascii")
    faketime = {"FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    await running.restart(LD_PRELOAD=FAKETIME, **faketime)
    for offset in ("-1d", "+1y", "+0"):
        await _wait_for_turns(running)
        clock.write_text(offset, encoding="ascii")
    await _wait_for_turns(running)


async def _wait_for_turns(running: Service) -> None:
    """Wait until `TURNS` more turns are acknowledged, which shows that the server works. TimeoutError if not."""
    until = running.turns() + TURNS
    async with asyncio.timeout(TIMEOUT_S):
        while running.turns() < until:  # noqa: ASYNC110, the clients set no event
            await asyncio.sleep(0.1)
