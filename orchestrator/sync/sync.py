"""Import new sessions from the clients' stores, in batches.

An unreadable store is reported. Nothing is deleted if a store is missing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.operations.import_sessions import ImportRequest
from orchestrator.state import Syncing
from orchestrator.sync.drain import drain
from orchestrator.sync.store_report import StoreReport
from registry.access import Access
from registry.errors import RegistryError
from registry.storage.client_stores import last_sync_of, list_stores, save_store, seen_sessions
from registry.storage.conversations.belonging import save_repositories, unknown_repositories
from sources.base import FoundSession, Paths, Skipped, Source

if TYPE_CHECKING:
    from orchestrator.service import Orchestrator

logger = logging.getLogger(__name__)

BATCH_MESSAGES, SHARED_BATCH_MESSAGES = 500, 20
"""Messages in one transaction; the second while questions are asked, which wait for it to end."""
BATCH_CHARACTERS = 8 * 2**20  # characters, and bytes of images, in one transaction, to bound memory

CLIENT = "ctxr sync"
Progress = Callable[[StoreReport, int], None]
"""Called after each batch of a store, with the expected number of new sessions; 0: unknown."""


class SingleTask:
    """Runs one task at a time in the background; `close` cancels it."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        self._task = asyncio.create_task(work)

    async def wait(self, timeout_s: float) -> None:
        if self._task:
            await asyncio.wait([self._task], timeout=timeout_s)

    async def close(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])


async def sync(
    orchestrator: Orchestrator,
    readers: Sequence[Source],
    paths: Paths,
    progress: Progress | None = None,
    access: Access | None = None,
) -> list[StoreReport]:
    """Read every store that the readers find, and store new messages. A concurrent call waits.

    `access`: the owner of the conversations; None: no owner. Unreadable stores are reported; the others are still read.
    """
    async with orchestrator.syncing:
        reports = []
        for reader, store in await asyncio.to_thread(_stores, readers, paths):
            report = StoreReport.of(reader, store)
            reports.append(report)
            try:
                await _sync_store(orchestrator, reader, store, report, progress, access)
            except RegistryError:
                raise  # the registry fails: no store can be imported
            except Exception as exc:  # a bug must not stop the other stores
                logger.exception("Importing %s failed", report.path)
                report.is_complete = False
                report.skip([Skipped(report.path, f"importing it failed: {type(exc).__name__}: {exc}")])
        if found := await orchestrator.registry.read(unknown_repositories):
            await orchestrator.registry.write(lambda tx: save_repositories(tx, found))
    return reports


def _stores(readers: Sequence[Source], paths: Paths) -> list[tuple[Source, Path]]:
    return [(reader, store) for reader in readers for store in stores_of(reader, paths)]


def stores_of(reader: Source, paths: Paths) -> list[Path]:
    try:
        return list(reader.find(paths))
    except Exception:  # an unreadable folder must not stop the other clients' stores
        logger.exception("Looking for the stores of %s failed", reader.name)
        return []


async def _sync_store(
    orchestrator: Orchestrator,
    reader: Source,
    store: Path,
    report: StoreReport,
    progress: Progress | None,
    access: Access | None,
) -> None:
    """Read a store if its stamp has changed. The stamp is taken before reading, so that later changes are found."""
    stamp = await asyncio.to_thread(_stamp_of, reader, store)
    store_key = report.source, report.path
    (last_stamp, last_skipped), seen = await orchestrator.registry.read(
        lambda tx: (last_sync_of(tx, *store_key), seen_sessions(tx, *store_key))
    )
    report.seen = len(seen)
    if stamp and stamp == last_stamp:
        report.skip(Skipped(**one) for one in last_skipped)
        return
    read_again: set[str] = set()
    expected = await asyncio.to_thread(_count_expected, reader, store, report.seen) if progress else 0
    batches = _batches(_findings(reader, store, seen, report), report, orchestrator)
    while (batch := await _next_batch(batches, orchestrator)) is not None:
        for stored, new_count in await _store_batch(orchestrator, batch, report, access):
            read_again.update(one.key for one in stored)
            report.new_messages += new_count
            report.parsed += len(stored)
            report.seen += sum(one.key not in seen for one in stored)
        if progress:
            progress(report, expected)
    report.keep(last_skipped, read_again)
    state = {name: getattr(report, name) for name in ("source", "path", "seen", "parsed")}
    state["stamp"] = stamp if report.is_complete else ""
    state["skipped"] = [asdict(one) for one in report.skipped]
    report.has_news = report.parsed > 0 or any(one not in last_skipped for one in state["skipped"])
    if report.has_news or state["stamp"] != last_stamp or not report.has_same_skipped(last_skipped):
        await orchestrator.registry.write(lambda tx: save_store(tx, **state))


async def _next_batch(batches: Iterator[list[FoundSession]], orchestrator: Orchestrator) -> list[FoundSession] | None:
    """Read the next batch; let waiting callers go first."""
    await orchestrator.yield_to_callers()
    batch = await asyncio.to_thread(next, batches, None)
    await orchestrator.yield_to_callers()
    return batch


async def _store_batch(
    orchestrator: Orchestrator, batch: list[FoundSession], report: StoreReport, access: Access | None
) -> list[tuple[list[FoundSession], int]]:
    """Store a batch; return the stored sessions with the number of new messages.

    If that fails although the registry is available, the sessions are stored one by one, so that one bad session does
    not affect the others.
    """
    request = ImportRequest(source=report.source, store=report.path, found=batch)
    answer = await orchestrator.run(request, CLIENT, access=access)
    if answer["success"]:
        return [(batch, answer["new_count"])]
    if len(batch) > 1 and await _is_registry_available(orchestrator):
        return [stored for one in batch for stored in await _store_batch(orchestrator, [one], report, access)]
    report.is_complete = False
    error = answer["error"]
    report.skip(Skipped(one.key, error["details"] or error["message"]) for one in batch)
    return []


async def _is_registry_available(orchestrator: Orchestrator) -> bool:
    try:
        await orchestrator.registry.read(lambda tx: None)
    except RegistryError:
        return False
    return True


def _count_expected(reader: Source, store: Path, seen: int) -> int:
    with suppress(RegistryError, OSError):  # reading the store reports the error
        return max(0, reader.count(store) - seen)
    return 0


def _stamp_of(reader: Source, store: Path) -> str:
    with suppress(RegistryError, OSError):  # reading the store reports the error
        return reader.stamp(store)
    return ""


def _findings(
    reader: Source, store: Path, seen: Mapping[str, str], report: StoreReport
) -> Iterator[FoundSession | Skipped]:
    try:
        yield from reader.sessions(store, seen)
    except RegistryError as exc:
        report.is_complete = False
        yield Skipped(report.path, f"{exc.message} {exc.details}".strip())
    except Exception as exc:  # a reader's bug must not stop the other stores
        logger.exception("Reading %s failed", report.path)
        report.is_complete = False
        yield Skipped(report.path, f"the reader failed: {type(exc).__name__}: {exc}")


def _batches(
    findings: Iterator[FoundSession | Skipped], report: StoreReport, orchestrator: Orchestrator
) -> Iterator[list[FoundSession]]:
    batch: list[FoundSession] = []
    messages = characters = 0
    for finding in findings:
        if isinstance(finding, Skipped):
            report.skip([finding])
            continue
        report.skip(replace(one, session=finding.key) for one in finding.skipped)
        batch.append(finding)
        messages += len(finding.session.messages)
        for message in finding.session.messages:
            characters += _length(message.text) + _length(message.more) + sum(map(len, message.images.values()))
        is_shared = orchestrator.seconds_since_request < 10  # more questions may follow
        most = SHARED_BATCH_MESSAGES if is_shared else BATCH_MESSAGES
        if messages >= most or characters >= BATCH_CHARACTERS:
            yield batch
            batch, messages, characters = [], 0, 0
    if batch:
        yield batch


def _length(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return sum(map(_length, parts))


PAUSE_FACTOR = 10
"""After a sync, the next one is skipped for this many times its duration, since nearly every question triggers one."""
MAX_WAIT_S = 0.25  # seconds that a question waits for a sync, which then continues in the background
MAX_FIRST_WAIT_S = 2.0  # the same while stores are read for the first time


class Freshness:
    """Syncs hook events and the stores of this machine before questions are answered, one sync at a time."""

    def __init__(self, orchestrator: Orchestrator, home: Path, readers: Sequence[Source], paths: Paths) -> None:
        self._orchestrator, self._home, self._readers, self._paths = orchestrator, home, readers, paths
        self._sync_task = SingleTask()
        self._fresh_until = float("-inf")
        self._stores: set[tuple[str, str]] | None = None

    async def refresh(self, is_about_now: bool = False) -> Syncing | None:
        """Sync, and wait for at most the limits above; during the first import, return its progress.

        `is_about_now`: messages written just now are needed, so a recent sync does not count.
        """
        if is_about_now:
            await self._sync_task.wait(MAX_FIRST_WAIT_S)
        if not self._sync_task.is_running:
            if not is_about_now and time.monotonic() < self._fresh_until:
                return None
            self._sync_task.start(self._sync_all())
        await self._sync_task.wait(MAX_FIRST_WAIT_S if is_about_now or await self._import_progress() else MAX_WAIT_S)
        return await self._import_progress() if self._sync_task.is_running else None

    async def close(self) -> None:
        await self._sync_task.close()

    async def _import_progress(self) -> Syncing | None:
        """Return the progress of the first import; None if every store has been read once."""
        if self._stores is None:
            found = await asyncio.to_thread(_stores, self._readers, self._paths)
            self._stores = {(reader.name, StoreReport.of(reader, store).path) for reader, store in found}
        if not self._stores:
            return None
        read = await self._orchestrator.registry.read(list_stores)
        left = self._stores - {(one["source"], one["path"]) for one in read}
        if not left:
            self._stores = set()  # skip this check from now on
            return None
        return Syncing(done=len(self._stores) - len(left), left=len(left))

    async def _sync_all(self) -> None:
        started = time.monotonic()
        try:
            await drain(self._orchestrator, self._home)
            await sync(self._orchestrator, self._readers, self._paths)
        except Exception:  # questions are still answered
            logger.exception("The background sync failed")
        finally:
            ended = time.monotonic()
            self._fresh_until = ended + PAUSE_FACTOR * (ended - started)
