"""Sync continuously with the clients of this machine.

File system notifications trigger a sync; a periodic sync covers network drives, new stores and unwatched folders. The
system limits the number of watches, so the folders with the most recent changes are chosen.
"""

import asyncio
import logging
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from functools import partial
from os.path import dirname
from pathlib import Path

from watchfiles import awatch

from orchestrator.service import Orchestrator
from orchestrator.sync.drain import drain
from orchestrator.sync.spool import open_folder
from orchestrator.sync.store_report import StoreReport
from orchestrator.sync.sync import Progress, sync
from sources.base import Paths, Source

logger = logging.getLogger(__name__)

MIN_INTERVAL_S = 3.0  # seconds between periodic syncs if they are cheap and there are no notifications ...
MAX_INTERVAL_S = 60.0  # ... and with notifications, or after an error

OnReports = Callable[[list[StoreReport]], None]
Plan = dict[str, frozenset[str]]  # folder to the names of the readers to sync when it changes


async def watch(
    orchestrator: Orchestrator,
    home: Path,
    readers: Sequence[Source],
    paths: Paths,
    on_reports: OnReports = lambda _: None,
    progress: Progress | None = None,
) -> None:
    """Sync now, then after each change, until cancelled.

    Reads the spool of `home`, and the stores that `readers` find. `on_reports` gets all reports of the first sync, then
    those of changed stores; `progress` is for the first sync.
    """
    is_first = True
    changed: frozenset[str] | None = None
    async with aclosing(Notices()) as notices:
        while True:
            began = time.monotonic()
            pause_s, timeout_s = MIN_INTERVAL_S, MAX_INTERVAL_S
            try:
                folders = await asyncio.to_thread(plan, readers, paths)
                has_new_plan = await notices.watch({**folders, **_spool(home)})
                is_drained = await drain(orchestrator, home)
                to_sync = [reader for reader in readers if changed is None or has_new_plan or reader.name in changed]
                reports = await sync(orchestrator, to_sync, paths, progress)
                news = [report for report in reports if report.has_news or is_first]
                if news or is_first:
                    on_reports(news)
                is_first, progress = False, None
                if is_drained:
                    took_s = time.monotonic() - began
                    # at most a quarter of a processor, and below 2 % while nothing is new
                    pause_s = min(took_s * 3, MAX_INTERVAL_S) if changed is not None else 0.0
                    if not notices.is_watching:
                        is_idle = not any(report.parsed for report in reports)
                        timeout_s = min(max(took_s * 50, MIN_INTERVAL_S), MAX_INTERVAL_S) if is_idle else MIN_INTERVAL_S
            except Exception:  # the next sync may succeed
                logger.exception("Syncing with the clients failed")
            await asyncio.sleep(pause_s)
            changed = await notices.next(timeout_s)


def _spool(home: Path) -> Plan:
    """Return the plan for the spool's folder; {} if it cannot be created."""
    try:
        return {open_folder(str(home)): frozenset()}
    except OSError:
        return {}


STEP_MS = 1000
"""Milliseconds between two polls of the notifications; each poll wakes an idle server."""

MAX_FOLDERS = 500  # watched folders of one store; the periodic sync covers the others


def plan(readers: Iterable[Source], paths: Paths) -> Plan:
    """Return the folders to watch of all existing stores."""
    wanted: dict[str, set[str]] = defaultdict(set)
    for reader in readers:
        for folder in _folders_of(reader, paths):
            wanted[folder].add(reader.name)
    return {folder: frozenset(names) for folder, names in wanted.items()}


def _folders_of(reader: Source, paths: Paths) -> list[str]:
    try:
        return [folder for store in reader.find(paths) for folder in _folders_below(reader.watched(store))]
    except Exception:  # the sync reports the error
        return []


def _folders_below(tops: Iterable[Path]) -> list[str]:
    """Return the given folders and those below; of the folders in one folder, the latest changed first."""
    found: list[str] = []
    for top in tops:
        for folder, below, _ in os.walk(top):
            found.append(folder)
            if len(found) == MAX_FOLDERS:
                return found
            below.sort(key=partial(_changed_at, folder), reverse=True)
    return found


def _changed_at(folder: str, name: str) -> float:
    try:
        return os.stat(os.path.join(folder, name)).st_mtime
    except OSError:
        return 0.0


class Notices:
    """Watches the folders of a plan, and collects the names of the readers to sync.

    Notifications may be missing or incomplete: nothing may depend on them.
    """

    def __init__(self) -> None:
        self._plan: Plan = {}
        self._follow_task: asyncio.Task[None] | None = None
        self._has_news = asyncio.Event()
        self._names: set[str] = set()

    @property
    def is_watching(self) -> bool:
        return self._follow_task is not None and not self._follow_task.done()

    async def watch(self, plan: Plan) -> bool:
        """Watch the folders of a plan. Returns True if the plan is new, so that notifications may have been missed."""
        if plan == self._plan:
            return False
        await self.aclose()
        self._plan = plan
        self._follow_task = asyncio.create_task(self._follow(plan))
        await asyncio.sleep(0)  # start the task, so that it watches
        return True

    async def next(self, within_s: float) -> frozenset[str] | None:
        """Return the readers with changes since the last call; None after `within_s` seconds without any."""
        try:
            async with asyncio.timeout(within_s):
                await self._has_news.wait()
        except TimeoutError:
            return None
        self._has_news.clear()
        names, self._names = frozenset(self._names), set()
        return names

    async def _follow(self, plan: Plan) -> None:
        changed = awatch(
            *plan,
            watch_filter=None,
            debounce=STEP_MS,
            step=STEP_MS,
            rust_timeout=0,  # no timeout
            recursive=False,
            ignore_permission_denied=True,
        )
        try:
            async for changes in changed:
                for _, path in changes:
                    self._names |= plan.get(path, frozenset()) | plan.get(dirname(path), frozenset())
                self._has_news.set()
        except OSError as exc:  # too many watches, or a folder that was just removed
            logger.info("No file system notifications, so stores are polled every few seconds: %s", exc)

    async def aclose(self) -> None:
        if self._follow_task:
            self._follow_task.cancel()
            await asyncio.wait([self._follow_task])
