"""Read activity, token usage and recurring errors as figures."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from registry.monitor.activity import (
    largest_channels,
    messages_by_day,
    messages_by_hour,
    messages_by_project,
    messages_by_source,
)
from registry.monitor.problems import recurring_problems
from registry.monitor.token_usage import total, usage_by
from registry.storage.client_stores import conversations_read, list_stores
from registry.storage.conversations.facets import latest_projects
from registry.storage.database import ReadTransaction


def activity(tx: ReadTransaction, year: datetime, week: datetime, utc_offset_minutes: int) -> dict[str, Any]:
    """Return message counts by day since `year`, and the busiest clients and projects since `week`."""
    return {
        "days": messages_by_day(tx, year, utc_offset_minutes),
        "sources": messages_by_source(tx, week)[:6],
        "projects": messages_by_project(tx, week)[:6],
    }


def token_usage(tx: ReadTransaction, start: datetime, utc_offset_minutes: int) -> dict[str, Any]:
    """Return the tokens that models used since `start`: in total, by day, client, project and model."""
    summed = usage_by(tx, start, None, utc_offset_minutes)
    tables = {f"by_{name}": summed[name][:12] for name in ("source", "project", "model")}
    return {"total": total(summed["source"]), "by_day": sorted(summed["day"], reverse=True), **tables}


def insights(tx: ReadTransaction, year: datetime, start: datetime | None, utc_offset_minutes: int) -> dict[str, Any]:
    """Return what was said and what it took: by day of the year, and since `start` by hour, session, problem, token."""
    since = start or datetime(1970, 1, 1, tzinfo=UTC)
    return {
        "days": messages_by_day(tx, year, utc_offset_minutes),
        "hours": messages_by_hour(tx, since, utc_offset_minutes),
        "largest": largest_channels(tx, since, 8),
        "problems": recurring_problems(tx)[:8],
        "usage": token_usage(tx, since, utc_offset_minutes),
    }


MOST_PROJECTS = 20  # the latest ones of a client, for looking into their folders


def stores(
    tx: ReadTransaction, source: str
) -> tuple[list[dict[str, Any]], list[str], dict[tuple[str, str], list[str]]]:
    """Return the stores, the latest projects of a client, and the conversations read from each (source, path)."""
    return list_stores(tx), latest_projects(tx, source, MOST_PROJECTS), conversations_read(tx)
