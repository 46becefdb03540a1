"""Read activity, token usage and recurring errors as figures."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from registry.monitor.activity import messages_by_day, messages_by_hour, messages_by_project, messages_by_source
from registry.monitor.problems import recurring_problems
from registry.monitor.recalls import top_sessions
from registry.monitor.token_usage import total, usage_by
from registry.storage.client_stores import conversations_read, list_stores
from registry.storage.conversations.facets import projects_by_activity
from registry.storage.database import ReadTransaction
from registry.storage.tables import channel


def activity(tx: ReadTransaction, year: datetime, week: datetime, utc_offset_minutes: int) -> dict[str, Any]:
    """Return message counts by day since `year`, and the busiest clients and projects since `week`."""
    return {
        "days": messages_by_day(tx, year, utc_offset_minutes),
        "sources": messages_by_source(tx, week)[:6],
        "projects": messages_by_project(tx, week)[:6],
    }


def token_usage(tx: ReadTransaction, start: datetime | None, utc_offset_minutes: int) -> dict[str, Any]:
    """Return the tokens that models used since `start`: in total, by day, client, project and model."""
    summed = usage_by(tx, start, utc_offset_minutes)
    tables = {f"by_{name}": summed[name][:12] for name in ("source", "project", "model")}
    return {"total": total(summed["source"]), "by_day": sorted(summed["day"], reverse=True), **tables}


def insights(tx: ReadTransaction, year: datetime, start: datetime | None, utc_offset_minutes: int) -> dict[str, Any]:
    """Return what was said and what it took: by day of the year, and since `start` by hour, session, problem, token."""
    return {
        "days": messages_by_day(tx, year, utc_offset_minutes),
        "hours": messages_by_hour(tx, start, utc_offset_minutes),
        "largest": top_sessions(tx, channel.c.message_count, start, 8),
        "problems": recurring_problems(tx)[:8],
        "usage": token_usage(tx, start, utc_offset_minutes),
    }


MOST_PROJECTS = 20  # the latest ones of a client, for looking into their folders


def stores(
    tx: ReadTransaction, source: str
) -> tuple[list[dict[str, Any]], list[str], dict[tuple[str, str], list[str]]]:
    """Return the stores, the latest projects of a client, and the conversations read from each (source, path)."""
    folders = [path for _, path, _ in projects_by_activity(tx, MOST_PROJECTS, source)]
    return list_stores(tx), folders, conversations_read(tx)
