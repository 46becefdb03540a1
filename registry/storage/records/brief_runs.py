"""Shorten the records of ordinary executions that are no longer among the newest.

Executions that failed, found nothing, guessed, were slow or were rated keep their details.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select

from registry.domain import format_time
from registry.storage.database import WriteTransaction, update_rows
from registry.storage.tables import execution, rating

NEWEST = 200  # runs that are kept in full
EVERY = 50  # runs between two passes


def shorten_older(tx: WriteTransaction, number: int) -> None:
    """Shorten the ordinary runs that are no longer among the newest; called with each new run's number."""
    if number % EVERY == 0:
        _shorten(tx, number - NEWEST - 2 * EVERY, number - NEWEST)


def shorten_newest(tx: WriteTransaction) -> None:
    """Shorten those that `shorten_older` leaves: of a restored registry, they had been shortened since its backup."""
    newest = tx.execute(select(func.max(execution.c.number))).scalar() or 0
    _shorten(tx, newest - NEWEST - 3 * EVERY, newest)


def _shorten(tx: WriteTransaction, first: int, last: int) -> None:
    columns = execution.c.number, execution.c.steps, execution.c.result, execution.c.started_at
    query = select(*columns).where(
        execution.c.number.between(first, last),
        execution.c.status == "succeeded",
        execution.c.duration_ms < 1000,  # slower ones are looked into
        ~select(rating.c.execution_id).where(rating.c.execution_id == execution.c.id).exists(),
    )
    rows = tx.execute(query.order_by(execution.c.number).with_for_update(skip_locked=True)).all()
    brief = [
        {"number": row.number, "steps": _brief_steps(row.steps, row.started_at), "result": _brief(row.result)}
        for row in rows
        if not _is_brief(row.steps)
    ]
    update_rows(tx, execution, brief)


def _is_brief(steps: Sequence[Any]) -> bool:
    return not steps or isinstance(steps[0], list)


def _brief_steps(steps: Sequence[Mapping[str, Any]], started_at: datetime) -> list[list[Any]]:
    """Return each step as node, milliseconds since the run began, and duration."""
    begun = [datetime.fromisoformat(step["started_at"]) - started_at for step in steps]
    return [
        [step["node"], round(since / timedelta(milliseconds=1)), round(step["duration_ms"], 1)]
        for step, since in zip(steps, begun, strict=True)
    ]


def full_steps(steps: Sequence[Any], started_at: datetime) -> Sequence[Mapping[str, Any]]:
    """Return the steps as they are shown; those kept in brief have no details."""
    if not _is_brief(steps):
        return steps
    return [
        {
            "node": node,
            "started_at": format_time(started_at + timedelta(milliseconds=since)),
            "duration_ms": duration_ms,
            "status": "succeeded",
            "error": None,
            "detail": {},
        }
        for node, since, duration_ms in steps
    ]


def _brief(value: Any) -> Any:
    """Keep figures and short words; of a list its length."""
    match value:
        case {**held}:
            return {name: short for name, part in held.items() if (short := _brief(part)) not in (None, {}, "")}
        case list():
            return len(value)
        case str():
            return value if len(value) <= 12 else None
    return value
