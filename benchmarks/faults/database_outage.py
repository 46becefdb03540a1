"""An outage of PostgreSQL, as when its machine restarts."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from benchmarks.faults.service import Service
from benchmarks.setup.registries import folder_of, server_user

BEFORE_S = 15.0
AWAY_S = 15.0
WINDOW_S = 3.0  # the rate is averaged over this time
RECOVERED = 0.9  # share of the earlier rate
RECOVERY_TIMEOUT_S = 120.0


async def outage(running: Service) -> None:
    """Stop PostgreSQL immediately, start it after `AWAY_S`, and wait until clients are as fast as before."""
    before = await _rate(running, BEFORE_S)
    data = folder_of(running.database_url) / "data"
    command = shlex.split((data / "postmaster.opts").read_text(encoding="utf-8"))
    await asyncio.to_thread(_stop, data)
    during = await _rate(running, AWAY_S)
    server = await asyncio.to_thread(_start, command)
    running.at_end.callback(server.wait)
    running.at_end.callback(server.send_signal, signal.SIGQUIT)
    started = time.monotonic()
    took, rate = await _wait_for_rate(running, RECOVERED * before, started)
    print(
        f"   {before:.1f} turns/s before, {during:.1f} during the outage, {rate:.1f} again after {took:.1f} s",
        flush=True,
    )


def _stop(data: Path) -> None:
    """Stop the server immediately (SIGQUIT) and wait until it has ended."""
    pid = int((data / "postmaster.pid").read_text(encoding="utf-8").split()[0])
    os.kill(pid, signal.SIGQUIT)
    while (data / "postmaster.pid").exists():
        time.sleep(0.05)


def _start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, user=server_user(), stdout=quiet, stderr=quiet, start_new_session=True)


async def _rate(running: Service, seconds: float) -> float:
    """Measure the acknowledged turns per second for some seconds."""
    acknowledged, began = running.turns(), time.monotonic()
    await asyncio.sleep(seconds)
    return (running.turns() - acknowledged) / (time.monotonic() - began)


async def _wait_for_rate(running: Service, enough: float, started: float) -> tuple[float, float]:
    """Wait for a window with at least the rate `enough`; return the seconds until its begin, and its rate."""
    seen = deque([(started, running.turns())])
    while True:
        await asyncio.sleep(0.25)
        now = time.monotonic()
        seen.append((now, running.turns()))
        while seen[-1][0] - seen[1][0] >= WINDOW_S:
            seen.popleft()
        rate = (seen[-1][1] - seen[0][1]) / (now - seen[0][0])
        is_whole = now - seen[0][0] >= WINDOW_S
        if (is_whole and rate >= enough) or now - started > RECOVERY_TIMEOUT_S:
            return seen[0][0] - started, rate
