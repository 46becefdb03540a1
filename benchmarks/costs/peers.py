"""The product beside fast-resume, which also indexes the histories of coding agents: same home, same run.

It is another kind of program, native code that keeps an index of the text to resume a session from; ours keeps the
messages themselves. Install it where it disturbs nothing, `pip install fast-resume` in a folder of its own, and give
the path of its program `fr`. Only stores that both read are measured.
"""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from mcp import Client

from benchmarks.costs.sync import SYNC, at_home
from benchmarks.setup import servers
from benchmarks.setup.conversations import questions
from benchmarks.setup.homes import MESSAGES_EACH, write_home

SESSIONS = {"claude-code": 500, "codex": 250}
MESSAGES = MESSAGES_EACH * sum(SESSIONS.values())
ROUNDS = 1
IDLE_ROUNDS = 5
SEARCHES = 10

HEADS = ("medians", "fast-resume", "ctxr")


@dataclass(frozen=True)
class Outcome:
    """Seconds, as medians; of the server none where a program has no server."""

    first: float
    nothing_new: float
    search: float
    search_of_server: float | None = None

    def as_json(self) -> dict[str, Any]:
        """The outcome for machines."""
        return asdict(self) | {"messages_per_s": MESSAGES / self.first}

    def cells(self) -> list[str]:
        """The outcome as a column."""
        served = "-" if self.search_of_server is None else f"{self.search_of_server * 1000:.0f} ms"
        return [
            f"{self.first:.2f} s",
            f"{MESSAGES / self.first:.0f}",
            f"{self.nothing_new * 1000:.0f} ms",
            f"{self.search * 1000:.0f} ms",
            served,
        ]


LINES = (
    f"first indexing of {MESSAGES} messages in {sum(SESSIONS.values())} sessions",
    "  messages/s",
    "nothing new, whole process",
    "search, whole process",
    "search, asked of a running server",
)


def rows(peer: Outcome, ours: Outcome) -> list[tuple[str, ...]]:
    """Both as lines of a table."""
    return list(zip(LINES, peer.cells(), ours.cells(), strict=True))


def find(given: str | None) -> str | None:
    """The peer's program: the one given, or the one on the PATH."""
    return shutil.which(given or "fr")


async def measure(program: str) -> tuple[Outcome, Outcome]:
    """The peer's outcome and ours, each step done by both in turn."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_home(home, SESSIONS)
        peer: Runner = _runner(home, (program, "--json", "--limit", "10"))
        sync, search = _runner(home, SYNC), _runner(home, (servers.CTXR, "search", "--json", "--limit", "10"))
        first = [(_anew(home / ".cache", peer), _anew(home / "registry", sync)) for _ in range(ROUNDS)]
        _check(home, program)
        idle = [(peer(), sync()) for _ in range(IDLE_ROUNDS)]
        asked = [(peer(text), search(text)) for text in itertools.islice(questions(seed=1), SEARCHES)]
        served = await _served(home)
    (their_first, our_first), (their_idle, our_idle), (their_search, our_search) = map(_medians, (first, idle, asked))
    return Outcome(their_first, their_idle, their_search), Outcome(our_first, our_idle, our_search, served)


Runner = Callable[..., float]


def _runner(home: Path, command: Sequence[str]) -> Runner:
    def run(*words: str) -> float:
        started = time.perf_counter()
        subprocess.run([*command, *words], cwd=servers.ROOT, env=at_home(home), capture_output=True, check=True)
        return time.perf_counter() - started

    return run


def _anew(index: Path, run: Runner) -> float:
    shutil.rmtree(index, ignore_errors=True)
    return run()


def _check(home: Path, program: str) -> None:
    """Both must have found all of it."""
    for command in ([program, "--json", "--limit", "1"], [servers.CTXR, "list", "--limit", "1", "--json"]):
        done = subprocess.run(command, cwd=servers.ROOT, env=at_home(home), capture_output=True, check=True)
        answer = json.loads(done.stdout)
        found = answer.get("meta", answer.get("pagination"))["total"]
        assert found == sum(SESSIONS.values()), (command, found)


async def _served(home: Path) -> float:
    with servers.http(servers.PRODUCT_HTTP, home / "registry", at_home(home)) as address:
        async with Client(f"{address}/mcp") as client:
            times = [await _ask(client, text) for text in itertools.islice(questions(seed=2), 2 * SEARCHES)]
    return median(times[SEARCHES:])


async def _ask(client: Client, text: str) -> float:
    started = time.perf_counter()
    answer = await client.call_tool("search_sessions", {"query": text, "limit": 10})
    assert not answer.is_error, answer.content
    return time.perf_counter() - started


def _medians(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    theirs, ours = zip(*pairs, strict=True)
    return median(theirs), median(ours)
