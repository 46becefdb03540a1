"""Silent sync before a question is answered: what the clients on this machine wrote a moment ago counts."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.sync.drain import drain
from sources.base import Places, Source

if TYPE_CHECKING:
    from orchestrator.service import Orchestrator

logger = logging.getLogger(__name__)

EVERY_S = 5.0
"""A look at the stores stays good for so long."""
PATIENCE_S = 0.25
"""A question waits no longer than this; a longer sync, as the first one is, goes on behind it."""


class Freshness:
    """Keeps the registry up to date with the hooks and stores of this machine, one sync at a time."""

    def __init__(self, orchestrator: Orchestrator, home: Path, readers: Sequence[Source], places: Places) -> None:
        self._orchestrator, self._home, self._readers, self._places = orchestrator, home, readers, places
        self._syncing: asyncio.Task[None] | None = None
        self._looked_at = float("-inf")

    async def refresh(self) -> None:
        """Bring in what is new, as far as the patience goes."""
        if self._syncing is None:
            if time.monotonic() - self._looked_at < EVERY_S:
                return
            self._syncing = asyncio.create_task(self._sync())
        await asyncio.wait([self._syncing], timeout=PATIENCE_S)

    async def close(self) -> None:
        """End a sync that is going on; what it has stored stays, the rest comes next time."""
        if self._syncing:
            self._syncing.cancel()
            await asyncio.wait([self._syncing])

    async def _sync(self) -> None:
        from orchestrator.sync.sync import sync

        try:
            await drain(self._orchestrator, self._home)
            await sync(self._orchestrator, self._readers, self._places)
        except Exception:  # a question is answered from what is there, whatever is wrong with a store
            logger.exception("The silent sync failed")
        finally:
            self._looked_at = time.monotonic()
            self._syncing = None
