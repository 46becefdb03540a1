"""The composition root: backoffice and MCP as one application, on one port."""

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from starlette.routing import Route

from backoffice.app import create_app
from cli.connect.connections import connections_from
from cli.output import TerminalError
from cli.running.addresses import is_registry, local_address
from cli.running.exposure import check_exposure, page_address, resource_of, rules_of
from cli.running.slow_clients import PatientProtocol
from cli.shared.process import as_local_process, door_of_caller, return_freed_memory
from mcp_server.server import create_server, http_app
from orchestrator.background import running
from orchestrator.opening import check_after_kill, was_left_open
from orchestrator.operations.retention import applying
from orchestrator.recording.recorder import deleting_old_runs
from orchestrator.requests.refusals import Refusal
from orchestrator.requests.shapes import Request
from orchestrator.service import Orchestrator
from orchestrator.sync.sync import Progress
from orchestrator.sync.watch import OnReports, watch
from orchestrator.views.events import grown_channels
from orchestrator.views.tokens import has_tokens
from registry.access import CURRENT_ACCESS
from registry.settings import Settings
from sources.base import Paths
from sources.client import SizeLimit
from sources.readers import READERS

logger = logging.getLogger(__name__)


def build_app(settings: Settings) -> FastAPI:
    rules = rules_of(settings)

    async def run(
        given: Mapping[str, Any] | Request | Refusal, client: str | None = None, *, limit: SizeLimit | None = None
    ) -> dict[str, Any]:
        answer: dict[str, Any] = await app.state.orchestrator.run(
            given, client, access=CURRENT_ACCESS.get(), door=door_of_caller(), limit=limit
        )
        return answer

    async def grown(since: datetime) -> AsyncIterator[set[str]]:
        async for names in grown_channels(app.state.orchestrator.registry.seen_by(CURRENT_ACCESS.get()), since):
            yield names

    server = create_server(run, grown=grown)
    mcp_app = http_app(server, settings.host, rules.known_as)

    # A mounted application's own lifespan never runs, so the session manager runs within ours.
    @asynccontextmanager
    async def server_context() -> AsyncIterator[None]:
        orchestrator: Orchestrator = app.state.orchestrator
        check_exposure(settings, has_tokens=await orchestrator.registry.read(has_tokens))
        is_read_only = orchestrator.registry.is_read_only
        cleanup = deleting_old_runs(orchestrator.registry, 0 if is_read_only else settings.keep_executions_days)
        retention = applying(orchestrator, () if is_read_only else settings.retention)
        async with server.session_manager.run(), cleanup, retention, orchestrator.run_background_work():
            yield

    app = create_app(settings, server_context=server_context, connections=connections_from(Path.home()), rules=rules)
    app.router.routes.append(Route("/mcp", mcp_app))
    app.state.shared = run, grown
    if settings.oauth_issuer:
        from mcp_server.transport.oauth import resource_routes  # an optional extra

        app.router.routes += resource_routes(resource_of(settings), settings.oauth_issuer)
    return app


def serve_registry(
    settings: Settings, ready: Callable[[str], None], report: OnReports, progress: Progress | None = None
) -> None:
    """Serve until a signal ends it, and import what this machine's clients write meanwhile.

    `ready` is called with the dashboard's address, `report` and `progress` with the reports of imports.
    Raises RegistryError if the registry cannot be opened, TerminalError if the address cannot be used.
    """
    return_freed_memory()
    with _listen(settings) as listener:
        asyncio.run(_serve(settings, listener, ready, partial(_watching, settings, report, progress)))


async def _serve(
    settings: Settings,
    listener: socket.socket,
    ready: Callable[[str], None],
    watching: Callable[[Orchestrator], AbstractAsyncContextManager[None]],
) -> None:
    sys.setswitchinterval(0.0005)  # s; with Python's own 5 ms, logging waits at every step while histories are imported
    left_open = was_left_open(settings)
    grace_s = 2  # how long a stop waits for answers under way; event streams never end by themselves
    app = build_app(settings)
    logging.getLogger("uvicorn.error").addFilter(_is_error)
    config = uvicorn.Config(
        app,
        lifespan="off",  # entered below, so that its exceptions reach the caller unchanged
        http=PatientProtocol,  # of h11: httptools keeps spaces around header values, which MCP forbids
        ws="none",
        log_config=None,
        access_log=False,
        timeout_keep_alive=30,  # s; clients close after 5: with the same value, a call sent then is lost
        timeout_graceful_shutdown=grace_s,
        ssl_certfile=settings.tls_cert or None,
        ssl_keyfile=settings.tls_key or None,
        # Only a named proxy is trusted with the caller's address.
        proxy_headers=bool(settings.public_url),
    )
    async with app.router.lifespan_context(app):
        gc.collect()
        gc.freeze()  # loaded objects stay, so the collector skips them
        is_open = app.state.gate.rules.is_open and not await app.state.orchestrator.registry.read(has_tokens)
        ready(page_address(settings, is_open=is_open))
        # uvicorn stops at a signal, then raises it again: it must not end us before the registry is closed.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        integrity_check = asyncio.create_task(check_after_kill(app.state.orchestrator.registry)) if left_open else None
        run, grown = app.state.shared
        async with watching(app.state.orchestrator), as_local_process(run, grown, grace_s):
            await _Server(config).serve(sockets=[listener])
        if integrity_check:
            integrity_check.cancel()


class _Server(uvicorn.Server):
    """Ends soon after a signal, even if a database or disk does not answer: what was acknowledged is stored."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._loop, self._ends = asyncio.get_running_loop(), asyncio.Event()

    async def main_loop(self) -> None:
        """Wake at a signal, and once a second to renew the date in answers; uvicorn's own loop wakes ten times."""
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ends.wait(), 1.0)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._loop.call_soon_threadsafe(self._ends.set)
        force_exit = threading.Timer(4.5, os._exit, (1,))
        force_exit.daemon = True
        force_exit.start()
        super().handle_exit(sig, frame)


def _watching(
    settings: Settings, report: OnReports, progress: Progress | None, orchestrator: Orchestrator
) -> AbstractAsyncContextManager[None]:
    """Watch the clients' stores for an embedded registry.

    A shared registry gets a person's histories only by that person's `ctxr sync`; a read-only one is not written.
    """
    if orchestrator.registry.is_read_only:
        return nullcontext()
    readers = READERS if orchestrator.registry.is_embedded else ()
    paths = Paths(Path.home(), os.environ)
    return running(watch(orchestrator, settings.home, readers, paths, report, progress))


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listener = socket.create_server((settings.host, settings.port), family=family)
        # asyncio sets it only on sockets it opened itself; without it every answer waits 40 ms for an acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as exc:
        address = local_address(settings)
        if is_registry(address):
            found = f"Context Registry runs already at {address}"
            other = (
                f"Use that one, or stop it first. If another person runs it: --port {settings.port + 1}, or CTXR_PORT"
            )
            raise TerminalError("CANNOT_LISTEN", found, other) from exc
        reason = (exc.strerror or str(exc)).partition(" (while")[0]
        raise TerminalError(
            "CANNOT_LISTEN",
            f"Cannot listen on {settings.host} port {settings.port}: {reason}",
            f"Choose another port: --port {settings.port + 1}, or CTXR_PORT",
        ) from exc


def _is_error(record: logging.LogRecord) -> bool:
    """Return False for log records of streams that are cut when the server stops."""
    kind = record.exc_info[0] if record.exc_info else None
    return kind is not asyncio.CancelledError and not str(record.msg).startswith("Cancel %s running task")
