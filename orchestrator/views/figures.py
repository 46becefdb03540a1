"""Activity, token usage and recurring errors as figures."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from registry.monitor.activity import messages_by_day, messages_by_project, messages_by_source
from registry.monitor.problems import recurring_problems as recurring_problems
from registry.monitor.token_usage import total, usage_by
from registry.storage.database import ReadTransaction

MOST_ROWS = 20  # of each table of token usage
BUSIEST = 4  # clients and projects of the last week


def activity(tx: ReadTransaction, year: datetime, week: datetime, utc_offset_minutes: int) -> dict[str, Any]:
    """Return message counts by day since `year`, and the busiest clients and projects since `week`."""
    return {
        "days": messages_by_day(tx, year, utc_offset_minutes),
        "sources": messages_by_source(tx, week)[:BUSIEST],
        "projects": messages_by_project(tx, week)[:BUSIEST],
    }


def token_usage(tx: ReadTransaction, start: datetime, utc_offset_minutes: int) -> dict[str, Any]:
    """Return the tokens that models used since `start`: in total, by day, client, project and model."""
    summed = usage_by(tx, start, None, utc_offset_minutes)
    tables = {f"by_{name}": summed[name][:MOST_ROWS] for name in ("source", "project", "model")}
    return {"total": total(summed["source"]), "by_day": sorted(summed["day"], reverse=True), **tables}
