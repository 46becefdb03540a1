"""Record runs as executions with their steps.

Records are stored in batches after the answers. If the registry cannot store them, they are queued and retried.
Reading the conversations of other people is recorded, too. Old executions are deleted.
"""

import asyncio
import logging
import time
from asyncio import CancelledError
from collections import deque
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import timedelta
from itertools import islice
from typing import Any

from orchestrator.background import running
from registry.access import Access, Level
from registry.domain import format_time, new_id, now, preview_of
from registry.errors import ErrorCode, RegistryError
from registry.registry import Registry
from registry.storage.conversations.belonging import owned_by_others
from registry.storage.conversations.channels import MadeSummary, keep_summaries
from registry.storage.database import Database, WriteTransaction
from registry.storage.records.executions import (
    GUESSED,
    Door,
    Execution,
    delete_executions,
    execution_item,
    latest_trusted_time,
    save_execution,
)
from registry.storage.records.extract_results import save_result
from registry.text.privacy.masking import contains_secret

logger = logging.getLogger(__name__)

MAX_ITEMS = 30  # items recorded of a long list (candidates, ids)


@dataclass(slots=True)
class RecordedStep:
    """The record of one node; times in milliseconds."""

    node: str
    started_at: str
    started: float
    duration_ms: float = 0.0
    status: str = "running"
    error: dict[str, str] | None = None
    detail: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        is_open = self.status == "running"
        return {
            "node": self.node,
            "started_at": self.started_at,
            "duration_ms": _ms_since(self.started) if is_open else self.duration_ms,
            "status": "succeeded" if is_open else self.status,
            "error": self.error,
            "detail": self.detail,
        }


class Recorder:
    """The record of one run while it runs."""

    def __init__(self, operation: str, source: str, client: str | None, channel: str | None) -> None:
        self.id = new_id("exec")
        self.operation, self.source, self.client, self.channel = operation, source, client, channel
        self.token: str | None = None
        self.door: Door = "inside"
        self.request: dict[str, Any] = {}
        self.steps: list[RecordedStep] = []
        self.summaries: list[MadeSummary] = []  # summaries written during the run, stored with its record
        self.is_stored = False  # the operation's own transaction has stored the record
        self.started_at = now()
        self._started = time.perf_counter()

    @contextmanager
    def step(self, node: str) -> Iterator[RecordedStep]:
        """Time one node, and note its outcome."""
        step = RecordedStep(node, format_time(now()), time.perf_counter())
        self.steps.append(step)
        try:
            yield step
        except BaseException as exc:
            error = describe(exc)
            step.status, step.error = _outcome(error), error
            raise
        else:
            step.status = "failed" if step.error else "succeeded"
        finally:
            step.duration_ms = _ms_since(step.started)

    def note_change(self, change: Mapping[str, Any]) -> None:
        """Note the sizes of the state fields that the running node changed, never their texts."""
        if change:
            answer = change.get("result", {})
            noted = {name: _sizes(value) for name, value in change.items() if name != "result"}
            self.steps[-1].detail["state"] = noted | {"result": {name: _size(part) for name, part in answer.items()}}

    def set_channel(self, name: str) -> None:
        self.channel = name
        self.explain(channel=name)

    def explain(self, **detail: Any) -> None:
        """Note details of the running node; long lists are truncated."""
        self.steps[-1].detail |= {name: _truncated(value) for name, value in detail.items()}

    def record_delivery(
        self, tx: WriteTransaction, result_id: str, kind: str, about: Mapping[str, Any], **fields: Any
    ) -> dict[str, Any]:
        """Store the run's delivery by `save_result`, and return its metadata."""
        metadata = {"execution_id": self.id, **about}
        save_result(tx, result_id, record_type=kind, metadata=metadata, token=self.token, **fields)
        return metadata

    def finished(self, result: dict[str, Any] | None, error: dict[str, str] | None = None) -> Execution:
        return Execution(
            id=self.id,
            operation=self.operation,
            source=self.source,
            client=self.client,
            channel=self.channel,
            status=_outcome(error, result),
            error=error,
            started_at=self.started_at,
            finished_at=now(),
            duration_ms=_ms_since(self._started),
            request=self.request,
            result=result,
            steps=[step.as_dict() for step in self.steps],
            token=self.token,
            door=self.door,
        )

    def as_item(self) -> dict[str, Any]:
        """Return the unfinished run as an item of a list; `steps`: the nodes so far."""
        item = execution_item(self.finished(None))
        text = None if contains_secret(item["asked"]) else item["asked"]
        unfinished = {"status": "running", "finished_at": None, "asked": text}
        return {**item, **unfinished, "steps": [step.node for step in self.steps]}


def _outcome(error: Mapping[str, str] | None, result: Mapping[str, Any] | None = None) -> str:
    if error is None:
        return GUESSED if (result or {}).get("confidence") == "low" else "succeeded"
    return "not_found" if error["code"] == ErrorCode.NOT_FOUND else "failed"


def _sizes(value: Any) -> Any:
    """Return the size of a state field; of a dataclass, the size of each of its fields."""
    if is_dataclass(value):
        return {part.name: _size(getattr(value, part.name)) for part in fields(value)}
    return _size(value)


def _size(value: Any) -> Any:
    """Return the length of a collection or text, a number itself, else None."""
    if isinstance(value, RegistryError):
        return value.code
    if isinstance(value, str | list | Mapping | Set) or type(value) is tuple:
        return len(value)
    return value if isinstance(value, bool | int | float) else None


def _truncated(value: Any) -> Any:
    """Truncate a long list, and append the number of omitted items."""
    if isinstance(value, list) and len(value) > MAX_ITEMS:
        return [*value[:MAX_ITEMS], f"… and {len(value) - MAX_ITEMS} more"]
    return value


def describe(exc: BaseException) -> dict[str, str]:
    """Return an exception for a step: a RegistryError in full, any other by its type and message."""
    if isinstance(exc, RegistryError):
        return exc.as_dict()
    if isinstance(exc, CancelledError):
        return {
            "code": "TIMEOUT",
            "message": "Cut off by the time limit, or by a caller who stopped waiting",
            "details": "",
        }
    return {"code": type(exc).__name__, "message": preview_of(str(exc)), "details": ""}


def _ms_since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)


def result_summary(result: Mapping[str, Any]) -> dict[str, Any]:
    """Summarise an answer for its record: counts and ids, never texts of messages; of forgetting only the receipt."""
    if "receipt" in result:
        result = {"receipt": result["receipt"]}
    return {
        key: [message["id"] for message in value[:MAX_ITEMS]] if key == "messages" else _summary(value)
        for key, value in result.items()
        if value and key not in _TEXT_KEYS
    }


_TEXT_KEYS = ("newer", "stands_at", "title", "text", "summary", "first_message_preview", "note", "hint")
"""Fields of an answer that may quote messages; not recorded, so that no record quotes a deleted message."""


def _summary(value: Any) -> Any:
    match value:
        case list():
            return len(value) if value and not isinstance(value[0], str) else value[:MAX_ITEMS]
        case dict():
            return {key: item for key, item in value.items() if key not in _TEXT_KEYS and not isinstance(item, dict)}
    return value


MAX_WAIT_S = 0.5  # seconds that an answer waits for its record; at exit the program waits four times as long


class Records:
    """Queue of records to store, in batches. A failed batch is retried with the next record."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._pending: deque[tuple[Execution, Sequence[MadeSummary]]] = deque(maxlen=1000)
        self._writing: asyncio.Task[None] | None = None
        self._is_blocked = False

    def add(self, run: Execution, summaries: Sequence[MadeSummary] = ()) -> None:
        if not self._registry.is_read_only:
            self._pending.append((run, summaries))
            self.retry()

    async def store(self, run: Execution, summaries: Sequence[MadeSummary] = ()) -> None:
        """Store a record and wait for it, unless the run failed and the registry cannot store records."""
        self.add(run, summaries)
        if self._writing and not (self._is_blocked and run.error):
            await asyncio.wait([self._writing], timeout=MAX_WAIT_S)

    def retry(self) -> None:
        if self._pending and (self._writing is None or self._writing.done()):
            self._writing = asyncio.create_task(self._write())

    async def settle(self) -> None:
        """Wait until the queue is stored; records that are not stored in time are lost."""
        self.retry()
        if self._writing:
            await asyncio.wait([self._writing], timeout=4 * MAX_WAIT_S)
            self._writing.cancel()

    async def _write(self) -> None:
        while self._pending:
            batch = list(islice(self._pending, 100))

            def work(tx: WriteTransaction, batch: Sequence[tuple[Execution, Sequence[MadeSummary]]] = batch) -> None:
                for run, summaries in batch:
                    save_execution(tx, run)
                    keep_summaries(tx, summaries)

            try:
                await self._registry.write(work, is_awaited=False)
            except RegistryError as exc:
                if not self._is_blocked:
                    logger.error("Records of runs cannot be stored yet: %s", exc.details)
                self._is_blocked = True
                return
            self._is_blocked = False
            for stored in batch:
                with suppress(ValueError):  # dropped from the full queue meanwhile
                    self._pending.remove(stored)


_QUOTE_KEYS = frozenset({"text", "messages", "matches", "line"})
"""Keys of quoted messages. Listing titles does not count as reading."""


async def record_readings(
    records: Records, registry: Registry, answer: Any, access: Access | None, run: Recorder, door: Door
) -> None:
    """Record a `fetch` for each channel of another person that an admin's answer quotes, except the run's own."""
    if access is None or access.owner is None or access.level is not Level.ADMIN:
        return
    owner, names = access.owner, set(_quoted_channels(answer)) - {run.channel}
    readings = []
    for name in await registry.read(lambda tx: owned_by_others(tx, names, owner)) if names else ():
        reading = Recorder("fetch", run.source, run.client, name)
        reading.token, reading.door, reading.request = access.name, door, {"by": run.operation}
        readings.append(reading.finished({}))
    for at in range(0, len(readings), 500):  # the queue holds 1000
        await asyncio.gather(*map(records.store, readings[at : at + 500]))


def _quoted_channels(value: Any) -> Iterator[str]:
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        if isinstance(value.get("channel"), str) and not _QUOTE_KEYS.isdisjoint(value):
            yield value["channel"]
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from _quoted_channels(part)


async def delete_old_runs(registry: Database, days: int) -> int:
    """Delete all runs older than `days`, and return their number."""
    at = await registry.read(latest_trusted_time)
    deleted = 0
    # 500 take about 20 ms, during which SQLite accepts no other writes
    while batch := await registry.write(lambda tx: delete_executions(tx, at - timedelta(days=days), 500)):
        deleted += batch
        await asyncio.sleep(0.1)  # let other writers in
    return deleted


def deleting_old_runs(registry: Database, days: int) -> AbstractAsyncContextManager[None]:
    """Delete older executions every hour while the context is open; 0 days: never."""
    return running(_delete_hourly(registry, days)) if days else nullcontext()


async def _delete_hourly(registry: Database, days: int) -> None:
    while True:
        try:
            await delete_old_runs(registry, days)
        except Exception:  # the rest is deleted next time
            logger.exception("Old executions could not be deleted")
        await asyncio.sleep(3600)
