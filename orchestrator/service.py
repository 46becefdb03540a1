"""Running operations: the one way in for every door."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import langsmith

from orchestrator.graph import build_graph
from orchestrator.operations import PATHS, READING, full_name
from orchestrator.recorder import Recorder
from orchestrator.requests import Refusal, Request, parse_request
from orchestrator.state import ExternalAction, GeneralState, Run
from orchestrator.summaries import request_summary, result_summary
from orchestrator.sync.drain import drain
from orchestrator.sync.freshness import Freshness
from registry.domain import DEEPEST, is_too_deep, storable
from registry.errors import InvalidRequest, OperationTimeout, RegistryError, StorageError
from registry.registry import Registry
from registry.settings import Settings
from registry.storage.database import WriteTransaction
from registry.storage.executions import Execution, save_execution
from sources.base import Places
from sources.readers import READERS

if TYPE_CHECKING:
    from orchestrator.semantic.meaning import Meaning

logger = logging.getLogger(__name__)

UNRECORDED = 1000
"""Runs whose record could not be stored are held back, at most so many, until the registry is there again."""
RECORDING_S = 0.5
"""An answer waits no longer for its record."""
SETTLING_S = 2.0
"""The end of a program waits no longer for records."""


class Orchestrator:
    """Runs operations over a registry, each with a time limit and a record."""

    def __init__(
        self,
        registry: Registry,
        *,
        timeout_s: float = 30.0,
        search_budget: int = 0,
        actions: Sequence[ExternalAction] = (),
        meaning: Meaning | None = None,
    ) -> None:
        self.registry = registry
        self._timeout_s = timeout_s
        self._search_budget = search_budget
        self._actions = actions
        self.meaning = meaning
        self._graph = build_graph()
        self._unrecorded: dict[str, Execution] = {}
        self._recording: set[asyncio.Task[None]] = set()
        self.observers: list[Callable[[Execution], None]] = []
        """Told of every run when it has ended, for the counts of this process."""
        self.syncing = asyncio.Lock()
        """Held by whoever syncs: two would do the same work twice."""
        self.before_reading: Callable[[], Awaitable[None]] | None = None
        """What brings the registry up to date before it is asked."""

    async def run(
        self, given: Mapping[str, Any] | Request | Refusal, client: str | None = None, execution_id: str | None = None
    ) -> dict[str, Any]:
        """Run one operation; the shapes in and out are contract 3's. A failure is an answer, never an exception.

        `client`: name and version of the program that asks, for the record. `execution_id`: a new id, given by
        a caller who will look the record up.
        """
        recorder = _recorder_for(given, client)
        recorder.id = execution_id or recorder.id
        try:
            request = _request_of(given)
            recorder.request = request_summary(request)
            result = await self._run(request, recorder)
        except asyncio.CancelledError:
            gone = OperationTimeout("The caller stopped waiting.", "what was begun to be stored may be stored")
            self._record_soon(self._observed(recorder.finished(None, gone.as_dict())))
            raise
        except Exception as exc:
            error = _failure(exc, recorder.id)
            await self._record(self._observed(recorder.finished(None, error.as_dict())))
            return {"success": False, "error": error.as_dict()}
        if self.observers:
            self._observed(recorder.finished(None))
        if self._unrecorded:
            self._record_soon()
        return {"success": True, **result}

    def embedding(self) -> AbstractAsyncContextManager[None]:
        """Meanwhile messages are embedded, where a model is configured: for a process that lives for a while."""
        return self.meaning.embedding() if self.meaning else nullcontext()

    async def settle(self) -> None:
        """Wait for the records on their way; what cannot be stored now is lost with this process."""
        if self._recording:
            await asyncio.wait(self._recording, timeout=SETTLING_S)

    def _observed(self, run: Execution) -> Execution:
        for observe in self.observers:
            observe(run)
        return run

    async def _run(self, request: Request, recorder: Recorder) -> dict[str, Any]:
        run = Run(request, self.registry, recorder, self._search_budget, self._actions, self.meaning)
        state: GeneralState = {
            "operation": request.operation.value,
            "source": request.source,
            "channel": request.channel,
        }
        try:
            # LangSmith, which LangGraph brings along, would send every state to its servers if the host
            # program's environment tells it to.
            with langsmith.tracing_context(enabled=False):
                async with asyncio.timeout(self._timeout_s):
                    if self.before_reading and request.operation in READING:
                        await self.before_reading()
                    ended = await self._graph.ainvoke(state, context=run)
        except TimeoutError as exc:
            raise OperationTimeout(
                f"The operation took longer than {self._timeout_s:g} s.",
                "It may still be completed; asking again is safe. The limit is CTXR_TIMEOUT_S",
            ) from exc
        result: dict[str, Any] = ended["result"]
        if ended["path"][-1] != "cr_write":
            await self._record(recorder.finished(result_summary(result)))
        return result

    async def _record(self, run: Execution) -> None:
        """Store a run's record; where storage is stuck nobody waits long for that."""
        await asyncio.wait([self._record_soon(run)], timeout=RECORDING_S)

    def _record_soon(self, run: Execution | None = None) -> asyncio.Task[None]:
        """Store a run's record, and those held back before."""
        if run:
            self._unrecorded[run.id] = run
            if len(self._unrecorded) > UNRECORDED:
                self._unrecorded.pop(next(iter(self._unrecorded)))
        recording = asyncio.create_task(self._store_records())
        self._recording.add(recording)
        recording.add_done_callback(self._recording.discard)
        return recording

    async def _store_records(self) -> None:
        waiting = list(self._unrecorded.values())

        def work(tx: WriteTransaction) -> None:
            for execution in waiting:
                save_execution(tx, execution)

        try:
            await self.registry.write(work)
        except StorageError as exc:
            logger.error("%d records could not be stored: %s", len(waiting), exc.details)
            return
        for execution in waiting:
            self._unrecorded.pop(execution.id, None)


def _request_of(given: Mapping[str, Any] | Request | Refusal) -> Request:
    if isinstance(given, Refusal):
        raise given.error
    return given if isinstance(given, Request) else parse_request(_followable(given))


def _followable(given: Mapping[str, Any]) -> Any:
    if is_too_deep(given):
        raise InvalidRequest("The request is not valid.", f"allowed: lists and objects nested at most {DEEPEST} deep")
    return storable(given)


def _recorder_for(given: Mapping[str, Any] | Request | Refusal, client: str | None) -> Recorder:
    if isinstance(given, Refusal):
        return Recorder(given.operation.value, given.source, client, None)
    if isinstance(given, Request):
        return Recorder(given.operation.value, given.source, client, given.channel)
    names = ("operation", "source", "channel")
    said = {name: storable(given[name]) for name in names if isinstance(given.get(name), str)}
    operation = full_name(said.get("operation", ""))
    return Recorder(
        operation if operation in PATHS else "unknown",
        said.get("source", "unknown")[:64],
        client,
        said.get("channel"),
    )


def _failure(exc: Exception, execution_id: str) -> RegistryError:
    """Our errors as they are; a bug is logged and tells the caller nothing but where it is recorded."""
    if isinstance(exc, RegistryError):
        return exc
    logger.exception("Execution %s failed", execution_id)
    return StorageError("The operation failed inside Context Registry.", f"recorded as execution {execution_id}")


@asynccontextmanager
async def open_orchestrator(settings: Settings) -> AsyncIterator[Orchestrator]:
    """An orchestrator over the configured registry, closed at the end.

    An embedded registry is this machine's own, so it keeps up with the stores on it. A shared one does not: what
    a person's clients keep comes into it only by `ctxr sync`.
    """
    registry = await asyncio.to_thread(Registry, settings.url)
    meaning = _meaning(settings, registry)
    orchestrator = Orchestrator(
        registry, timeout_s=settings.timeout_s, search_budget=settings.search_budget, meaning=meaning
    )
    freshness = Freshness(orchestrator, settings.home, READERS, Places(Path.home(), os.environ))
    if registry.is_embedded:
        orchestrator.before_reading = freshness.refresh
    try:
        await drain(orchestrator, settings.home)
        yield orchestrator
    finally:
        await freshness.close()
        await orchestrator.settle()
        if meaning:
            await meaning.close()
        await asyncio.to_thread(registry.close)


def _meaning(settings: Settings, registry: Registry) -> Meaning | None:
    if not settings.embed_model:
        return None
    from orchestrator.semantic.meaning import open_meaning  # an HTTP client that only who asked for it needs

    return open_meaning(settings, registry)
