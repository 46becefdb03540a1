"""Load one SQLite registry with many writers: on eight servers at once, and on a server that is killed."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, MCPError

from benchmarks.setup import servers
from benchmarks.setup.writers import Audit, Writer, WrongAnswer, audit

SERVERS = 8
SECONDS = 10.0
KILLS = 3
SECONDS_BETWEEN_KILLS = 3.0
HTTP_CLIENTS = 4
READ_TIMEOUT_S = 10.0
RECONNECT_AFTER_S = 0.1
CONNECTION_LOST = (OSError, httpx2.HTTPError, MCPError, ExceptionGroup)


@dataclass(frozen=True)
class Outcome:
    """Figures of a run under load; `slowest` is in seconds."""

    what: str
    turns_per_second: float
    slowest: float
    retries: int
    errors: Sequence[str]
    audit: Audit

    def row(self) -> tuple[str, ...]:
        found = self.audit
        numbers = (len(self.errors), self.retries, found.acknowledged, found.lost, found.doubled)
        return (self.what, f"{self.turns_per_second:.0f}", f"{self.slowest:.1f}", *map(str, numbers))

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


OUTCOME_HEADS = ("load", "turns/s", "slowest, s", "errors", "retries", "messages acknowledged", "lost", "doubled")


def own_and_shared_writer(name: str, chat: int = 0) -> list[Writer]:
    """Return a client's writers: one on its own channel, and one on a channel that all clients share."""
    return [Writer(name, f"cursor_session_{name}_{chat}"), Writer(name, f"claude_session_shared_{chat}")]


async def eight_servers(seconds: float = SECONDS) -> Outcome:
    """Write through eight stdio servers, each a process, into the same registry file."""
    writers = [own_and_shared_writer(f"writer{number}") for number in range(SERVERS)]
    errors, stop = list[str](), asyncio.Event()
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = servers.stdio(servers.PRODUCT_STDIO, home)
        clients = [await stack.enter_async_context(Client(server)) for _ in writers]
        started = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for client, client_writers in zip(clients, writers, strict=True):
                group.create_task(log_turns(client, client_writers, stop, errors))
            await asyncio.sleep(seconds)
            stop.set()
        took = time.monotonic() - started
        found = await audit(list(itertools.chain(*writers)), clients[0])
    return outcome(f"{SERVERS} stdio servers", writers, took, errors, found)


async def killed_server(kills: int = KILLS) -> Outcome:
    """Kill `ctxr serve` under load and start it again; clients resend what was not acknowledged."""
    writers = [own_and_shared_writer(f"client{number}") for number in range(HTTP_CLIENTS)]
    errors, stop = list[str](), asyncio.Event()
    with tempfile.TemporaryDirectory() as folder:
        port, home = servers.free_port(), Path(folder)
        url = f"http://127.0.0.1:{port}/mcp"
        server = servers.start_http(servers.PRODUCT_HTTP, home, port)
        started = time.monotonic()
        try:
            async with asyncio.TaskGroup() as group:
                for client_writers in writers:
                    group.create_task(log_until_stopped(url, client_writers, stop, errors))
                for _ in range(kills):
                    await asyncio.sleep(SECONDS_BETWEEN_KILLS)
                    servers.kill(server)
                    server = await asyncio.to_thread(servers.start_http, servers.PRODUCT_HTTP, home, port)
                await asyncio.sleep(SECONDS_BETWEEN_KILLS)
                stop.set()
            took = time.monotonic() - started
            async with Client(url) as reader:
                found = await audit(list(itertools.chain(*writers)), reader)
        finally:
            servers.kill(server)
    return outcome(f"HTTP server, kill -9 {kills} times", writers, took, errors, found)


async def log_until_stopped(url: str, writers: Sequence[Writer], stop: asyncio.Event, errors: list[str]) -> None:
    """Log turns alternately for the writers until `stop` is set; reconnect if the connection is lost."""
    while not stop.is_set():
        try:
            async with Client(url, read_timeout_seconds=READ_TIMEOUT_S) as client:
                await log_turns(client, writers, stop, errors)
        except CONNECTION_LOST:
            await asyncio.sleep(RECONNECT_AFTER_S)


async def log_turns(client: Client, writers: Sequence[Writer], stop: asyncio.Event, errors: list[str]) -> None:
    """Log turns alternately for the writers until `stop` is set; add wrong answers to `errors`.

    Raises one of `CONNECTION_LOST` if the connection is lost.
    """
    for writer in itertools.cycle(writers):
        if stop.is_set():
            return
        try:
            await writer.log_turn(client)
        except WrongAnswer as exc:
            errors.append(repr(exc))


def outcome(what: str, writers: Sequence[Sequence[Writer]], took: float, errors: list[str], found: Audit) -> Outcome:
    """Summarise what all clients did in `took` seconds."""
    all_writers = list(itertools.chain(*writers))
    turns = sum(len(writer.acknowledged) // 2 for writer in all_writers)
    retries = sum(writer.retries for writer in all_writers)
    return Outcome(what, turns / took, max(writer.slowest for writer in all_writers), retries, errors, found)
