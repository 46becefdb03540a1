"""Import a large history: rate and memory of the first sync and of later ones, and delays of other writers."""

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
TURN = 6  # messages in each call that logs a conversation during the import
QUIET = 100  # such calls after the import

HEADS = ("sync of three clients' stores", "sessions", "messages", "seconds", "CPU s", "messages/s", "peak MB")
SYNC = (sys.executable, "-m", "cli.entry", "sync", "--json")


@dataclass(frozen=True)
class Pass:
    """A run of `ctxr sync`: wall-clock and CPU seconds of the whole process."""

    what: str
    sessions: int
    messages: int
    seconds: float
    cpu: float
    peak_mb: float

    def row(self) -> tuple[str, ...]:
        rate = f"{self.messages / self.seconds:.0f}" if self.messages else "-"
        took = f"{self.seconds:.2f}", f"{self.cpu:.2f}"
        return self.what, str(self.sessions), str(self.messages), *took, rate, f"{self.peak_mb:.0f}"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def measure() -> list[Pass]:
    """Sync generated stores once, then twice with nothing new: the second time with a warm file cache."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_home(home, SESSIONS)
        return [run(home, name) for name in ("the first time", "nothing new", "nothing new, again")]


def run(home: Path, what: str) -> Pass:
    """Run one `ctxr sync`."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(SYNC, cwd=servers.ROOT, env=user_environment(home), capture_output=True, check=True)
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    stores = json.loads(done.stdout)["stores"]
    parsed, messages = (sum(store[name] for store in stores) for name in ("parsed", "new_messages"))
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Pass(what, parsed, messages, seconds, cpu, after.ru_maxrss / 1024)


def user_environment(home: Path) -> Mapping[str, str]:
    """Return the environment of a user with that home and default settings."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("CTXR_", "XDG_"))}
    return inherited | {"CTXR_HOME": str(home / "registry"), "HOME": str(home)}


@dataclass(frozen=True)
class Delays:
    """Times to log a turn during and after an import by the server, in milliseconds."""

    during: Spread
    quiet: Spread
    longest_import: float
    """The longest of the last recorded import transactions; a call may have to wait for one."""

    def __str__(self) -> str:
        ratios = f"{self.during.p50 / self.quiet.p50:.1f} / {self.during.p95 / self.quiet.p95:.1f}"
        longest = f"longest import transaction {self.longest_import:.0f}"
        return f"{self.during}, afterwards {self.quiet}, ratio {ratios}; {longest}"


async def measure_delays() -> Delays:
    """Time the logging of turns while a server imports these stores for the first time."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_home(home, SESSIONS)
        registry = home / "registry"
        registry.mkdir()
        with servers.http(servers.PRODUCT_HTTP, registry, user_environment(home)) as address:
            async with Client(f"{address}/mcp") as client, httpx.AsyncClient(base_url=address) as browser:
                return await _log_until_imported(client, browser)


async def _log_until_imported(client: Client, browser: httpx.AsyncClient) -> Delays:
    during: list[float] = []
    while await _is_importing(browser):
        during.append(await _log(client, len(during)))
    imports = await browser.get(EXECUTIONS, params={"operation": "import", "limit": 50})
    newest = imports.raise_for_status().json()["items"]
    quiet = [await _log(client, len(during) + more) for more in range(QUIET)]
    return Delays(Spread.of(during), Spread.of(quiet), max(one["duration_ms"] for one in newest))


async def _is_importing(browser: httpx.AsyncClient) -> bool:
    """Return True while sessions of a store are missing. Logged turns do not count: they belong to no client."""
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
