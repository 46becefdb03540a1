"""Silent sync before a question is answered: what the clients on this machine wrote a moment ago counts."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.sync.drain import drain
from orchestrator.sync.sync import Ongoing, sync
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
        self._ongoing = Ongoing()
        self._looked_at = float("-inf")

    async def refresh(self) -> None:
        """Bring in what is new, as far as the patience goes."""
        if not self._ongoing.is_running:
            if time.monotonic() - self._looked_at < EVERY_S:
                return
            self._ongoing.start(self._bring_in())
        await self._ongoing.wait(PATIENCE_S)

    async def close(self) -> None:
        """End a sync that is going on."""
        await self._ongoing.close()

    async def _bring_in(self) -> None:
        try:
            await drain(self._orchestrator, self._home)
            await sync(self._orchestrator, self._readers, self._places)
        except Exception:  # a question is answered from what is there, whatever is wrong with a store
            logger.exception("The silent sync failed")
        finally:
            self._looked_at = time.monotonic()
