"""Exchanging with a registry elsewhere while a program runs, and saying how old the copy here is."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING

from orchestrator.background import running
from orchestrator.remote.client import Closed, RemoteRegistry, Unreachable
from orchestrator.remote.exchange import Exchanged, pull, push
from orchestrator.state import LocalCopy
from registry.domain import format_time, now
from registry.errors import RegistryError
from registry.registry import Registry
from registry.settings import Settings
from registry.storage.database import Database
from registry.storage.exchange.edits import tell_again
from registry.storage.exchange.remote import answered_at
from registry.storage.records.schedule import hold, let_go

if TYPE_CHECKING:
    from orchestrator.service import Orchestrator

logger = logging.getLogger(__name__)

EVERY_S = 5.0
MOST_S = 60.0
"""Where nobody answers it is tried ever more seldom, up to this."""
TURN_S = 60.0
"""So long one process has the exchange to itself; before that is over it takes it again."""


async def copy_of(registry: Database, url: str) -> LocalCopy | None:
    """Return the note for answers from the local copy; None while the other registry answers."""
    moment = await registry.read(lambda tx: answered_at(tx, url))
    if moment and abs(now() - moment) < timedelta(seconds=60.0):  # a clock that was ahead has been put right
        return None
    return {"of": url, "as_of": format_time(moment) if moment else None}


@asynccontextmanager
async def exchanging(orchestrator: Orchestrator, settings: Settings) -> AsyncIterator[None]:
    """Meanwhile what is new goes there, and comes from there: by one process of all that share this registry."""
    turn = _Turn(orchestrator.registry, settings.remote_url)
    try:
        async with running(_exchange(orchestrator, settings, turn)):
            yield
    finally:
        await turn.end()


class _Turn:
    """Which of the processes that share a registry exchanges for all of them."""

    def __init__(self, registry: Registry, url: str) -> None:
        self._registry = registry
        self._job = f"exchange {blake2b(url.encode(), digest_size=16).hexdigest()}"
        self._until: datetime | None = None

    async def is_mine(self) -> bool:
        left = self._until - now() if self._until else timedelta()
        if timedelta(seconds=TURN_S / 2) < left <= timedelta(seconds=TURN_S):
            return True
        until, held = now() + timedelta(seconds=TURN_S), self._until
        self._until = until if await self._registry.write(lambda tx: hold(tx, self._job, until, held)) else None
        return self._until is not None

    async def end(self) -> None:
        """Leave it to the next at once."""
        if held := self._until:
            with suppress(RegistryError):
                await self._registry.write(lambda tx: let_go(tx, self._job, held))


async def _exchange(orchestrator: Orchestrator, settings: Settings, turn: _Turn) -> None:
    pause, pushes_at, is_new = EVERY_S, time.monotonic(), True
    async with RemoteRegistry(settings.remote_url, settings.token.get_secret_value()) as remote:
        while True:
            try:
                if await turn.is_mine():
                    done = Exchanged()
                    await pull(orchestrator, remote, done)
                    if is_new:  # the token or the server may accept refused edits by now
                        await orchestrator.registry.write(partial(tell_again, url=remote.url))
                        is_new = False
                    if time.monotonic() >= pushes_at and not await _may_push(orchestrator, remote, done):
                        pushes_at = time.monotonic() + MOST_S
                pause = EVERY_S
            except Unreachable as exc:
                logger.warning("The registry elsewhere does not answer: %s", exc)
                pause, is_new = min(2 * pause, MOST_S), True
            except Exception:  # whatever it is, what waits is still there at the next try
                logger.exception("The exchange with the registry elsewhere failed")
                pause = min(2 * pause, MOST_S)
            await asyncio.sleep(pause)


async def _may_push(orchestrator: Orchestrator, remote: RemoteRegistry, done: Exchanged) -> bool:
    """Push, and say whether the token lets this machine: one that may only read goes on reading as often as ever."""
    try:
        await push(orchestrator, remote, done)
    except Closed as exc:
        logger.warning("The registry elsewhere takes nothing from here: %s", exc)
        return False
    return True
