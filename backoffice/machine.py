"""The clients on this machine: their stores, how they are connected, and the sync started from the pages.

An embedded registry reads this machine's files; a shared one never does (docs/decisions/0006).
"""

import asyncio
import logging
import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path, PurePath
from shutil import copyfileobj
from typing import Any, BinaryIO

from backoffice.connections import Connection, ConnectionPlan, Connections
from orchestrator.service import Orchestrator
from orchestrator.sync.store_report import StoreReport
from orchestrator.sync.sync import SingleTask, stores_of, sync
from orchestrator.views.figures import stores
from registry.access import Access
from registry.domain import format_time, now
from registry.errors import InternalError, InvalidRequest, NotFound, RegistryError
from registry.temporary_folder import TemporaryFolder
from sources.base import Paths, Source, is_drift
from sources.clients import CURSOR
from sources.exports.reader import exports_in
from sources.purging import count_missing_files
from sources.readers import READERS

logger = logging.getLogger(__name__)


class Machine:
    """Inspects this machine's clients and syncs their stores, one sync at a time."""

    def __init__(self, orchestrator: Orchestrator, connections: Connections | None) -> None:
        self._orchestrator, self._connections = orchestrator, connections
        self._ongoing = SingleTask()
        self._reports: dict[tuple[str, str], StoreReport] = {}
        self._has_started = False
        self._finished_at: str | None = None
        self._error: dict[str, str] | None = None

    async def describe(self) -> dict[str, Any]:
        """Return stores, clients and the outcome of the last sync started here."""
        registry = self._orchestrator.registry
        outcome = self._outcome()  # before the stores are read, so that they include a sync that has finished

        synced, projects, files = await self._orchestrator.view(stores, CURSOR.source)
        if registry.is_embedded:
            for store in synced:
                store["only_here"] = await asyncio.to_thread(
                    count_missing_files, files.get((store["source"], store["path"]), ())
                )
        found, clients = await asyncio.to_thread(self._inspect_clients, projects) if registry.is_embedded else ([], ())
        return {
            "is_shared": not registry.is_embedded,
            "stores": [self._with_sync_time(store) for store in _merged(synced, found)],
            "clients": clients,
            "sync": outcome,
        }

    def _inspect_clients(self, projects: Sequence[str]) -> tuple[list[tuple[str, str]], Sequence[Connection]]:
        paths = Paths(Path.home(), os.environ)
        reports = [StoreReport.of(reader, store) for reader in READERS for store in stores_of(reader, paths)]
        found = [(report.source, report.path) for report in reports]
        folders = [folder for folder in map(Path, projects) if folder.is_dir()]
        return found, self._connections.inspect(folders) if self._connections else ()

    @property
    def is_syncing(self) -> bool:
        return self._ongoing.is_running

    async def connected_clients(self) -> list[str]:
        """Return the names of this machine's clients whose settings start this program."""
        found = await asyncio.to_thread(self._connections.inspect, []) if self._connections else ()
        return [client.client for client in found if any(part.state == "installed" for part in client.parts)]

    async def plan(self, client: str, *, connects: bool) -> ConnectionPlan:
        """Return the changes that connect or disconnect a client; InvalidRequest for a shared registry."""
        self._refuse_shared("on the machine of the client: ctxr install")
        if self._connections is None:
            raise NotFound("No such client", "This server was started without a view of this machine's clients")
        return await asyncio.to_thread(self._connections.plan, client, connects)

    def start_sync(self) -> None:
        """Start a sync unless one is running; InvalidRequest for a shared registry."""
        self._refuse_shared("on the machine with the histories: ctxr sync")
        if not self._ongoing.is_running:
            self._start(READERS, Paths(Path.home(), os.environ), ExitStack())

    def start_import(self, name: str, content: BinaryIO, access: Access | None) -> None:
        """Start the import of an uploaded account export for its uploader; InvalidRequest if it is not one."""
        self._refuse_shared("on your own machine: ctxr import FILE")
        if self._ongoing.is_running:
            raise InvalidRequest("A sync is still running.", "Import the file when it has ended.")
        with ExitStack() as stack:
            short = PurePath(name).name[-60:] or "export"  # a file's name has at most 255 bytes
            file = Path(stack.enter_context(TemporaryFolder()), short)
            with file.open("wb") as copy:
                copyfileobj(content, copy)
            self._start(exports_in(file, stack), Paths(Path.home(), {}), stack.pop_all(), access)

    def _start(self, readers: Sequence[Source], paths: Paths, files: ExitStack, access: Access | None = None) -> None:
        self._reports, self._error, self._finished_at, self._has_started = {}, None, None, True
        self._ongoing.start(self._sync(readers, paths, files, access))

    def _refuse_shared(self, instead: str) -> None:
        if not self._orchestrator.registry.is_embedded:
            raise InvalidRequest("This registry is shared, so it reads no client histories.", instead)

    async def close(self) -> None:
        await self._ongoing.close()

    async def _sync(self, readers: Sequence[Source], paths: Paths, files: ExitStack, access: Access | None) -> None:
        try:
            for report in await sync(self._orchestrator, readers, paths, self._keep_report, access):
                self._keep_report(report)
        except RegistryError as exc:
            self._error = exc.as_dict()
        except Exception:
            logger.exception("The sync failed")
            self._error = InternalError("The sync failed inside Context Registry.", "See the server's log").as_dict()
        finally:
            self._finished_at = format_time(now())
            files.close()

    def _with_sync_time(self, store: dict[str, Any]) -> dict[str, Any]:
        was_synced = (store["source"], store["path"]) in self._reports
        return {**store, "looked_at": self._finished_at if was_synced else None}

    def _keep_report(self, report: StoreReport, _expected: int = 0) -> None:
        self._reports[report.source, report.path] = report

    def _outcome(self) -> dict[str, Any] | None:
        if not self._has_started:
            return None
        state = "failed" if self._error else "done" if self._finished_at else "running"
        stores = list(self._reports.values())
        return {"state": state, "finished_at": self._finished_at, "error": self._error, "stores": stores}


def _merged(synced: Sequence[dict[str, Any]], found: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return the stores that were read and those found on this machine, by source and path."""
    known = {(store["source"], store["path"]): store for store in synced}
    return [_store(key, known.get(key, {}), is_here=key in found) for key in sorted(known.keys() | set(found))]


def _store(key: tuple[str, str], synced: dict[str, Any], *, is_here: bool) -> dict[str, Any]:
    defaults = {"source": key[0], "path": key[1], "synced_at": None, "only_here": 0, "seen": 0, "parsed": 0}
    skipped = synced.get("skipped", [])
    return {
        **defaults,
        **synced,
        "is_here": is_here,
        "skipped": [one for one in skipped if not is_drift(one["why"])],
        "drift": [one for one in skipped if is_drift(one["why"])],
    }
