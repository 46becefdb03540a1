"""Silent sync before a question is answered: what the clients on this machine wrote a moment ago counts."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.state import Syncing
from orchestrator.sync.drain import drain
from orchestrator.sync.sync import Ongoing, stores_on, sync
from registry.storage.client_stores import list_stores
from sources.base import Places, Source

if TYPE_CHECKING:
    from orchestrator.service import Orchestrator

logger = logging.getLogger(__name__)

WORTH = 10
"""What took a moment to look at stays good for so many: the stores' stamps are looked at by nearly every question."""
PATIENCE_S = 0.25
"""A question waits no longer than this; a longer sync goes on behind it."""
FIRST_PATIENCE_S = 2.0
"""And so long while stores are read for the first time: nothing is known yet, and small ones are soon there."""


class Freshness:
    """Keeps the registry up to date with the hooks and stores of this machine, one sync at a time."""

    def __init__(self, orchestrator: Orchestrator, home: Path, readers: Sequence[Source], places: Places) -> None:
        self._orchestrator, self._home, self._readers, self._places = orchestrator, home, readers, places
        self._ongoing = Ongoing()
        self._good_until = float("-inf")
        self._stores: set[tuple[str, str]] | None = None

    async def refresh(self) -> Syncing | None:
        """Bring in what is new, as far as the patience goes; while stores are first read, how many are done."""
        if not self._ongoing.is_running:
            if time.monotonic() < self._good_until:
                return None
            self._ongoing.start(self._bring_in())
        await self._ongoing.wait(FIRST_PATIENCE_S if await self._unread() else PATIENCE_S)
        return await self._unread() if self._ongoing.is_running else None

    async def close(self) -> None:
        """End a sync that is going on."""
        await self._ongoing.close()

    async def _unread(self) -> Syncing | None:
        """How many stores of this machine were read, as long as one of them never was."""
        if self._stores is None:
            self._stores = await asyncio.to_thread(lambda: set(stores_on(self._readers, self._places)))
        if not self._stores:
            return None
        read = await self._orchestrator.registry.read(list_stores)
        left = self._stores - {(one["source"], one["path"]) for one in read}
        if not left:
            self._stores = set()  # never asked again: later syncs are short
            return None
        return Syncing(done=len(self._stores) - len(left), left=len(left))

    async def _bring_in(self) -> None:
        started = time.monotonic()
        try:
            await drain(self._orchestrator, self._home)
            await sync(self._orchestrator, self._readers, self._places)
        except Exception:  # a question is answered from what is there, whatever is wrong with a store
            logger.exception("The silent sync failed")
        finally:
            ended = time.monotonic()
            self._good_until = ended + WORTH * (ended - started)
