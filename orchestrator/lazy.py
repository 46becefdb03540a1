"""Open an orchestrator after the MCP handshake: a stdio server is started for every chat window.

Nothing heavy is imported here; the graph and the database are loaded in a thread, when first needed or shortly after.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from contextvars import Context
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any

from orchestrator.requests.refusals import Refusal
from orchestrator.requests.shapes import Request
from registry.errors import RegistryError

if TYPE_CHECKING:
    from orchestrator.service import Orchestrator
    from registry.settings import Settings
    from registry.storage.records.executions import Door
    from sources.client import SizeLimit

logger = logging.getLogger(__name__)

RunOperation = Callable[..., Coroutine[Any, Any, dict[str, Any]]]
"""`run(request, client's name, limit=…)` of an orchestrator."""

GrownChannels = Callable[[datetime], AsyncIterator[set[str]]]
"""Yields the names of channels with messages newer than a moment (`orchestrator.views.events`)."""


class LazyOrchestrator:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._opened: Orchestrator | None = None
        self._lock = asyncio.Lock()
        self._stack = AsyncExitStack()

    async def run(
        self,
        given: Mapping[str, Any] | Request | Refusal,
        client: str | None = None,
        door: Door = "mcp",
        *,
        limit: SizeLimit | None = None,
    ) -> dict[str, Any]:
        """Run one operation; if the registry cannot be opened, return a failure, and try again next time."""
        try:
            orchestrator = await self._open()
        except RegistryError as exc:
            return {"success": False, "error": exc.as_dict()}
        return await orchestrator.run(given, client, door=door, limit=limit)

    async def grown_channels(self, since: datetime) -> AsyncIterator[set[str]]:
        """Yield the names of channels that gained messages; none if the registry cannot be opened."""
        from orchestrator.views.events import grown_channels

        try:
            orchestrator = await self._open()
        except RegistryError:
            return
        async for names in grown_channels(orchestrator.registry, since):
            yield names

    async def warm_up(self) -> None:
        """Open ahead of the first request, and exclude the loaded objects from garbage collection."""
        await asyncio.sleep(0.3)  # the handshake and the tool list go first
        try:
            await self._open()
        except RegistryError:
            return  # the first request will say so
        gc.collect()
        gc.freeze()

    async def close(self) -> None:
        await self._stack.aclose()

    async def _open(self) -> Orchestrator:
        async with self._lock:
            # Running operations finish on the read-only orchestrator; `close` closes both.
            if self._opened is None or self._opened.registry.has_become_writable:
                try:
                    self._opened = await asyncio.create_task(self._open_anew(), context=Context())
                except RegistryError as exc:
                    if self._opened is None:
                        raise
                    logger.warning("The registry stays read only: %s %s", exc.message, exc.details)
            return self._opened

    async def _open_anew(self) -> Orchestrator:
        opening = await asyncio.to_thread(import_module, "orchestrator.opening")
        opened: Orchestrator = await self._stack.enter_async_context(opening.open_orchestrator(self._settings))
        await self._stack.enter_async_context(opened.run_background_work())
        return opened
