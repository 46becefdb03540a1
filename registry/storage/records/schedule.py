"""When each scheduled job was last begun: each is done by one program only."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select, update

from registry.storage.database import ReadTransaction, WriteTransaction, insert_into
from registry.storage.tables import schedule


def last_claimed(tx: ReadTransaction, job: str) -> datetime | None:
    """Return the last time that was taken."""
    due: datetime | None = tx.execute(select(schedule.c.due).where(schedule.c.job == job)).scalar()
    return due


def claim(tx: WriteTransaction, job: str, due: datetime) -> bool:
    """Take the job of that time; False where somebody has it already."""
    taking = insert_into(tx.dialect.name, schedule).values(job=job, due=due)
    later = schedule.c.due < taking.excluded.due
    taken = taking.on_conflict_do_update(index_elements=["job"], set_={"due": due}, where=later)
    return bool(tx.execute(taken.returning(schedule.c.job)).first())


def put_back(tx: WriteTransaction, job: str, due: datetime) -> None:
    """Have a job be taken for that time, and not for a later one: a clock was ahead, and has been put right."""
    tx.execute(update(schedule).where(schedule.c.job == job).values(due=due))
