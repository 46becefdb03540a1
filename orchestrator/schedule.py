"""Run scheduled jobs (briefing, backups) once each, even if several servers run."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from orchestrator.requests.calls import utc_offset_minutes
from orchestrator.service import Orchestrator
from orchestrator.sync.sync import sync
from registry.domain import now
from registry.errors import InvalidRequest
from registry.settings import McpServerSettings, Settings
from registry.storage.records.schedule import claim, last_claimed, put_back
from sources.base import Places

if TYPE_CHECKING:
    from apscheduler.triggers.cron import CronTrigger

logger = logging.getLogger(__name__)

LOOKING_BACK = timedelta(days=32)
"""Jobs that came due before this are skipped."""
AHEAD = timedelta(days=1)
"""A job noted this far in the future was noted by a wrong clock, and its note is put back.

Less may be the difference to another server's clock.
"""
A_MINUTE = timedelta(minutes=1)
"""After a note is put back, only what is due just now is done."""
BY = "schedule"
"""The source of scheduled requests."""


class Job(NamedTuple):
    """A scheduled request and its time: `at` is a time of day, or five cron fields, by this machine's clock.

    `notion`: read its pages first.
    """

    name: str
    at: str
    request: Callable[[datetime], dict[str, Any]]
    notion: McpServerSettings | None = None


def jobs_of(settings: Settings) -> list[Job]:
    """Return the configured jobs."""
    briefing = Job("briefing", settings.briefing_at, _briefing, settings.notion)
    jobs = [briefing, Job("backup", settings.backup_at, _backup)]
    return [job for job in jobs if job.at]


def _briefing(due: datetime) -> dict[str, Any]:
    day = due.date() - timedelta(days=1)
    query = {"date": str(day), "utc_offset_minutes": utc_offset_minutes()}
    return {"operation": "daily_briefing", "query": query, "source": BY}


def _backup(_due: datetime) -> dict[str, Any]:
    return {"operation": "create_backup", "query": {"is_scheduled": True}, "source": BY}


def trigger_of(at: str) -> CronTrigger:
    """Return a job's trigger; InvalidRequest if its time is not valid."""
    from apscheduler.triggers.cron import CronTrigger  # only who has a schedule needs it

    hour, colon, minute = at.partition(":")
    try:
        return CronTrigger.from_crontab(f"{int(minute)} {int(hour)} * * *" if colon else at)
    except ValueError as exc:
        raise InvalidRequest(
            "That is no time for a schedule.",
            f"given {at!r} ({exc}); allowed: 08:00, or five fields as cron has them, such as 0 8 * * mon-fri",
        ) from exc


@asynccontextmanager
async def keeping_schedule(orchestrator: Orchestrator, settings: Settings) -> AsyncIterator[None]:
    """Run due jobs while the context is open; a job missed several times while no server ran is done once."""
    jobs = jobs_of(settings)
    if not jobs:
        yield
        return
    from apscheduler.schedulers.asyncio import AsyncIOScheduler

    scheduler, since = AsyncIOScheduler(), now()
    for job in jobs:
        trigger = trigger_of(job.at)
        options = {"coalesce": True, "misfire_grace_time": None, "max_instances": 1}
        scheduler.add_job(run_due, trigger, [orchestrator, job, since], id=job.name, **options)
        scheduler.add_job(run_due, None, [orchestrator, job, since], id=f"{job.name}, missed", **options)
    scheduler.start()
    try:
        yield
    finally:
        scheduler.shutdown(wait=False)


async def run_due(orchestrator: Orchestrator, job: Job, since: datetime, at: datetime | None = None) -> bool:
    """Run a job if it came due since it was last done; return whether it ran. `at`: the current time, for tests."""
    moment = at or now()
    try:
        before = await orchestrator.registry.read(lambda tx: last_claimed(tx, job.name)) or since
        if before > moment + AHEAD:
            before = moment - A_MINUTE
            await orchestrator.registry.write(lambda tx: put_back(tx, job.name, before))
        due = max(_times(trigger_of(job.at), max(before, moment - LOOKING_BACK), moment), default=None)
        if due is None or not await orchestrator.registry.write(lambda tx: claim(tx, job.name, due)):
            return False
    except Exception:  # the server goes on; it is tried again when it is due next
        logger.exception("The schedule of %s could not be looked at", job.name)
        return False
    if job.notion:
        await _look_at_notion(orchestrator, job.notion)
    answer = await orchestrator.run(job.request(due.astimezone()), BY)
    if not answer["success"] and answer["error"]["code"] != "NOT_FOUND":
        logger.error("The scheduled %s failed: %s", job.name, answer["error"])
    return True


async def _look_at_notion(orchestrator: Orchestrator, server: McpServerSettings) -> None:
    from orchestrator.outside.notion import Notion

    [report] = await sync(orchestrator, [Notion(server)], Places(Path.home(), os.environ))
    if not report.is_complete:
        logger.error("Notion could not be read: %s", "; ".join(one.why for one in report.skipped))


def _times(trigger: CronTrigger, after: datetime, until: datetime) -> Iterator[datetime]:
    due = trigger.get_next_fire_time(after, after + timedelta(microseconds=1))
    while due is not None and due <= until:
        yield due
        due = trigger.get_next_fire_time(due, due + timedelta(microseconds=1))
