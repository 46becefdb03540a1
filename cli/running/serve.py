"""The composition root: backoffice and MCP as one application, on one port."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime
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
from cli.shared.process import door_of_caller, sharing
from mcp_server.server import create_server, http_app
from orchestrator.background import running
from orchestrator.recording.retention import forgetting
from orchestrator.requests.refusals import Refusal
from orchestrator.requests.shapes import Request
from orchestrator.schedule import keeping_schedule
from orchestrator.service import Orchestrator
from orchestrator.sync.grown_channels import grown_channels
from orchestrator.sync.sync import Progress
from orchestrator.sync.watch import Told, watch
from registry.access import ASKING
from registry.settings import Settings
from registry.storage.index.packing import keeping_packed
from registry.storage.safety.tokens import has_tokens
from registry.storage.upkeep.integrity import is_sound, was_left_open
from sources.base import Places
from sources.client import Room
from sources.clients import CLIENTS
from sources.purging import LONG, days_kept
from sources.readers import READERS

logger = logging.getLogger(__name__)

KEPT_S = 30
"""A connection on which nobody asks. Clients let go of theirs after 5 s (httpx): were it the same here, a call that is
sent in that moment would be lost."""
GRACE_S = 2
"""How long a stop waits for answers under way; event streams never end by themselves."""
SWITCH_S = 0.0005
"""So soon a thread that works gives way to one that answers. With Python's own 5 ms, what is logged while histories are
brought in waits at every step of its way."""
M_ARENA_MAX, HEAPS = -8, 2
"""The number of this option in malloc.h, and what it is set to."""
END_S = 4.5
"""A database or a disk that does not answer holds up the end no longer."""


class CannotListen(TerminalError):
    """The server's address is taken, or cannot be had."""

    code = "CANNOT_LISTEN"


def build_app(settings: Settings) -> FastAPI:
    """The whole HTTP side: `/mcp` beside the backoffice, over one orchestrator, opened by the app's lifespan."""
    rules = rules_of(settings)

    async def run(
        given: Mapping[str, Any] | Request | Refusal, client: str | None = None, *, room: Room | None = None
    ) -> dict[str, Any]:
        answer: dict[str, Any] = await app.state.orchestrator.run(
            given, client, access=ASKING.get(), door=door_of_caller(), room=room
        )
        return answer

    async def grown(since: datetime) -> AsyncIterator[set[str]]:
        async for names in grown_channels(app.state.orchestrator.registry.seen_by(ASKING.get()), since):
            yield names

    server = create_server(run, grown=grown)
    mcp_app = http_app(server, settings.host, rules.known_as)

    # A mounted application's own lifespan never runs, so the session manager runs beside ours.
    @asynccontextmanager
    async def run_beside() -> AsyncIterator[None]:
        orchestrator: Orchestrator = app.state.orchestrator
        check_exposure(settings, has_tokens=await orchestrator.registry.read(has_tokens))
        is_read_only = orchestrator.registry.is_read_only
        old_runs = forgetting(orchestrator.registry, 0 if is_read_only else settings.keep_executions_days)
        at_times = nullcontext() if is_read_only else keeping_schedule(orchestrator, settings)
        packed = nullcontext() if is_read_only else keeping_packed(orchestrator.registry)
        async with server.session_manager.run(), old_runs, packed, orchestrator.in_background(), at_times:
            yield

    app = create_app(settings, run_beside=run_beside, connections=connections_from(Path.home()), rules=rules)
    app.router.routes.append(Route("/mcp", mcp_app))
    app.state.shared = run, grown
    if settings.oauth_issuer:
        from mcp_server.transport.oauth import resource_routes  # only who has an issuer needs it

        app.router.routes += resource_routes(resource_of(settings), settings.oauth_issuer)
    return app


@dataclass(frozen=True, slots=True)
class Audience:
    """The receiver of progress: that calls are answered from now on, at which address a browser enters, and what
    `watching` tells."""

    ready: Callable[[str], None]
    told: Told = lambda _: None
    progress: Progress | None = None


def serve_registry(settings: Settings, audience: Audience) -> None:
    """Serve until a signal ends it, and keep up with the clients of this machine meanwhile.

    Raises RegistryError if the registry cannot be opened, CannotListen if the address cannot be had.
    """
    with _listen(settings) as listener:
        asyncio.run(_serve(settings, listener, audience))


async def _look_over(orchestrator: Orchestrator) -> None:
    """After a program was killed: tell of a registry that was damaged then."""
    if not await is_sound(orchestrator.registry):
        logger.error("The registry is damaged. `ctxr doctor --deep` says what, `ctxr db salvage` saves what it can.")


def _tell_of_purging() -> None:
    """Once at the start: which clients soon delete their conversations themselves."""
    places = Places(Path.home(), os.environ)
    for client in CLIENTS:
        if client.purge and client.folder and client.folder(places).exists():
            days = days_kept(client.purge, places)
            if days is not None and days < LONG:
                logger.warning(
                    "%s deletes its conversations after %g days; what is read before stays in the registry. Set by %s",
                    client.name,
                    days,
                    f"{'.'.join(client.purge.setting)} in {client.purge.file(places)}",
                )


def _keep_few_heaps() -> None:
    """glibc gives threads heaps of their own, which only grow: a tenth of all memory in half an hour of questions."""
    if sys.platform == "linux":
        with suppress(AttributeError):  # other libraries of C have no such thing
            ctypes.CDLL(None).mallopt(M_ARENA_MAX, HEAPS)


async def _serve(settings: Settings, listener: socket.socket, audience: Audience) -> None:
    sys.setswitchinterval(SWITCH_S)
    _keep_few_heaps()
    left_open = settings.url.startswith("sqlite") and was_left_open(Path(settings.url.removeprefix("sqlite:///")))
    app = build_app(settings)
    logging.getLogger("uvicorn.error").addFilter(_is_error)
    config = uvicorn.Config(
        app,
        lifespan="off",  # we run it, so that what goes wrong in it reaches the caller as it is
        http=PatientProtocol,  # of h11: httptools keeps spaces around header values, which MCP forbids
        ws="none",
        log_config=None,
        access_log=False,
        timeout_keep_alive=KEPT_S,
        timeout_graceful_shutdown=GRACE_S,
        ssl_certfile=settings.tls_cert or None,
        ssl_keyfile=settings.tls_key or None,
        # Only a proxy that is named is believed whom it speaks for.
        proxy_headers=bool(settings.public_url),
    )
    async with app.router.lifespan_context(app):
        gc.collect()
        gc.freeze()  # what is loaded now stays: the collector's rounds leave it out
        audience.ready(page_address(settings, app.state.gate))
        if app.state.orchestrator.registry.is_embedded:
            _tell_of_purging()
        # uvicorn stops at a signal, then raises it again: it must not end us before the registry is closed.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        look = asyncio.create_task(_look_over(app.state.orchestrator)) if left_open else None
        run, grown = app.state.shared
        async with _keeping_up(app.state.orchestrator, settings, audience), sharing(run, grown, GRACE_S):
            await _Server(config).serve(sockets=[listener])
        if look:
            look.cancel()


class _Server(uvicorn.Server):
    """Ends soon after the signal that ends it, whatever is stuck: what was acknowledged is stored."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end."""
        at_last = threading.Timer(END_S, os._exit, (1,))
        at_last.daemon = True
        at_last.start()
        super().handle_exit(sig, frame)


def _keeping_up(
    orchestrator: Orchestrator, settings: Settings, audience: Audience
) -> AbstractAsyncContextManager[None]:
    """An embedded registry watches the clients' stores. A shared one does not: what a person's clients keep comes
    into it only by that person's `ctxr sync`. Into one that is read only comes nothing."""
    if orchestrator.registry.is_read_only:
        return nullcontext()
    readers = READERS if orchestrator.registry.is_embedded else ()
    places = Places(Path.home(), os.environ)
    return running(watch(orchestrator, settings.home, readers, places, audience.told, audience.progress))


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listener = socket.create_server((settings.host, settings.port), family=family)
        # asyncio sets it only on sockets it opened itself; without it every answer waits 40 ms for an acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as exc:
        raise CannotListen(*_why_not(settings, exc)) from exc


def _why_not(settings: Settings, exc: OSError) -> tuple[str, str]:
    address = local_address(settings)
    if is_registry(address):
        return f"Context Registry runs already at {address}", "Use that one, or stop it first."
    reason = (exc.strerror or str(exc)).partition(" (while")[0]
    return (
        f"Cannot listen on {settings.host} port {settings.port}: {reason}",
        f"Choose another port: --port {settings.port + 1}, or CTXR_PORT",
    )


def _is_error(record: logging.LogRecord) -> bool:
    """A stream that is cut when the server stops is none."""
    kind = record.exc_info[0] if record.exc_info else None
    return kind is not asyncio.CancelledError and not str(record.msg).startswith("Cancel %s running task")
