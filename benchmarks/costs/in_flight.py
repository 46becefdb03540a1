"""Count answered, failed and lost requests when the local process is killed, hangs or is replaced during them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from benchmarks.costs.startup import close_window, open_window, send_message
from benchmarks.setup import servers
from cli.shared.process_handle import ProcessHandle

WINDOWS = 4
ROUNDS = 2
LOGS = 4
"""Requests per window and round that store a message; one more lists and one extracts."""
PATIENCE_S = 120.0
PROGRAM = servers.ROOT / "cli" / "shared" / "__init__.py"

HEADS = ("the local process is", "on their way", "answered", "with an error", "no answer", "stored", "lost", "twice")


@dataclass
class Outcome:
    """Counts of requests, and of the messages that they stored."""

    what: str
    sent: int = 0
    answered: int = 0
    errors: int = 0
    stored: int = 0
    lost: int = 0
    doubled: int = 0

    def row(self) -> tuple[str, ...]:
        silent = self.sent - self.answered - self.errors
        numbers = (self.sent, self.answered, self.errors, silent, self.stored, self.lost, self.doubled)
        return (self.what, *map(str, numbers))

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"no_answer": self.sent - self.answered - self.errors}


class Window:
    """A chat window with its own channel; a thread reads its answers."""

    def __init__(self, env: dict[str, str], channel: str) -> None:
        self.process = open_window(servers.PRODUCT_STDIO, env)
        self.channel = channel
        self.acknowledged: list[str] = []
        self._pending: dict[int, str] = {}
        self._said = 0
        self._heard: Queue[dict[str, Any]] = Queue()
        threading.Thread(target=self._hear, daemon=True).start()

    def send(self) -> int:
        """Send requests without waiting for answers; return their number."""
        for _ in range(LOGS):
            text = f"{self.channel} message {self._said}: please look at the basket again"
            self._call(text, "conversation_log", channel=self.channel, messages=[{"role": "user", "text": text}])
        self._call("", "list_sessions", project="all")
        self._call("", "extract", channel=self.channel, query={"text": "basket"})
        return LOGS + 2

    def answers(self) -> Counter[bool]:
        """Wait for the answers; return how many are errors (True) and how many are not (False)."""
        found: Counter[bool] = Counter()
        while self._pending and (answer := self._next()):
            text = self._pending.pop(answer["id"])
            is_error = "error" in answer or bool(answer["result"].get("isError"))
            found[is_error] += 1
            if text and not is_error:
                self.acknowledged.append(text)
        self._pending.clear()
        return found

    def stored(self) -> Counter[str]:
        """Count each text in the channel."""
        self._call("", "extract", channel=self.channel, query={"limit": 1000})
        answer = self._next()
        self._pending.clear()
        messages = answer["result"]["structuredContent"]["result"]["messages"] if answer else []
        return Counter(message["text"] for message in messages)

    def _call(self, text: str, tool: str, **arguments: Any) -> None:
        self._said += 1
        self._pending[self._said] = text
        call = {"name": tool, "arguments": arguments}
        send_message(self.process, {"id": self._said, "method": "tools/call", "params": call})

    def _next(self) -> dict[str, Any] | None:
        try:
            return self._heard.get(timeout=PATIENCE_S)
        except Empty:
            return None

    def _hear(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") in self._pending:
                self._heard.put(message)


def _kill(handle: ProcessHandle, _: dict[str, str]) -> None:
    os.kill(_process(handle), signal.SIGKILL)


def _leave_hung(_handle: ProcessHandle, _env: dict[str, str]) -> None:
    """Do nothing: the process is stopped already, and the windows must notice."""


def _change_settings(handle: ProcessHandle, env: dict[str, str]) -> None:
    """Change the settings and open a window, which replaces the process."""
    config = Path(handle.home) / "config.toml"
    lines = len(config.read_text(encoding="utf-8")) if config.exists() else 0
    config.write_text("# changed\n" * (1 + lines), encoding="utf-8")
    close_window(open_window(servers.PRODUCT_STDIO, env))


def _upgrade(_: ProcessHandle, env: dict[str, str]) -> None:
    """Make a file of the program newer than the process and open a window, which replaces the process."""
    os.utime(PROGRAM)
    close_window(open_window(servers.PRODUCT_STDIO, env))


Event = Callable[[ProcessHandle, dict[str, str]], None]
EVENTS: dict[str, tuple[Event, bool]] = {
    "killed": (_kill, True),
    "hung": (_leave_hung, True),
    "replaced, for its settings": (_change_settings, False),
    "replaced, for a newer program": (_upgrade, False),
}
"""For each kind of end: what causes it, and whether the process is stopped before, so that all requests are pending."""


def measure() -> list[Outcome]:
    """Measure each kind of end, with all windows open."""
    return [_measure(what, event, is_stopped=is_stopped) for what, (event, is_stopped) in EVENTS.items()]


def _measure(what: str, event: Event, *, is_stopped: bool) -> Outcome:
    outcome = Outcome(what)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        env = servers.environment(Path(folder)) | {"CTXR_SHARED": "on", "CTXR_EMBED_MODEL": "off", "HOME": folder}
        handle = ProcessHandle(folder, env)
        stack.callback(handle.end_hung)
        windows = [Window(env, f"window_{number}") for number in range(WINDOWS)]
        for window in windows:
            stack.callback(_kill_window, window.process)
            window.send()
            window.answers()
        for _ in range(ROUNDS):
            if is_stopped:
                os.kill(_process(handle), signal.SIGSTOP)
            outcome.sent += sum(window.send() for window in windows)
            event(handle, env)
            for window in windows:
                found = window.answers()
                outcome.answered += found[False]
                outcome.errors += found[True]
        for window in windows:
            stored = window.stored()
            outcome.stored += stored.total()
            outcome.lost += sum(not stored[text] for text in window.acknowledged)
            outcome.doubled += stored.total() - len(stored)
    return outcome


def _process(handle: ProcessHandle) -> int:
    return int(Path(handle.path("lock")).read_text(encoding="ascii"))


def _kill_window(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
