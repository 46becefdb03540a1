"""The local process: one open registry for all chat windows and commands of a user. `ctxr serve` is one with a port.

A connection begins with one line of JSON, which names the request. The answer is `yes`, perhaps after `wait`; `alone`
asks the caller to do the work itself; no answer means that this process is ending, so the caller asks the next one.
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
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.entry import GC_THRESHOLD
from cli.shared.process_handle import ProcessHandle, current_handle, program_stamp, write_holder
from cli.shared.recorded_lists import lists_file, write_lists
from cli.shared.window import LEAVE
from cli.terminal import SERVED
from orchestrator.sync.spool import dumps, loads, replace_private_file

if TYPE_CHECKING:
    from cli.running.mcp_command import WindowOptions
    from mcp_server.server import RegistryServer
    from orchestrator.lazy import GrownChannels, RunOperation
    from orchestrator.requests.refusals import Refusal
    from orchestrator.requests.shapes import Request
    from orchestrator.service import Door
    from sources.client import SizeLimit

logger = logging.getLogger(__name__)

IDLE_TIMEOUT_S = 60.0  # how long a process waits for the next connection before it ends
CHECK_INTERVAL_S = 30.0  # between two checks of whether to end, of about 10 ms each


class LocalProcess:
    """Serves the connections of one local process over one orchestrator."""

    def __init__(
        self,
        handle: ProcessHandle,
        run: RunOperation,
        grown: GrownChannels,
        warm_up: Callable[[], Awaitable[None]] | None = None,
        *,
        ends_idle: bool = True,
        grace_s: float = 40.0,
    ) -> None:
        """`grace_s`: how long windows wait for their answers when it ends; an operation may take 30 s."""
        self._handle, self._run, self._grown, self._warm_up = handle, run, grown, warm_up
        self._ends_idle, self._grace_s = ends_idle, grace_s
        self._stamp = program_stamp(handle.home)
        self._secret = secrets.token_hex(32) if handle.is_loopback else ""
        self._connections: set[asyncio.Task[None]] = set()
        self._windows: set[asyncio.StreamWriter] = set()
        self.has_served_window = False
        self._last_left = time.monotonic()
        self._ended = asyncio.Event()
        self._background: set[asyncio.Task[None]] = set()
        self._recorded: set[str] = set()
        self._server = lru_cache(32)(self._make_server)

    async def serve(self, lock: int) -> None:
        """Serve until it is idle, replaced or asked to end, then release the lock."""
        listener = _listen(self._handle, self._secret)
        address = os.stat(self._handle.address)
        server = await asyncio.start_server(self._accept, sock=listener, limit=1 << 28)
        watching = asyncio.create_task(self._watch(address))
        try:
            await self._ended.wait()
        finally:
            watching.cancel()
            server.close()
            if self._has_address(address):
                os.unlink(self._handle.address)
            os.close(lock)
        await self._disconnect_windows()

    def end(self) -> None:
        self._ended.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task  # noqa: S101, asyncio runs this as one
        self._connections.add(task)
        try:
            await self._serve_caller(reader, writer)
        except (OSError, ValueError, asyncio.IncompleteReadError):
            pass  # the caller has closed the connection, or is another program
        finally:
            self._last_left = time.monotonic()
            self._connections.discard(task)
            self._windows.discard(writer)
            writer.close()

    async def _serve_caller(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(10):
            if self._secret and not secrets.compare_digest((await reader.readline()).strip(), self._secret.encode()):
                return
            hello = loads((await reader.readline()).decode())
        if hello["want"] == "ping":
            await _send(writer, b"yes\n")
            return
        if hello["want"] == "end" or self._is_replaced():
            self.end()
        if self._ended.is_set():
            return
        if sys.platform != "win32":
            time.tzset()  # the time zone may have changed
        await {"window": self._window, "command": self._command}[hello["want"]](hello, reader, writer)

    async def _window(
        self, hello: Mapping[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await _send(writer, b"wait\n")  # the first one waits for the SDK's imports
        options = await asyncio.to_thread(_window_options, hello)
        if options is None:
            await _send(writer, b"alone\n")
            return
        await _send(writer, b"yes\n")
        self._windows.add(writer)
        self.has_served_window = True
        if self._ended.is_set():
            await _send(writer, LEAVE)
        from mcp_server.transport.stdio import serve_connection

        server = self._server(*options)
        task = asyncio.create_task(self._prepare_next_window(hello["words"], server))
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        await serve_connection(server, reader, writer)

    async def _prepare_next_window(self, words: list[str], server: RegistryServer) -> None:
        """Record the first answers for the next window, then open the registry: this process may end soon."""
        from mcp_server.transport.stdio import first_answers

        path = lists_file(self._handle, words)
        if path not in self._recorded:
            self._recorded.add(path)
            with suppress(OSError):
                write_lists(self._handle, words, self._stamp, await first_answers(server))
        if self._warm_up:
            warm_up, self._warm_up = self._warm_up, None
            await warm_up()

    async def _command(
        self, hello: Mapping[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        from cli.operations import this_client
        from cli.shared.commands import run_command
        from cli.terminal import Terminal

        await _send(writer, b"yes\n")
        loop = asyncio.get_running_loop()
        leaving = asyncio.create_task(reader.read(1))  # ends when the caller stops waiting

        async def run_while_awaited(request: Mapping[str, Any]) -> dict[str, Any]:
            running = asyncio.create_task(self._run(request, this_client()))
            await asyncio.wait((running, leaving), return_when=asyncio.FIRST_COMPLETED)
            running.cancel()  # no effect if it has ended; a hint that nobody reads is not recorded as given
            return await running

        def run(request: Mapping[str, Any]) -> dict[str, Any]:
            return asyncio.run_coroutine_threadsafe(run_while_awaited(request), loop).result()

        are_terminals = hello["are_terminals"][0], hello["are_terminals"][1]
        terminal = Terminal(hello["folder"], hello["columns"], hello["is_utf8"], run, are_terminals)
        try:
            answer = await asyncio.to_thread(run_command, hello["words"], terminal)
        except CancelledError:
            return
        finally:
            leaving.cancel()
        await _send(writer, dumps(answer).encode() + b"\n")

    def _make_server(
        self, toolsets: tuple[str, ...], project: str | None, client: str, is_captured: bool
    ) -> RegistryServer:
        from mcp_server.server import create_server
        from sources.clients import find_client

        return create_server(
            self._run,
            toolsets,
            project,
            is_local=True,
            grown=self._grown,
            client=find_client(client),
            is_captured=is_captured,
        )

    async def _watch(self, address: os.stat_result) -> None:
        """End when it is idle, the program has changed, or the address was removed."""
        while not self._ended.is_set():
            await asyncio.sleep(CHECK_INTERVAL_S)
            is_idle = not self._connections and time.monotonic() - self._last_left > IDLE_TIMEOUT_S
            if is_idle and self._ends_idle and not (self.has_served_window and await asyncio.to_thread(_has_client)):
                self.end()
            if not self._has_address(address) or self._is_replaced():
                self.end()

    def _has_address(self, address: os.stat_result) -> bool:
        try:
            return os.path.samestat(os.stat(self._handle.address), address)
        except OSError:
            return False

    def _is_replaced(self) -> bool:
        """Return whether a process that starts now would run another program, or with other settings."""
        try:
            return program_stamp(self._handle.home) != self._stamp
        except OSError:
            return True

    async def _disconnect_windows(self) -> None:
        for writer in list(self._windows):
            with suppress(OSError):
                await _send(writer, LEAVE)
        if self._connections:
            await asyncio.wait(self._connections, timeout=self._grace_s)
        if tasks := [*self._connections, *self._background]:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=1.0)


def _has_client() -> bool:
    """Return True if a client of this user is connected: its next chat should not wait for a process to start."""
    from cli.connect.connections import connections_from
    from registry.extras import installer

    if installer() == "uvx":
        return False  # the next version is in another folder: it replaces no process of this one
    parts = [part for connection in connections_from(Path.home()).inspect(()) for part in connection.parts]
    return any(part.what == "server" and part.state in ("installed", "differs") for part in parts)


def door_of_caller() -> Door:
    """Return `cli` for a command that runs here for its user, `mcp` for a window."""
    return "cli" if SERVED.get() else "mcp"


def return_freed_memory() -> None:
    """Make glibc give freed memory back to the system. Call it before threads start; other C libraries ignore it."""
    import ctypes

    if sys.platform == "linux" and (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)):
        trim_threshold, arena_max = -1, -8  # glibc's names of the options
        mallopt(trim_threshold, 128 << 10)  # bytes at the end of a heap that it may keep; the default grows to 64 MB
        mallopt(arena_max, 2)  # the default, 8 a core, kept 195 MB of freed memory after 38 minutes of load


def main() -> None:
    handle = current_handle()
    if handle is None:
        sys.exit("CTXR_SHARED is off")
    handle.open_folder()
    lock = handle.lock()
    if lock is None:
        return
    if sys.platform != "win32":
        _detach(handle, lock)
    log = os.open(handle.path("log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(log, 2)
    gc.set_threshold(GC_THRESHOLD)
    return_freed_memory()
    asyncio.run(_serve(handle, lock))


def _detach(handle: ProcessHandle, lock: int) -> None:
    """Continue in a child, which keeps the lock, and exit when it listens: OpenCode ends all descendants of a window.

    If the child cannot start, exit with its status.
    """
    if (child := os.fork()) == 0:
        write_holder(lock)
        return
    while not os.path.exists(handle.address):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            os._exit(os.waitstatus_to_exitcode(status))
        time.sleep(0.005)
    os._exit(0)


async def _serve(handle: ProcessHandle, lock: int) -> None:
    from orchestrator.lazy import LazyOrchestrator
    from registry.log import set_up_logging
    from registry.settings import read_settings

    settings = read_settings()
    set_up_logging(settings.log_format)
    orchestrator = LazyOrchestrator(settings)

    async def run(
        given: Mapping[str, Any] | Request | Refusal, client: str | None, *, limit: SizeLimit | None = None
    ) -> dict[str, Any]:
        return await orchestrator.run(given, client, door_of_caller(), limit=limit)

    process = LocalProcess(handle, run, orchestrator.grown_channels, orchestrator.warm_up)
    if sys.platform != "win32":
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, process.end)
    try:
        await process.serve(lock)
    finally:
        await orchestrator.close()


@asynccontextmanager
async def as_local_process(run: RunOperation, grown: GrownChannels, grace_s: float) -> AsyncIterator[None]:
    """Make this process the local one, if allowed; an earlier one ends, and its windows come here."""
    handle = current_handle()
    lock = None
    try:
        lock = await asyncio.to_thread(_take_over, handle) if handle else None
    except OSError as exc:
        logger.warning("Chat windows cannot share this process: %s", exc)
    if handle is None or lock is None:
        yield
        return
    process = LocalProcess(handle, run, grown, ends_idle=False, grace_s=grace_s)
    serving = asyncio.create_task(process.serve(lock))
    try:
        yield
    finally:
        process.end()
        await asyncio.wait([serving])


def _take_over(handle: ProcessHandle) -> int | None:
    """Return the lock, after ending the process that holds it; None if it has not released it after 5 s."""
    handle.open_folder()
    deadline = time.monotonic() + 5.0
    while (lock := handle.lock()) is None and time.monotonic() < deadline:
        handle.end()
        time.sleep(0.005)
    return lock


def _window_options(hello: Mapping[str, Any]) -> WindowOptions | None:
    """Return the options of a window; None if its arguments are wrong, or ask for help."""
    import click

    import mcp_server.server  # noqa: F401, a second of imports, which must not hold up the event loop
    from cli.running.mcp_command import mcp, window_options
    from registry.errors import RegistryError

    try:
        with mcp.make_context("mcp", list(hello["words"])) as context:
            return window_options(**context.params, folder=hello["folder"])
    except (click.ClickException, click.exceptions.Exit, RegistryError):
        return None


def _listen(handle: ProcessHandle, secret: str) -> socket.socket:
    if not handle.is_loopback:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(handle.address)
        os.chmod(handle.address, 0o600)
        listener.listen(128)
        listener.setblocking(False)
        return listener
    listener = socket.create_server(("127.0.0.1", 0))
    replace_private_file(handle.address, f"{listener.getsockname()[1]} {secret}")
    return listener


async def _send(writer: asyncio.StreamWriter, content: bytes) -> None:
    writer.write(content)
    await writer.drain()


if __name__ == "__main__":
    main()
