"""Roll old executions up into figures in the background, in small batches."""

import asyncio
import logging
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import timedelta

from orchestrator.background import running
from registry.domain import now
from registry.monitor.rollup import roll_up
from registry.storage.database import Database

logger = logging.getLogger(__name__)


async def roll_up_older(registry: Database, days: int) -> int:
    """Roll up all runs older than some days, and return how many.

    If it is stopped, each run is either still there or counted.
    """
    before = (now() - timedelta(days=days)).replace(minute=0, second=0, microsecond=0)
    rolled = 0
    # 500 take about 20 ms, in which nobody else can write to SQLite
    while batch := await registry.write(lambda tx: roll_up(tx, before, 500)):
        rolled += batch
        await asyncio.sleep(0.1)  # between two batches others come first
    return rolled


def forgetting(registry: Database, days: int) -> AbstractAsyncContextManager[None]:
    """Roll up older executions every hour while the context is open; 0 days: never."""
    return running(_forget(registry, days)) if days else nullcontext()


async def _forget(registry: Database, days: int) -> None:
    while True:
        try:
            await roll_up_older(registry, days)
        except Exception:  # the server goes on; what is left is rolled up next time
            logger.exception("Old executions could not be rolled up")
        await asyncio.sleep(3600)
