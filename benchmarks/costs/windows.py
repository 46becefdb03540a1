"""Time chat windows and commands that use the local process, and measure the memory of a window."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.costs.startup import ask, close_window, open_window
from benchmarks.setup import servers
from cli.shared.process_handle import ProcessHandle

ROUNDS = 10
HEADS = ("over the local process", "", "aim", "")
EXTRACT = {"name": "extract", "arguments": {"query": {"text": "fibonacci"}}}
COMMANDS = (("list",), ("search", "fibonacci"), ("show", "1"), ("extract", "fibonacci"), ("sync",))
COMMAND_MS = {"sync": 100.0}


@dataclass(frozen=True)
class Figure:
    """A median, its unit and the highest acceptable value."""

    what: str
    value: float
    unit: str
    aim: float

    def row(self) -> tuple[str, ...]:
        verdict = "ok" if self.value <= self.aim else "MISSED"
        return (self.what, f"{self.value:.1f} {self.unit}", f"{self.aim:g}", verdict)


def measure() -> list[Figure]:
    """Measure in a new home whose local process is already running."""
    with tempfile.TemporaryDirectory() as folder:
        env = servers.environment(Path(folder)) | {"CTXR_SHARED": "on"}
        handle = ProcessHandle(folder, env)
        try:
            close_window(open_window(servers.PRODUCT_STDIO, env))
            return [*_windows(env), *(_command(words, env) for words in COMMANDS)]
        finally:
            handle.end()


def _windows(env: dict[str, str]) -> list[Figure]:
    tools, calls, sizes = [], [], []
    for _ in range(1 + ROUNDS):
        started = time.perf_counter()
        window = open_window(servers.PRODUCT_STDIO, env)
        tools.append(time.perf_counter() - started)
        started = time.perf_counter()
        ask(window, "tools/call", EXTRACT)
        calls.append(time.perf_counter() - started)
        sizes.append(_resident_mb(window.pid))
        close_window(window)
    return [
        Figure("a window's tools", _ms(tools[1:]), "ms", 100),
        Figure("its first call", _ms(calls[1:]), "ms", 50),
        Figure("its memory", median(sizes), "MB", 15),
    ]


def _command(words: Sequence[str], env: dict[str, str]) -> Figure:
    seconds = []
    for _ in range(1 + ROUNDS):
        started = time.perf_counter()
        subprocess.run([servers.CTXR, *words], env=env, capture_output=True, check=False)
        seconds.append(time.perf_counter() - started)
    return Figure(f"ctxr {words[0]}", _ms(seconds[1:]), "ms", COMMAND_MS.get(words[0], 200.0))


def _ms(seconds: Sequence[float]) -> float:
    return 1000 * median(seconds)


def _resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024
