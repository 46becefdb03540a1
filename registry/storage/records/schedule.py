"""Claim scheduled jobs, so that of several processes one does the work."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select, update

from registry.storage.database import ReadTransaction, WriteTransaction, insert_into
from registry.storage.tables import schedule


def last_claimed(tx: ReadTransaction, job: str) -> datetime | None:
    """Return the latest time of a job that was claimed."""
    due: datetime | None = tx.execute(select(schedule.c.due).where(schedule.c.job == job)).scalar()
    return due


def claim(tx: WriteTransaction, job: str, due: datetime) -> bool:
    """Claim a job's run at that time; False if another process has it."""
    taking = insert_into(tx.dialect.name, schedule).values(job=job, due=due)
    later = schedule.c.due < taking.excluded.due
    taken = taking.on_conflict_do_update(index_elements=["job"], set_={"due": due}, where=later)
    return bool(tx.execute(taken.returning(schedule.c.job)).first())


def put_back(tx: WriteTransaction, job: str, due: datetime) -> None:
    """Set a job's claimed time back, after a clock that was ahead has been corrected."""
    tx.execute(update(schedule).where(schedule.c.job == job).values(due=due))
