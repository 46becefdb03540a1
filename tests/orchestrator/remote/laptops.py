"""Machines with their own registries, and their connection to the registry elsewhere."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from orchestrator.remote.client import RemoteRegistry
from orchestrator.remote.exchange import Exchanged
from orchestrator.remote.pull import detect_replacement, pull
from orchestrator.remote.push import push
from orchestrator.service import Orchestrator
from registry.ingest.intake import StorageRules
from registry.registry import Registry
from tests.backoffice.application import application

URL = "http://127.0.0.1:8765"


class Line(httpx.AsyncBaseTransport):
    """A connection to the registry elsewhere that can fail before a request arrives, or before its answer does."""

    def __init__(self, elsewhere: Orchestrator) -> None:
        self._there = httpx.ASGITransport(application(elsewhere))
        self.cuts: Callable[[], str] = lambda: ""
        self.requests: list[str] = []
        self.sent_bytes = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        cut = self.cuts()
        if cut == "before":
            raise httpx.ConnectError("no line")
        self.requests.append(f"{request.method} {request.url.path}")
        self.sent_bytes += len(request.content)
        answer = await self._there.handle_async_request(request)
        if cut == "after":
            raise httpx.ReadError("the line broke")
        return answer

    @contextmanager
    def answered_by(
        self, answer: Callable[[], httpx.Response], when: Callable[[httpx.Request], bool] = lambda _: True
    ) -> Iterator[None]:
        """Let something else answer some of the requests."""
        answering = self.handle_async_request

        async def instead(request: httpx.Request) -> httpx.Response:
            return answer() if when(request) else await answering(request)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self, "handle_async_request", instead)
            yield


def body_of(request: httpx.Request) -> bytes:
    """Return the request's body, unpacked."""
    is_packed = request.headers.get("content-encoding") == "gzip"
    return gzip.decompress(request.content) if is_packed else request.content


class Laptop:
    def __init__(self, file: Path, line: Line) -> None:
        self.token, self.address = "", URL
        self._url = f"sqlite:///{file}"
        self.orchestrator = Orchestrator(Registry(self._url))
        self.line = line

    def crash(self, storage_rules: StorageRules | None = None) -> None:
        """Restart without closing cleanly: lose everything in memory; optionally set other storage rules."""
        self.orchestrator.registry.close()
        self.orchestrator = Orchestrator(Registry(self._url, storage_rules=storage_rules))

    async def log(self, channel: str, *texts: str, start: int = 0, **meta: Any) -> None:
        messages = [
            {"role": "assistant" if at % 2 else "user", "text": text, "timestamp": f"2026-03-02T10:{start + at:02}:00Z"}
            for at, text in enumerate(texts)
        ]
        given = {"operation": "conversation_log", "channel": channel, "messages": messages, "metadata": meta}
        assert (await self.orchestrator.run({**given, "source": "cursor"}))["success"]

    async def ask(self, operation: str, channel: str | None = None, **query: Any) -> dict[str, Any]:
        return await ask(self.orchestrator, operation, channel, **query)

    async def share(self, channel: str, group: str = "team") -> None:
        await self.ask("share", channel, **{"with": group})

    async def push(self) -> Exchanged:
        return await self._exchange(push)

    async def push_only(self) -> Exchanged:
        """Push as `ctxr push` does on a machine that never pulls."""

        async def send(*given: Any) -> None:
            await detect_replacement(*given)
            await push(*given)

        return await self._exchange(send)

    async def pull(self) -> Exchanged:
        return await self._exchange(pull)

    async def exchange(self) -> Exchanged:
        """Pull, then push, as the background exchange does."""

        async def both_ways(*given: Any) -> None:
            await pull(*given)
            await push(*given)

        return await self._exchange(both_ways)

    async def _exchange(self, way: Any) -> Exchanged:
        done = Exchanged()
        async with RemoteRegistry(self.address, self.token, transport=self.line) as remote:
            await way(self.orchestrator, remote, done)
        return done


Laptops = tuple[Laptop, Laptop]


async def ask(orchestrator: Orchestrator, operation: str, channel: str | None = None, **query: Any) -> dict[str, Any]:
    """Run an operation, and return its answer."""
    answer = await orchestrator.run({"operation": operation, "channel": channel, "query": query})
    assert answer["success"], answer
    return answer


async def exchange_twice(*laptops: Laptop) -> None:
    """Let each laptop receive what the others have sent."""
    for laptop in (*laptops, *laptops):
        await laptop.exchange()


async def texts_by_channel(orchestrator: Orchestrator) -> dict[str, list[str]]:
    """Return the texts of every channel in their order."""
    found: dict[str, list[str]] = {}
    sessions = (await orchestrator.run({"operation": "list", "query": {"limit": 100}}))["sessions"]
    for session in sessions:
        rows = await orchestrator.registry.get_conversations(session["channel"])
        found[session["channel"]] = [row["text"] for row in rows]
    return found
