"""Sync continuously with the clients of this machine.

Notices of changed files trigger a sync; a regular sync finds what they miss: network drives, new stores, folders that
are not watched.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.sync.drain import drain
from orchestrator.sync.notices import Notices, Plan, plan
from orchestrator.sync.spool import open_folder
from orchestrator.sync.store_report import StoreReport
from orchestrator.sync.sync import Progress, sync
from sources.base import Places, Source

if TYPE_CHECKING:
    from orchestrator.service import Orchestrator

logger = logging.getLogger(__name__)

EVERY_S = 3.0  # seconds between two regular syncs if they are cheap and the system reports no changes ...
SELDOM_S = 60.0  # ... and at most: where it reports changes, and after trouble.

Told = Callable[[list[StoreReport]], None]


async def watch(
    orchestrator: Orchestrator,
    home: Path,
    readers: Sequence[Source],
    places: Places,
    told: Told = lambda _: None,
    progress: Progress | None = None,
) -> None:
    """Sync now, then whenever something changes, until cancelled.

    Reads the spool of `home`, and the stores that `readers` find. `told` gets the reports of the first sync, then those
    of each store that has changed; `progress` is for the first sync.
    """
    is_first = True
    named: frozenset[str] | None = None
    async with aclosing(Notices()) as notices:
        while True:
            began = time.monotonic()
            rest, every = EVERY_S, SELDOM_S
            try:
                folders = await asyncio.to_thread(plan, readers, places)
                is_moved = await notices.watch({**folders, **_spool(home)})
                is_drained = await drain(orchestrator, home)
                due = [reader for reader in readers if named is None or is_moved or reader.name in named]
                reports = await sync(orchestrator, due, places, progress)
                news = [report for report in reports if report.has_news or is_first]
                if news or is_first:
                    told(news)
                is_first, progress = False, None
                if is_drained:
                    took = time.monotonic() - began
                    rest = min(took * 3, SELDOM_S) if named is not None else 0.0  # a quarter of a processor at most
                    if not notices.is_watching:  # less than 2 % of a processor while nothing is new
                        is_idle = not any(report.parsed for report in reports)
                        every = min(max(took * 50, EVERY_S), SELDOM_S) if is_idle else EVERY_S
            except Exception:  # whatever is wrong with a store or the registry, it may be well at the next look
                logger.exception("Keeping up with the clients failed")
            await asyncio.sleep(rest)
            named = await notices.next(every)


def _spool(home: Path) -> Plan:
    """Return the spool's folder to watch; {} if it cannot be made."""
    try:
        return {open_folder(str(home)): frozenset()}
    except OSError:
        return {}
