"""The records of runs on their way into the registry: one writer behind the answers, some records at a time.

What cannot be stored now is held back until the registry is there again, and then stored in nobody's way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from registry.errors import RegistryError
from registry.registry import Registry
from registry.storage.conversations.channels import MadeSummary, keep_summaries
from registry.storage.database import WriteTransaction
from registry.storage.records.executions import Execution, save_execution

logger = logging.getLogger(__name__)

MOST = 1000
"""So many records are held back at most; then the oldest ones go."""
BATCH = 100
"""Records of one transaction."""
PAUSE_S = 1.0
"""Between two attempts, while the registry takes nothing."""
RECORDING_S = 0.5
"""An answer waits no longer for its record."""
SETTLING_S = 2.0
"""The end of a program waits no longer for records."""


class _Held(NamedTuple):
    """A record, and what is done when it was tried to store it."""

    run: Execution
    made: Sequence[MadeSummary]
    tried: asyncio.Future[None]


class Records:
    """Stores the records of runs."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._held: dict[str, _Held] = {}
        self._writer: asyncio.Task[None] | None = None
        self._is_held_up = False
        self._again = asyncio.Event()

    def add(self, run: Execution, made: Sequence[MadeSummary] = ()) -> asyncio.Future[None]:
        """Have a record stored soon, and the summaries that were made on the way.

        The future is done when they are, or when they could not be stored yet.
        """
        held = _Held(run, made, asyncio.get_running_loop().create_future())
        if self._registry.is_read_only:
            held.tried.set_result(None)
            return held.tried
        self._held[run.id] = held
        if len(self._held) > MOST:
            self._held.pop(next(iter(self._held)))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())
        return held.tried

    async def store(self, run: Execution, made: Sequence[MadeSummary] = ()) -> None:
        """Store a record; where the registry takes none now, nobody waits for that."""
        tried = self.add(run, made)
        if run.error is None:
            self.retry()
        if not self._is_held_up or run.error is None:
            await asyncio.wait([tried], timeout=RECORDING_S)

    def retry(self) -> None:
        """The registry has just answered: what is held back may be stored now."""
        self._again.set()

    async def settle(self) -> None:
        """Wait for the records on their way; what cannot be stored now is lost with this process."""
        if self._writer:
            await asyncio.wait([self._writer], timeout=SETTLING_S)
            self._writer.cancel()

    async def _write(self) -> None:
        while self._held:
            batch = list(islice(self._held.values(), BATCH))

            def work(tx: WriteTransaction, batch: list[_Held] = batch) -> None:
                for held in batch:
                    save_execution(tx, held.run)
                    keep_summaries(tx, held.made)

            try:
                await self._registry.write(work, is_awaited=False)
            except RegistryError as exc:
                if not self._is_held_up:
                    logger.error("Records of runs are held back: %s", exc.details)
                self._is_held_up = True
            else:
                self._is_held_up = False
                for held in batch:
                    if self._held.get(held.run.id) is held:
                        del self._held[held.run.id]
            for held in batch:
                if not held.tried.done():
                    held.tried.set_result(None)
            if self._is_held_up:
                await self._pause()

    async def _pause(self) -> None:
        self._again.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._again.wait(), PAUSE_S)
