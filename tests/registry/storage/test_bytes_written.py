"""Logging a message writes little more than its pages to disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.service import Orchestrator
from registry.registry import Registry

pytestmark = pytest.mark.anyio

IO = Path("/proc/self/io")


def bytes_written() -> int:
    return int(dict(line.split(": ") for line in IO.read_text().splitlines())["wchar"])


@pytest.mark.skipif(not IO.exists(), reason="Linux counts what a process writes")
async def test_a_logged_message_writes_tens_of_kilobytes(sqlite_url: str) -> None:
    registry = Registry(sqlite_url)
    orchestrator = Orchestrator(registry)

    async def log(first: int, last: int) -> None:
        for number in range(first, last):
            messages = [{"role": "user", "text": f"Why does basket {number} lose item {number * 7}? " * 12}]
            named = {"channel": "basket", "source": "cursor", "messages": messages}
            assert (await orchestrator.run({"operation": "conversation_log", **named}))["success"]

    await log(0, 20)
    before = bytes_written()
    await log(20, 80)
    assert (bytes_written() - before) / 60 < 60_000
    registry.close()
