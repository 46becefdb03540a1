"""Bringing in a big history: rate and memory of the first sync, the time of one with nothing new."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import servers
from benchmarks.conversations import conversation

SESSIONS, MESSAGES_EACH = 3000, 20
CWD = "/home/ann/shop"

HEADS = ("sync of Claude Code's files", "sessions", "messages", "seconds", "messages/s", "peak MB")


@dataclass(frozen=True)
class Pass:
    """One run of `ctxr sync`; `seconds` of the whole process, from start to exit."""

    what: str
    sessions: int
    messages: int
    seconds: float
    peak_mb: float

    def row(self) -> tuple[str, ...]:
        """The pass as a line of a table."""
        rate = f"{self.messages / self.seconds:.0f}" if self.messages else "-"
        return self.what, str(self.sessions), str(self.messages), f"{self.seconds:.2f}", rate, f"{self.peak_mb:.0f}"

    def as_json(self) -> dict[str, Any]:
        """The pass for machines."""
        return asdict(self)


def measure() -> list[Pass]:
    """The first sync of a generated store, then two with nothing new: the second has a warm file system."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_store(home / ".claude")
        return [run(home, name) for name in ("the first time", "nothing new", "nothing new, again")]


def write_store(root: Path) -> None:
    """Sessions as Claude Code writes them, in 30 projects."""
    for number in range(SESSIONS):
        session_id = str(uuid.UUID(int=number))
        file = root / "projects" / f"-home-ann-shop-{number % 30}" / f"{session_id}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w", encoding="utf-8") as lines:
            for record in records(session_id, number):
                lines.write(json.dumps(record, ensure_ascii=False) + "\n")


def records(session_id: str, number: int) -> Iterator[dict[str, Any]]:
    """The transcript of one session."""
    parent = None
    for place, message in enumerate(conversation(number, MESSAGES_EACH)):
        here = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{session_id}/{place}"))
        content: Any = message["text"]
        if message["role"] == "assistant":
            content = [{"type": "text", "text": message["text"]}]
        yield {
            "type": message["role"],
            "uuid": here,
            "parentUuid": parent,
            "sessionId": session_id,
            "cwd": f"{CWD}-{number % 30}",
            "timestamp": message["timestamp"],
            "message": {"id": f"msg_{number}_{place}", "role": message["role"], "content": content},
        }
        parent = here


def run(home: Path, what: str) -> Pass:
    """One `ctxr sync` as a process of its own."""
    environment = {**os.environ, **servers.environment(home / "registry"), "HOME": str(home)}
    command = [sys.executable, "-c", "from cli.main import main; main()", "sync", "--source", "claude-code", "--json"]
    started = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    seconds = time.perf_counter() - started
    [store] = json.loads(done.stdout)["stores"]
    peak_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return Pass(what, store["parsed"], store["new_messages"], seconds, peak_mb)
