"""retention: permanently erase the conversations that a policy selects."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import Field

from orchestrator.background import running
from orchestrator.operations.delete import files_of, with_receipt
from orchestrator.requests.shapes import QueryShape, Request
from orchestrator.state import Operation, Run, Steps
from registry.access import Level
from registry.domain import format_time, new_id, now
from registry.errors import ErrorCode, NotFound, RegistryError, StorageError
from registry.settings import RetentionPolicy
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.records.executions import MAX_PAUSE, latest_trusted_time
from registry.storage.safety.forgetting import BY_POLICY, Affected, Receipt, forget, wipe
from registry.storage.safety.quiet_channels import find_quiet, lock_quiet

if TYPE_CHECKING:
    from orchestrator.service import Orchestrator

logger = logging.getLogger(__name__)

BATCH_SIZE = 50  # conversations in one transaction, so that other writers are not blocked
COUNTED = ("channels", "messages", "vectors", "executions", "results", "cases", "views", "texts")


class RetentionQuery(QueryShape, RetentionPolicy):
    """A policy to test or apply."""

    dry_run: bool = Field(False, description="only say what would be forgotten")


class RetentionRequest(Request):
    operation = "retention"
    takes_long = True
    query: RetentionQuery

    @property
    def is_permanent(self) -> bool:
        return True

    def summary(self) -> dict[str, Any]:
        return {"by": str(self.query), "dry_run": self.query.dry_run}


def find_expired(tx: ReadTransaction, _run: Run, request: RetentionRequest) -> dict[int, int]:
    if not (found := find_quiet(tx, request.query)):
        raise NotFound("Nothing to forget.", f"No conversation is {request.query}")
    return found


async def apply_policy(run: Run, request: RetentionRequest, data: dict[int, int]) -> dict[str, Any]:
    """Erase the conversations in batches; if a batch fails, its conversations are erased one by one."""
    receipt = "" if request.query.dry_run else new_id(BY_POLICY)
    figures = asdict(Receipt(receipt, format_time(now()), len(data), sum(data.values()), is_dry_run=True))
    if request.query.dry_run:
        return with_receipt(run, {**figures, "files": 0, "failed": 0})
    counts, refusals = Counter[str](), list[Exception]()
    forget_batch = partial(_forget, run=run, policy=request.query, receipt=receipt)
    waiting = [list(data)[at : at + BATCH_SIZE] for at in range(0, len(data), BATCH_SIZE)]
    while waiting:
        batch = waiting.pop(0)
        try:
            counts += await run.registry.write(partial(forget_batch, numbers=batch))
        except Exception as exc:
            if len(batch) == 1:
                logger.error("A conversation could not be forgotten by a policy: %s", exc)
                refusals.append(exc)
            else:
                waiting = [[one] for one in batch] + waiting
        await asyncio.sleep(0.01)
    if refusals and not counts["channels"]:
        raise StorageError("The conversations could not be forgotten.", str(refusals[0]))
    if counts["channels"]:
        await wipe(run.registry)
    done = {name: counts[name] for name in (*COUNTED, "files")}
    return with_receipt(run, {**figures, **done, "failed": len(refusals), "is_dry_run": False})


def _forget(
    tx: WriteTransaction, run: Run, policy: RetentionPolicy, receipt: str, numbers: Sequence[int]
) -> Counter[str]:
    found = Affected(lock_quiet(tx, policy, numbers), [])
    files = files_of(tx, run, found, None)
    done = forget(tx, found, is_exact=True, receipt=receipt)
    for file in files:
        file.unlink(missing_ok=True)
    return Counter({**{name: getattr(done, name) for name in COUNTED}, "files": len(files)})


PAUSE = timedelta(hours=1)


def applying(orchestrator: Orchestrator, policies: Sequence[RetentionPolicy]) -> AbstractAsyncContextManager[None]:
    """Apply the policies every hour while the context is open."""
    return running(_apply_hourly(orchestrator, policies)) if policies else nullcontext()


async def _apply_hourly(orchestrator: Orchestrator, policies: Sequence[RetentionPolicy]) -> None:
    latest = await _read_latest(orchestrator)
    while now() - latest <= MAX_PAUSE:
        latest = now()
        for policy in policies:
            answer = await _run_policy(orchestrator, policy, dry_run=True, is_recorded=False)  # a check is not recorded
            if answer["success"]:
                answer = await _run_policy(orchestrator, policy)
            if not answer["success"] and answer["error"]["code"] != ErrorCode.NOT_FOUND:
                logger.error("A retention policy was not applied (%s): %s", policy, answer["error"]["message"])
        await asyncio.sleep(PAUSE.total_seconds())
    logger.error(
        "Retention policies are suspended: by this clock nothing happened for %s days after %s. If the clock is right,"
        " run `ctxr forget --by-policy` and restart the server.",
        MAX_PAUSE.days,
        format_time(latest),
    )


async def _read_latest(orchestrator: Orchestrator) -> datetime:
    while True:
        try:
            return await orchestrator.registry.read(latest_trusted_time)
        except RegistryError as exc:
            logger.error("The retention policies are tried again in a minute: %s", exc)
            await asyncio.sleep(60)


async def _run_policy(
    orchestrator: Orchestrator, policy: RetentionPolicy, *, is_recorded: bool = True, **more: bool
) -> Mapping[str, Any]:
    query = {**policy.model_dump(exclude_none=True), **more}
    given = {"operation": "retention", "query": query, "source": "ctxr"}
    return await orchestrator.run(given, is_recorded=is_recorded)


OPERATION = Operation(
    request=RetentionRequest,
    level=Level.ADMIN,
    steps=Steps[RetentionRequest, dict[int, int]](query=find_expired, answer=apply_policy),
    labels={"days": ("days without a message", "대화가 없던 일수")},
)
