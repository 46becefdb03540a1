"""The local process: one open registry for all chat windows and commands of a user. `ctxr serve` is one with a port.

A connection begins with one line of JSON that says what is wanted; `wait` may come first, then `yes` or `alone` (do
it without me); no answer means: ask again, there will be another process.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cli.entry import OBJECTS
from cli.shared.place import POLL_S, Place, program_stamp, this_place
from cli.shared.window import LEAVE
from cli.terminal import SERVED
from orchestrator.sync.spool import dumps, loads

if TYPE_CHECKING:
    from cli.running.mcp_command import WindowOptions
    from mcp_server.server import RegistryServer
    from orchestrator.lazy import GrownChannels, RunOperation
    from orchestrator.requests.refusals import Refusal
    from orchestrator.requests.shapes import Request
    from registry.storage.records.executions import Door
    from sources.client import Room

logger = logging.getLogger(__name__)

LONGEST_LINE = 1 << 28
LEAVING_S = 40.0
"""Windows that wait for an answer get it before a replaced process ends; an operation may take 30 s."""
TAKING_OVER_S = 5.0
TICK_S = 5.0
IDLE_S, LONGEST_IDLE_S = 15.0, 300.0
"""How long a process waits for the next connection, for each that it had, and at most: who came once may not return."""
HELLO_S = 10.0


class LocalProcess:
    """Serves the connections of one place over one orchestrator."""

    def __init__(
        self,
        place: Place,
        run: RunOperation,
        grown: GrownChannels,
        warm_up: Callable[[], Awaitable[None]] | None = None,
        *,
        ends_idle: bool = True,
        leaving_s: float = LEAVING_S,
    ) -> None:
        self._place, self._run, self._grown, self._warm_up = place, run, grown, warm_up
        self._ends_idle, self._leaving_s = ends_idle, leaving_s
        self._stamp = program_stamp(place.home)
        self._secret = secrets.token_hex(32) if place.is_loopback else ""
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._windows: set[asyncio.StreamWriter] = set()
        self._served = 0
        self._last_left = time.monotonic()
        self._over = asyncio.Event()
        self._warming: asyncio.Task[None] | None = None
        self._server = lru_cache(32)(self._make_server)

    async def serve(self, lock: int) -> None:
        """Until it is idle, replaced or told to end. `lock`: of the place, released when nobody new is let in."""
        listener = _listen(self._place, self._secret)
        address = os.stat(self._place.path(_kind(self._place)))
        server = await asyncio.start_server(self._accept, sock=listener, limit=LONGEST_LINE)
        watching = asyncio.create_task(self._watch(address))
        try:
            await self._over.wait()
        finally:
            watching.cancel()
            server.close()
            self._leave_place(address)
            os.close(lock)
        await self._see_off()

    def end(self) -> None:
        """Let nobody new in, and end when those who are here have moved on."""
        self._over.set()

    # Connections

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task  # noqa: S101, asyncio runs this as one
        self._connections[task] = writer
        self._served += 1
        try:
            await self._converse(reader, writer)
        except (OSError, ValueError, asyncio.IncompleteReadError):
            pass  # whoever it was has gone, or is none of ours
        finally:
            self._last_left = time.monotonic()
            del self._connections[task]
            self._windows.discard(writer)
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HELLO_S):
            if self._secret and not secrets.compare_digest((await reader.readline()).strip(), self._secret.encode()):
                return
            hello = loads((await reader.readline()).decode())
        if hello["want"] == "ping":
            await _say(writer, b"yes\n")
            return
        if hello["want"] == "end" or self._is_replaced():
            self.end()
        if self._over.is_set():
            return
        if sys.platform != "win32":
            time.tzset()  # the user may have travelled
        await {"window": self._window, "command": self._command}[hello["want"]](hello, reader, writer)

    async def _window(
        self, hello: Mapping[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await _say(writer, b"wait\n")  # the first one waits for the SDK's imports
        chosen = await asyncio.to_thread(_window_options, hello)
        if chosen is None:
            await _say(writer, b"alone\n")
            return
        await _say(writer, b"yes\n")
        self._windows.add(writer)
        if self._over.is_set():  # just now
            await _say(writer, LEAVE)
        from mcp_server.transport.lines import serve_lines

        server = self._server(*chosen)
        self._warm()
        await serve_lines(server, _Incoming(reader), _Outgoing(writer))

    async def _command(
        self, hello: Mapping[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        from cli.operations import this_client
        from cli.shared.commands import run_command
        from cli.terminal import Terminal

        await _say(writer, b"yes\n")
        loop = asyncio.get_running_loop()

        def run(request: Mapping[str, Any]) -> dict[str, Any]:
            return asyncio.run_coroutine_threadsafe(_awaited(self._run(request, this_client())), loop).result()

        are_shown = hello["are_shown"][0], hello["are_shown"][1]
        terminal = Terminal(hello["folder"], hello["columns"], hello["is_utf8"], run, are_shown)
        said = await asyncio.to_thread(run_command, hello["words"], terminal)
        await _say(writer, dumps(said).encode() + b"\n")

    def _make_server(self, toolsets: tuple[str, ...], project: str | None, client: str) -> RegistryServer:
        from mcp_server.server import create_server
        from sources.clients import client_called

        return create_server(
            self._run, toolsets, project, is_local=True, grown=self._grown, client=client_called(client)
        )

    def _warm(self) -> None:
        if self._warm_up and self._warming is None:
            self._warming = asyncio.ensure_future(self._warm_up())

    # The end

    async def _watch(self, address: os.stat_result) -> None:
        """Notice that nobody comes any more, that the program has changed, or that the place is gone."""
        while not self._over.is_set():
            await asyncio.sleep(TICK_S)
            if self._is_idle() or not self._is_in_place(address) or self._is_replaced():
                self.end()

    def _is_idle(self) -> bool:
        patience = min(IDLE_S * self._served, LONGEST_IDLE_S)
        return self._ends_idle and not self._connections and time.monotonic() - self._last_left > max(patience, IDLE_S)

    def _is_in_place(self, address: os.stat_result) -> bool:
        try:
            return os.path.samestat(os.stat(self._place.path(_kind(self._place))), address)
        except OSError:
            return False

    def _is_replaced(self) -> bool:
        """Return whether somebody who starts now would get another program, or other settings."""
        try:
            return program_stamp(self._place.home) != self._stamp
        except OSError:
            return True

    def _leave_place(self, address: os.stat_result) -> None:
        if self._is_in_place(address):
            os.unlink(self._place.path(_kind(self._place)))

    async def _see_off(self) -> None:
        for writer in list(self._windows):
            with suppress(OSError):
                await _say(writer, LEAVE)
        if self._connections:
            await asyncio.wait(self._connections, timeout=self._leaving_s)
        for task in [*self._connections, *filter(None, [self._warming])]:
            task.cancel()
        if self._connections:
            await asyncio.wait(self._connections, timeout=1.0)


class _Incoming:
    """The lines of a connection, as the SDK reads those of stdin."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        line = await self._reader.readline()
        if not line:
            raise StopAsyncIteration
        return line.decode("utf-8", "replace")


class _Outgoing:
    """Writes the SDK's lines to a connection."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def write(self, text: str) -> None:
        self._writer.write(text.encode("utf-8", "replace"))

    async def flush(self) -> None:
        with suppress(OSError):  # the window has gone; its end of the lines says so
            await self._writer.drain()


def door_of_caller() -> Door:
    """A window's, or that of a command which runs here for its user."""
    return "cli" if SERVED.get() else "mcp"


def main() -> None:
    """Be the local process, unless there is one."""
    place = this_place()
    if place is None:
        sys.exit("CTXR_SHARED is off")
    place.open_folder()
    lock = place.lock()
    if lock is None:
        return
    log = os.open(place.path("log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(log, 2)
    gc.set_threshold(OBJECTS)
    asyncio.run(_serve(place, lock))


async def _serve(place: Place, lock: int) -> None:
    from orchestrator.lazy import LazyOrchestrator
    from registry.log import set_up_logging
    from registry.settings import read_settings

    settings = read_settings()
    set_up_logging(settings.log_format)
    orchestrator = LazyOrchestrator(settings)

    async def run(
        given: Mapping[str, Any] | Request | Refusal, client: str | None, *, room: Room | None = None
    ) -> dict[str, Any]:
        return await orchestrator.run(given, client, door_of_caller(), room=room)

    process = LocalProcess(place, run, orchestrator.grown_channels, orchestrator.warm_up)
    if sys.platform != "win32":
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, process.end)
    try:
        await process.serve(lock)
    finally:
        await orchestrator.close()


@asynccontextmanager
async def sharing(run: RunOperation, grown: GrownChannels, leaving_s: float) -> AsyncIterator[None]:
    """Meanwhile this process is the local one, if it may be; one that is there goes, and its windows come here."""
    place = this_place()
    try:
        lock = await asyncio.to_thread(_take_over, place) if place else None
    except OSError as exc:
        lock = None
        logger.warning("Chat windows cannot share this process: %s", exc)
    if place is None or lock is None:
        yield
        return
    process = LocalProcess(place, run, grown, ends_idle=False, leaving_s=leaving_s)
    serving = asyncio.create_task(process.serve(lock))
    try:
        yield
    finally:
        process.end()
        await asyncio.wait([serving])


def _take_over(place: Place) -> int | None:
    """The place's lock; None if the process there does not give it away."""
    place.open_folder()
    deadline = time.monotonic() + TAKING_OVER_S
    while (lock := place.lock()) is None and time.monotonic() < deadline:
        place.end()
        time.sleep(POLL_S)
    return lock


def _window_options(hello: Mapping[str, Any]) -> WindowOptions | None:
    """Return the options of a window; None if its words mean anything else, such as a mistake."""
    import click

    import mcp_server.server  # noqa: F401, a second of imports, which no event loop should wait for
    from cli.running.mcp_command import mcp, window_options
    from registry.errors import RegistryError

    try:
        with mcp.make_context("mcp", list(hello["words"])) as context:
            return window_options(**context.params, folder=hello["folder"])
    except (click.ClickException, click.exceptions.Exit, RegistryError):
        return None


def _listen(place: Place, secret: str) -> socket.socket:
    if place.is_loopback:
        listener = socket.create_server(("127.0.0.1", 0))
        _write_port(place, f"{listener.getsockname()[1]} {secret}")
        return listener
    with suppress(FileNotFoundError):
        os.unlink(place.path("sock"))
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    place.named("sock", listener.bind)
    os.chmod(place.path("sock"), 0o600)
    listener.listen(128)
    listener.setblocking(False)
    return listener


def _write_port(place: Place, text: str) -> None:
    """In one step: who finds the file finds all of it."""
    draft = f"{place.path('port')}.{os.getpid()}"
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
        file.write(text)
    os.replace(draft, place.path("port"))


def _kind(place: Place) -> str:
    return "port" if place.is_loopback else "sock"


async def _say(writer: asyncio.StreamWriter, said: bytes) -> None:
    writer.write(said)
    await writer.drain()


async def _awaited(outcome: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    return await outcome


if __name__ == "__main__":
    main()
