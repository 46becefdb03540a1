"""Bringing in a big history: rate and memory of the first sync, one with nothing new, what others wait meanwhile."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx
from mcp import Client

from benchmarks.costs.breakdown import EXECUTIONS
from benchmarks.setup import servers
from benchmarks.setup.conversations import conversation
from benchmarks.setup.figures import Spread
from benchmarks.setup.homes import write_home

SESSIONS = {"claude-code": 400, "codex": 200, "cursor": 200}
TURN = 6  # messages of a call that logs a conversation meanwhile
QUIET = 100  # such calls when all is in

HEADS = ("sync of three clients' stores", "sessions", "messages", "seconds", "CPU s", "messages/s", "peak MB")
SYNC = (sys.executable, "-m", "cli.entry", "sync", "--json")


@dataclass(frozen=True)
class Pass:
    """One run of `ctxr sync`; `seconds` of the whole process, from start to exit, `cpu` those it really worked."""

    what: str
    sessions: int
    messages: int
    seconds: float
    cpu: float
    peak_mb: float

    def row(self) -> tuple[str, ...]:
        """The pass as a line of a table."""
        rate = f"{self.messages / self.seconds:.0f}" if self.messages else "-"
        took = f"{self.seconds:.2f}", f"{self.cpu:.2f}"
        return self.what, str(self.sessions), str(self.messages), *took, rate, f"{self.peak_mb:.0f}"

    def as_json(self) -> dict[str, Any]:
        """The pass for machines."""
        return asdict(self)


def measure() -> list[Pass]:
    """The first sync of generated stores, then two with nothing new: the second has a warm file system."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_home(home, SESSIONS)
        return [run(home, name) for name in ("the first time", "nothing new", "nothing new, again")]


def run(home: Path, what: str) -> Pass:
    """One `ctxr sync` as a process of its own."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(SYNC, cwd=servers.ROOT, env=at_home(home), capture_output=True, check=True)
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    stores = json.loads(done.stdout)["stores"]
    parsed, messages = (sum(store[name] for store in stores) for name in ("parsed", "new_messages"))
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Pass(what, parsed, messages, seconds, cpu, after.ru_maxrss / 1024)


def at_home(home: Path) -> Mapping[str, str]:
    """The environment of somebody who lives there."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("CTXR_", "XDG_"))}
    return inherited | {"CTXR_HOME": str(home / "registry"), "HOME": str(home)}


@dataclass(frozen=True)
class Meanwhile:
    """What a client waits that logs a turn while a server brings in histories, and when all is in."""

    during: Spread
    quiet: Spread
    longest_import: float
    """Milliseconds of the longest of the imports that were recorded last: who logs waits for its end."""

    def __str__(self) -> str:
        ratios = f"{self.during.p50 / self.quiet.p50:.1f} / {self.during.p95 / self.quiet.p95:.1f}"
        longest = f"longest import at a time {self.longest_import:.0f}"
        return f"{self.during}, when all is in {self.quiet}, ratio {ratios}; {longest}"


async def meanwhile() -> Meanwhile:
    """How long a client waits that logs a turn while a server brings in these stores for the first time."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_home(home, SESSIONS)
        registry = home / "registry"
        registry.mkdir()
        with servers.http(servers.PRODUCT_HTTP, registry, at_home(home)) as address:
            async with Client(f"{address}/mcp") as client, httpx.AsyncClient(base_url=address) as browser:
                return await _log_until_all_is_in(client, browser)


async def _log_until_all_is_in(client: Client, browser: httpx.AsyncClient) -> Meanwhile:
    during: list[float] = []
    while await _are_missing(browser):
        during.append(await _log(client, len(during)))
    imports = await browser.get(EXECUTIONS, params={"operation": "import", "limit": 50})
    newest = imports.raise_for_status().json()["items"]
    quiet = [await _log(client, len(during) + more) for more in range(QUIET)]
    return Meanwhile(Spread.of(during), Spread.of(quiet), max(one["duration_ms"] for one in newest))


async def _are_missing(browser: httpx.AsyncClient) -> bool:
    """Whether some sessions of a store have not come in yet; what is logged meanwhile is of no client."""
    totals = {
        source: (await browser.get("/bo/channels", params={"limit": 1, "source": source})).json()["total"]
        for source in SESSIONS
    }
    return any(totals[source] < count for source, count in SESSIONS.items())


async def _log(client: Client, number: int) -> float:
    turn = {"channel": f"meanwhile_{number}", "messages": conversation(number, TURN)}
    started = time.perf_counter()
    answer = await client.call_tool("conversation_log", turn)
    took = time.perf_counter() - started
    assert not answer.is_error, answer.content
    return took
