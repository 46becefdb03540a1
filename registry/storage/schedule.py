"""When each scheduled job was last begun: what several programs agree by on who does it."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select

from registry.storage.database import ReadTransaction, WriteTransaction, insert_into
from registry.storage.tables import schedule


def last_claimed(tx: ReadTransaction, job: str) -> datetime | None:
    """The last time that was taken."""
    due: datetime | None = tx.execute(select(schedule.c.due).where(schedule.c.job == job)).scalar()
    return due


def claim(tx: WriteTransaction, job: str, due: datetime) -> bool:
    """Take the job of that time; False where somebody has it already."""
    taking = insert_into(tx.dialect.name, schedule).values(job=job, due=due)
    later = schedule.c.due < taking.excluded.due
    taken = taking.on_conflict_do_update(index_elements=["job"], set_={"due": due}, where=later)
    return bool(tx.execute(taken.returning(schedule.c.job)).first())
