"""Exchanging with a registry elsewhere while a program runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from orchestrator.remote.client import RemoteRegistry, Unreachable
from orchestrator.remote.exchange import Exchanged, pull, push
from registry.settings import Settings

if TYPE_CHECKING:
    from orchestrator.service import Orchestrator

logger = logging.getLogger(__name__)

EVERY_S = 5.0
MOST_S = 300.0
"""Where nobody answers it is tried ever more seldom, up to this."""


@asynccontextmanager
async def exchanging(orchestrator: Orchestrator, settings: Settings) -> AsyncIterator[None]:
    """Meanwhile what is new goes there, and comes from there."""
    task = asyncio.create_task(_exchange(orchestrator, settings))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _exchange(orchestrator: Orchestrator, settings: Settings) -> None:
    pause = EVERY_S
    async with RemoteRegistry(settings.remote_url, settings.token.get_secret_value()) as remote:
        while True:
            try:
                done = Exchanged()
                await push(orchestrator, remote, done)
                await pull(orchestrator, remote, done)
                pause = EVERY_S
            except Unreachable as exc:
                logger.warning("The registry elsewhere does not answer: %s", exc)
                pause = min(2 * pause, MOST_S)
            except Exception:  # whatever it is, what waits is still there at the next try
                logger.exception("The exchange with the registry elsewhere failed")
                pause = min(2 * pause, MOST_S)
            await asyncio.sleep(pause)
