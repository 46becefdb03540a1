"""Running operations: the one way in for every door."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import langsmith

from orchestrator.graph import build_graph
from orchestrator.nodes import WRITE
from orchestrator.recorder import Recorder, request_summary, result_summary
from orchestrator.requests import Operation, Refusal, Request, full_name, parse_request
from orchestrator.state import ExternalAction, Run, Shelf, State
from orchestrator.writing import Writer
from registry.domain import DEEPEST, is_too_deep, storable
from registry.errors import InternalError, InvalidRequest, OperationTimeout, RegistryError, StorageError
from registry.registry import Registry
from registry.storage.channels import MadeSummary, keep_summaries
from registry.storage.database import WriteTransaction
from registry.storage.executions import Execution, save_execution

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
        answer_characters: int = 0,
        actions: Sequence[ExternalAction] = (),
        meaning: Meaning | None = None,
        writer: Writer | None = None,
        shelf: Shelf | None = None,
    ) -> None:
        self.registry = registry
        self._timeout_s = timeout_s
        self._search_budget, self._answer_characters = search_budget, answer_characters
        self._actions = actions
        self.meaning = meaning
        self._writer, self._shelf = writer, shelf
        self._graph = build_graph()
        self._unrecorded: dict[str, Execution] = {}
        self._unkept: list[MadeSummary] = []
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
        """Run `{operation, channel, messages|query, source, metadata}`. A failure is an answer, never an exception.

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
        run = Run(
            self.registry,
            recorder,
            search_budget=self._search_budget,
            answer_characters=self._answer_characters,
            actions=self._actions,
            before_reading=self.before_reading,
            meaning=self.meaning,
            writer=self._writer,
            shelf=self._shelf,
        )
        asked: State = {"operation": request.operation, "query": request}
        try:
            # LangSmith, which LangGraph brings along, would send every state to its servers if the host
            # program's environment tells it to.
            with langsmith.tracing_context(enabled=False):
                async with asyncio.timeout(None if request.takes_long else self._timeout_s):
                    ended = await self._graph.ainvoke(asked, context=run)
        except TimeoutError as exc:
            raise OperationTimeout(
                f"The operation took longer than {self._timeout_s:g} s.",
                "It may still be completed; asking again is safe. The limit is CTXR_TIMEOUT_S",
            ) from exc
        if "error" in ended:
            raise ended["error"]
        result: dict[str, Any] = ended["result"]
        self._unkept += recorder.summaries
        if request.operation not in WRITE:
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
        made, self._unkept = self._unkept, []

        def work(tx: WriteTransaction) -> None:
            for execution in waiting:
                save_execution(tx, execution)
            keep_summaries(tx, made)

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
        return Recorder(given.operation.value, storable(given.source)[:64], client, storable(given.channel))
    if isinstance(given, Request):
        return Recorder(given.operation.value, given.source, client, given.channel)
    names = ("operation", "source", "channel")
    said = {name: storable(given[name]) for name in names if isinstance(given.get(name), str)}
    operation = full_name(said.get("operation", ""))
    return Recorder(
        operation if operation in set(Operation) else "unknown",
        said.get("source", "unknown")[:64],
        client,
        said.get("channel"),
    )


def _failure(exc: Exception, execution_id: str) -> RegistryError:
    """Our errors as they are; a bug is logged and tells the caller nothing but where it is recorded."""
    if isinstance(exc, RegistryError):
        return exc
    logger.exception("Execution %s failed", execution_id)
    return InternalError("The operation failed inside Context Registry.", f"recorded as execution {execution_id}")
