"""The system's notices that something changed in a folder (inotify, FSEvents and the like, by way of watchfiles)."""

from __future__ import annotations

import asyncio
import logging
import time
from os.path import dirname
from types import TracebackType
from typing import Self

from watchfiles import awatch

from orchestrator.sync.watched_folders import Plan

logger = logging.getLogger(__name__)

QUIET_S = 0.2
"""A burst of writes is over when nothing was written for so long ..."""
BURST_S = 0.8
"""... and one that does not end is told of after so long."""
_STEP_MS = 50


class Notices:
    """Watches the folders of a plan, each by itself, and collects the names of those concerned.

    Where the system gives no notices, or no more of them, there are none: nobody may depend on them.
    """

    def __init__(self) -> None:
        self._plan: Plan = {}
        self._following: asyncio.Task[None] | None = None
        self._told = asyncio.Event()
        self._names: set[str] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def watch(self, plan: Plan) -> bool:
        """Watch these folders from now on. True if they are others than before, and notices may have been missed."""
        if plan == self._plan:
            return False
        await self._end()
        self._plan = plan
        self._following = asyncio.create_task(self._follow(plan))
        await asyncio.sleep(0)  # it watches as soon as it is begun
        return True

    async def next(self, within_s: float) -> frozenset[str] | None:
        """The names concerned by what has changed since the last time; None if nothing does for so long."""
        if not await self._hears(within_s):
            return None
        burst_ends = time.monotonic() + BURST_S
        while time.monotonic() < burst_ends and await self._hears(QUIET_S):
            pass
        names, self._names = frozenset(self._names), set()
        return names

    async def _hears(self, within_s: float) -> bool:
        try:
            async with asyncio.timeout(within_s):
                await self._told.wait()
        except TimeoutError:
            return False
        self._told.clear()
        return True

    async def _follow(self, plan: Plan) -> None:
        changed = awatch(
            *plan,
            watch_filter=None,
            debounce=_STEP_MS,  # which knows a file that is written again and again as one change: we count ourselves
            step=_STEP_MS,
            recursive=False,
            ignore_permission_denied=True,
        )
        try:
            async for changes in changed:
                for _, path in changes:
                    self._names |= plan.get(path, frozenset()) | plan.get(dirname(path), frozenset())
                self._told.set()
        except OSError as exc:  # too many watches, or a folder that went away this moment
            logger.info("Not told of changes, so looking for them every few seconds: %s", exc)

    async def _end(self) -> None:
        if self._following:
            self._following.cancel()
            await asyncio.wait([self._following])
