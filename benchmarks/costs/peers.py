"""Compare the product with programs that read the same histories: fast-resume and agentsview.

fast-resume keeps only an index, to resume sessions; agentsview and the product store the messages. agentsview searches
through a server, which is started before the measurement. Install both with
`python -m venv DIR && DIR/bin/pip install fast-resume agentsview`. Only clients that all programs read are measured.
"""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.costs.sync import user_environment
from benchmarks.setup import servers
from benchmarks.setup.conversations import questions
from benchmarks.setup.figures import Spread
from benchmarks.setup.homes import MESSAGES_EACH, write_home

SESSIONS = {"claude-code": 500, "codex": 250}
MESSAGES = MESSAGES_EACH * sum(SESSIONS.values())
IDLE_ROUNDS = 5
SEARCHES = 40
QUIET = {"DO_NOT_TRACK": "1", "AGENTSVIEW_TELEMETRY_ENABLED": "0"}
ALONE = {
    "AGENTSVIEW_NO_DAEMON": "1",
    "CTXR_SHARED": "off",
}  # so that the first import is one process, whose memory is measured
# A process's peak memory is at least that of the process that forked it, so a small process forks.
MEASURED = """
import json, resource, subprocess, sys, time
started = time.perf_counter()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(json.dumps([time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024]))
"""
END_LOCAL_PROCESS = "from cli.shared.process_handle import current_handle; current_handle().end()"


@dataclass(frozen=True)
class Program:
    """Commands of one program: import new sessions, search (followed by the words), count the sessions, and end and
    start its server."""

    sync: Sequence[str]
    search: Sequence[str]
    count: Sequence[str]
    end: Sequence[str] = ()
    serve: Sequence[str] = ()


@dataclass(frozen=True)
class Outcome:
    """Times of whole processes: seconds of the first import, median seconds of an import with nothing new, searches."""

    first: float
    peak_mb: float
    nothing_new: float
    search: Spread

    @property
    def rate(self) -> float:
        """Messages per second in the first import."""
        return MESSAGES / self.first

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"messages_per_s": self.rate}

    def cells(self) -> list[str]:
        """Return the outcome as a column of a table."""
        idle = f"{self.nothing_new * 1000:.0f}"
        return [f"{self.first:.2f}", f"{self.rate:.0f}", f"{self.peak_mb:.0f}", idle, str(self.search)]


LINES = (
    f"first import of {MESSAGES} messages in {sum(SESSIONS.values())} sessions, s",
    "  messages/s",
    "  peak memory, MB",
    "nothing new, whole process, ms",
    "search, whole process, p50 / p95 in ms",
)


def programs(folder: Path | None) -> dict[str, Program]:
    """Return the product, and the other programs that are installed in the folder (without a folder: on the PATH)."""
    place = str(folder.resolve() / "bin") if folder else None
    search, count = ((servers.CTXR, command, "--json", "--limit", "10") for command in ("search", "list"))
    end = (sys.executable, "-c", END_LOCAL_PROCESS)
    found = {"ctxr": Program((servers.CTXR, "sync"), search, count, count, end)}
    if fr := shutil.which("fr", path=place):
        shown = (fr, "--json", "--limit", "10")
        found["fast-resume"] = Program(shown, shown, shown)
    if view := shutil.which("agentsview", path=place):
        found["agentsview"] = Program(
            (view, "sync"),
            (view, "session", "search", "--fts", "--json", "--limit", "10"),
            (view, "session", "list", "--json", "--limit", "1"),
            end=(view, "daemon", "stop"),
            serve=(view, "daemon", "start"),
        )
    return found


def measure(folder: Path | None) -> dict[str, Outcome]:
    """Measure each program in its own home with the same histories."""
    return {name: _measure(one) for name, one in programs(folder).items()}


def _measure(program: Program) -> Outcome:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        write_home(home, SESSIONS)
        first, peak_mb = _run(home, program.sync, ALONE)
        with _serving(home, program):
            _check(home, program)
            idle = [_run(home, program.sync)[0] for _ in range(IDLE_ROUNDS)]
            asked = itertools.islice(questions(seed=1), SEARCHES)
            found = [_run(home, [*program.search, text])[0] for text in asked]
    return Outcome(first, peak_mb, median(idle), Spread.of(found))


@contextmanager
def _serving(home: Path, program: Program) -> Iterator[None]:
    try:
        if program.serve:
            _run(home, program.serve)
        yield
    finally:
        if program.end:
            _run(home, program.end)


def _run(home: Path, command: Sequence[str], env: Mapping[str, str] | None = None) -> tuple[float, float]:
    """Run a command; return its seconds and its peak memory in MB."""
    measured = (sys.executable, "-c", MEASURED, *command)
    done = subprocess.run(measured, cwd=home, env=_environment(home, env), stdout=subprocess.PIPE, check=True)
    seconds, peak_mb = json.loads(done.stdout)
    return seconds, peak_mb


def _check(home: Path, program: Program) -> None:
    """Raise AssertionError if the program has not imported all sessions."""
    done = subprocess.run(program.count, cwd=home, env=_environment(home), capture_output=True, check=True)
    answer = json.loads(done.stdout)
    total = answer.get("meta", answer.get("pagination", answer))["total"]
    assert total == sum(SESSIONS.values()), (program.count, total)


def _environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    return {**user_environment(home), **QUIET, **(more or {})}
