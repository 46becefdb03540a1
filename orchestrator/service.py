"""Run operations: the one way in for every door."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import langsmith

from orchestrator.graph import build_graph, run_graph
from orchestrator.operations import aliases, operations, parse_request
from orchestrator.recording.recorder import Recorder, Records, record_readings, result_summary
from orchestrator.requests.refusals import Refusal, refuse_too_many, summary_of_refused
from orchestrator.requests.shapes import Request
from orchestrator.state import ExternalAction, LocalCopy, LocalFiles, Operation, Run, Syncing
from registry.access import Access, Level, restrict_to_owner
from registry.domain import MAX_DEPTH, is_too_deep, storable
from registry.errors import InternalError, InvalidRequest, NotFound, OperationTimeout, RegistryError
from registry.log import EXECUTION, RUNS
from registry.registry import Registry
from registry.storage.records.executions import Door as Door
from registry.storage.records.executions import Execution as Execution
from registry.text.privacy.masking import contains_secret
from sources.client import SizeLimit

if TYPE_CHECKING:
    from orchestrator.outside.language_model import LanguageModel
    from orchestrator.semantic.meaning import Meaning

logger = logging.getLogger(__name__)
runs = logging.getLogger(RUNS)

T = TypeVar("T")


class Orchestrator:
    """Runs operations over a registry, each with a time limit and a record."""

    def __init__(
        self,
        registry: Registry,
        *,
        timeout_s: float = 30.0,
        actions: Sequence[ExternalAction] = (),
        meaning: Meaning | None = None,
        writer: LanguageModel | None = None,
        local_files: LocalFiles | None = None,
    ) -> None:
        self.registry = registry
        self._timeout_s = timeout_s
        self._actions = actions
        self.meaning = meaning
        self._writer, self._local_files = writer, local_files
        self._graph = build_graph()
        self._records = Records(registry)
        self._question_slots = asyncio.Semaphore(8)  # concurrent questions; writes do not wait for them
        self._last_request_at = float("-inf")
        self._waiting_callers = 0
        self._running: dict[str, Recorder] = {}
        self.observers: list[Callable[[Execution], None]] = [meaning.observe] if meaning else []
        """Called with every finished run of this process."""
        self.syncing = asyncio.Lock()  # held during a sync, so that only one runs
        self.before_reading: Callable[[bool], Awaitable[Syncing | None]] | None = None
        """Syncs before the registry is read; with True, waits for what was written just now."""
        self.local_copy: Callable[[], Awaitable[LocalCopy | None]] | None = None
        """Returns a note for answers while the remote registry does not answer; else None."""
        self.remote_url = ""  # the address of the remote registry
        self.background: list[Callable[[], AbstractAsyncContextManager[None]]] = []
        """Context managers that run in the background of a server process."""

    async def run(
        self,
        given: Mapping[str, Any] | Request | Refusal,
        client: str | None = None,
        execution_id: str | None = None,
        access: Access | None = None,
        door: Door = "inside",
        limit: SizeLimit | None = None,
        *,
        is_recorded: bool = True,
    ) -> dict[str, Any]:
        """Run `{operation, channel, messages|query, source, metadata}`. A failure is an answer, never an exception.

        `client`: name and version of the calling program, for the record. `execution_id`: a new id, for a caller that
        reads the record later. `access`: the permissions of the caller's token; None if no token is needed.
        `door`: the door of the call. `limit`: the client's; None: no limit.
        `is_recorded`: False for searches while the user is typing.
        """
        is_awaited = not isinstance(given, Request) or given.is_awaited
        if is_awaited:
            self._last_request_at = time.monotonic()
        recorder = _recorder_for(given, client)
        recorder.id = execution_id or recorder.id
        recorder.token, recorder.door = access.name if access else None, door
        if is_recorded:
            self._running[recorder.id] = recorder
        current = EXECUTION.set(recorder.id)
        try:
            with self._count_waiting(int(is_awaited)):
                return await self._run_recorded(given, recorder, access, limit, is_recorded=is_recorded)
        finally:
            EXECUTION.reset(current)
            self._running.pop(recorder.id, None)

    async def _run_recorded(
        self,
        given: Mapping[str, Any] | Request | Refusal,
        recorder: Recorder,
        access: Access | None,
        limit: SizeLimit | None,
        *,
        is_recorded: bool,
    ) -> dict[str, Any]:
        request: Request | None = None
        try:
            request = _request_of(given)
            recorder.request = request.summary()
            request = await self._without_secrets(request)
            result = await self._run(request, recorder, access, limit, is_recorded=is_recorded)
            await record_readings(self._records, self.registry, result, access, recorder, recorder.door)
        except asyncio.CancelledError:
            cancelled = OperationTimeout("The caller stopped waiting.", "a write that had begun may be stored")
            is_failure = request is None or not request.is_optional
            if recorder.steps and not is_failure:
                recorder.explain(note="too late: the client had stopped waiting")
            run = recorder.finished(None, cancelled.as_dict() if is_failure else None)
            self._records.add(self._notify_observers(run))
            raise
        except Exception as exc:
            error = _error_of(exc, recorder.id).as_dict()
            if not recorder.request and isinstance(given, Mapping | Refusal):
                recorder.request = storable(summary_of_refused(given))
            if is_recorded:
                await self._records.store(self._notify_observers(recorder.finished(None, error)))
            return {"success": False, "error": error}
        if is_recorded and (self.observers or runs.isEnabledFor(logging.INFO)):
            self._notify_observers(recorder.finished(result))
        self._records.retry()
        return {"success": True, **result}

    async def view(
        self,
        read: Callable[..., T],
        *arguments: Any,
        access: Access | None = None,
        client: str | None = None,
        **named: Any,
    ) -> T:
        found = await self.registry.seen_by(access).read(lambda tx: read(tx, *arguments, **named))
        recorder = Recorder("view", "backoffice", client, None)
        await record_readings(self._records, self.registry, found, access, recorder, "http")
        return found

    async def change(self, write: Callable[..., T], *arguments: Any, access: Access | None = None, **named: Any) -> T:
        """Store an operator's change; it is not recorded as an execution."""
        if access:
            access.require(Level.WRITE)
        return await self.registry.seen_by(access).write(lambda tx: write(tx, *arguments, **named))

    def running(self) -> list[dict[str, Any]]:
        """Return the unfinished runs of this process, latest first, as lists show runs (docs/interface.md)."""
        return [recorder.as_item() for recorder in reversed(self._running.values())]

    async def _sync_before_reading(self, access: Access | None, is_about_now: bool) -> Syncing | None:
        """Sync. A restricted token gets no progress: the counts include conversations of others."""
        with self._count_waiting(-1):
            syncing = await self.before_reading(is_about_now) if self.before_reading else None
        return None if access and access.is_restricted else syncing

    @contextmanager
    def _count_waiting(self, by: int) -> Iterator[None]:
        """Add `by` to the number of waiting callers while the context is open."""
        self._waiting_callers += by
        try:
            yield
        finally:
            self._waiting_callers -= by

    async def yield_to_callers(self) -> None:
        """Wait until no caller waits for an answer, at most 0.5 s. Called by background work."""
        for _ in range(50):
            if not self._waiting_callers:
                return
            await asyncio.sleep(0.01)

    @property
    def seconds_since_request(self) -> float:
        return time.monotonic() - self._last_request_at

    async def _without_secrets(self, request: Request) -> Request:
        """Mask secrets in the texts of a request, so that no record contains them."""
        query = getattr(request, "query", None)
        texts = {name: getattr(query, name, None) for name in ("text", "also")}
        if query is None or not any(map(contains_secret, texts.values())):
            return request
        masked = await self.registry.masked(texts)
        query_without_secrets = query.model_copy(update={name: value for name, value in masked.items() if value})
        return request.model_copy(update={"query": query_without_secrets})

    @asynccontextmanager
    async def run_background_work(self) -> AsyncIterator[None]:
        """Run the background work while the context is open."""
        await asyncio.to_thread(operations)  # imported ahead of the first request
        async with AsyncExitStack() as stack:
            for work in self.background:
                await stack.enter_async_context(work())
            yield

    async def settle(self) -> None:
        await self._records.settle()

    def _notify_observers(self, run: Execution) -> Execution:
        for observe in self.observers:
            observe(run)
        outcome = {"operation": run.operation, "outcome": run.outcome, "door": run.door, "client": run.client}
        steps = {step["node"]: step["duration_ms"] for step in run.steps}
        figures = {**outcome, "duration_ms": run.duration_ms, "steps_ms": steps}
        runs.info("%s: %s", run.operation, run.outcome, extra={"run": figures})
        return run

    async def _run(
        self, request: Request, recorder: Recorder, access: Access | None, limit: SizeLimit | None, *, is_recorded: bool
    ) -> dict[str, Any]:
        operation = operations()[request.operation]
        if access:
            operation.check(request, access)
        registry = self.registry.seen_by(_access_for(request, operation, access))
        run = Run(
            registry.for_reading() if operation.level is Level.READ else registry,
            recorder,
            limit=limit,
            actions=self._actions,
            before_reading=partial(self._sync_before_reading, access) if self.before_reading else None,
            meaning=self.meaning,
            writer=self._writer,
            local_files=self._local_files,
            is_recorded=is_recorded,
        )
        try:
            # LangSmith, a dependency of LangGraph, would send every state to its servers if the host program's
            # environment enables it.
            with langsmith.tracing_context(enabled=False):
                timeout_s = None if request.takes_long else self._timeout_s
                slot = self._question_slots if operation.syncs_first else nullcontext()
                async with asyncio.timeout(timeout_s), slot:
                    output = await run_graph(self._graph, request, run)
        except TimeoutError as exc:
            effect = "be completed; asking" if operation.syncs_first else "be stored; sending it"
            raise OperationTimeout(
                f"The operation took longer than {self._timeout_s:g} s.",
                f"It may still {effect} again is safe. The limit is CTXR_TIMEOUT_S",
            ) from exc
        syncing: Syncing | None = output.get("syncing")
        copy = await self.local_copy() if self.local_copy and operation.syncs_first else None
        if missing := output.get("error"):
            if access and request.channel is not None and not access.may_name(request.channel):
                raise access.channel_refusal()
            raise NotFound(missing.message, "; ".join(filter(None, [missing.details, _missing_reason(syncing, copy)])))
        result = output["result"]
        if syncing:
            result.get("metadata", result)["syncing"] = syncing
        if copy:
            result.get("metadata", result)["local_copy"] = copy
        if is_recorded and not recorder.is_stored:
            await self._records.store(recorder.finished(result_summary(result)), recorder.summaries)
        return result


def _missing_reason(syncing: Syncing | None, copy: LocalCopy | None) -> str:
    """Return why an existing message may not be found yet; "" if the registry is up to date."""
    if syncing:
        unread = f"{syncing['left']} of {syncing['left'] + syncing['done']} histories on this machine"
        return f"{unread} are still being read for the first time: ask again"
    if copy:
        copied = (
            f", the local copy has its messages until {copy['as_of']}"
            if copy["as_of"]
            else ", and there is no local copy yet"
        )
        return f"{copy['of']} does not answer now{copied}"
    return ""


def _request_of(given: Mapping[str, Any] | Request | Refusal) -> Request:
    """Return the request as it is stored. Raises InvalidRequest."""
    if isinstance(given, Refusal):
        raise given.error
    if isinstance(given, Request):
        return given
    refuse_too_many(given.get("messages"))
    if is_too_deep(given):
        raise InvalidRequest("The request is not valid.", f"allowed: lists and objects nested at most {MAX_DEPTH} deep")
    return parse_request(storable(dict(given)))


def _access_for(request: Request, operation: Operation, access: Access | None) -> Access | None:
    """Return the access an operation reads with: its token's, further limited to one owner or to logging."""
    if request.limited_to_owner is not None:
        return restrict_to_owner(request.limited_to_owner, access)
    return access.as_person() if access and operation.is_log else access


def _recorder_for(given: Mapping[str, Any] | Request | Refusal, client: str | None) -> Recorder:
    names = ("operation", "source", "channel")
    fields = given if isinstance(given, Mapping) else {name: getattr(given, name) for name in names}
    name, source, channel = (storable(fields[name]) if isinstance(fields.get(name), str) else None for name in names)
    operation = aliases().get(name or "", name or "")
    return Recorder(operation if operation in operations() else "unknown", (source or "unknown")[:64], client, channel)


def _error_of(exc: Exception, execution_id: str) -> RegistryError:
    """Return a RegistryError unchanged; log any other exception, and give the caller only the execution's id."""
    if isinstance(exc, RegistryError):
        return exc
    logger.exception("Execution %s failed", execution_id)
    return InternalError("The operation failed inside Context Registry.", f"recorded as execution {execution_id}")
