"""Read activity and token usage as figures."""

from datetime import datetime
from typing import Any

from registry.monitor.activity import messages_by_day, messages_by_hour, recall_figures, shares, top_sessions
from registry.monitor.statistics import execution_statistics
from registry.monitor.token_usage import (
    GROUPS,
    Span,
    answers_without_counts,
    grouped,
    over_time,
    read_usage,
    total,
    unpriced,
)
from registry.storage.client_stores import list_stores, stored_keys
from registry.storage.conversations.facets import cache_briefly, projects_by_activity, registry_totals
from registry.storage.database import ReadTransaction
from registry.storage.records.executions import has_execution
from registry.storage.records.extract_results import latest_evaluations
from registry.storage.tables import channel


def registry_figures(tx: ReadTransaction, start: datetime, utc_offset_minutes: int) -> dict[str, Any]:
    """Return totals, messages per day since `start`, and figures of recall."""
    days = messages_by_day(tx, start, utc_offset_minutes).items()
    return {
        **registry_totals(tx),
        "days": [{"date": day, "messages": count} for day, count in days],
        **recall_figures(tx, utc_offset_minutes),
    }


def activity(tx: ReadTransaction, year: datetime, week: datetime, utc_offset_minutes: int) -> dict[str, Any]:
    """Return messages by day since `year`, the busiest clients and projects since `week`, and if anything was asked."""
    sources, projects = shares(tx, week)
    return {
        "days": messages_by_day(tx, year, utc_offset_minutes),
        "sources": sources[:6],
        "projects": projects[:6],
        "has_asked": has_execution(tx, "extract"),
    }


def first_steps(tx: ReadTransaction) -> dict[str, Any]:
    """Return the number of conversations, and whether anything was asked about them yet."""
    return {"conversations": registry_totals(tx)["channels"], "has_asked": has_execution(tx, "extract")}


def token_usage(tx: ReadTransaction, span: Span, utc_offset_minutes: int) -> dict[str, Any]:
    """Return the tokens that models used in a span, and their price: in total, by day, client, project and model."""
    usages = read_usage(tx, span, utc_offset_minutes)
    return {
        "total": total(usages),
        "unpriced": unpriced(usages),
        "missing": answers_without_counts(tx, span),
        **{by: grouped(usages, by) for by in GROUPS if by != "session"},
        "over_time": {by: over_time(usages, by) for by in ("client", "model")},
    }


@cache_briefly
def insights(
    tx: ReadTransaction,
    year: datetime,
    start: datetime | None,
    end: datetime | None,
    bucket_s: int,
    utc_offset_minutes: int,
    without_source: str,
) -> dict[str, Any]:
    """Return message counts by day since `year`; activity, tokens and runs of a period; and evaluations."""
    return {
        "counts": messages_by_day(tx, year, utc_offset_minutes),
        "hours": messages_by_hour(tx, start, utc_offset_minutes),
        "largest": top_sessions(tx, channel.c.message_count, start, 8),
        "usage": token_usage(tx, Span(start, end), utc_offset_minutes),
        "evaluations": latest_evaluations(tx, 60),
        "runs": execution_statistics(
            tx, from_=start, to=end, bucket_s=bucket_s, offset_s=60 * utc_offset_minutes, without_source=without_source
        ),
    }


def stores(
    tx: ReadTransaction, source: str
) -> tuple[list[dict[str, Any]], list[str], dict[tuple[str, str], list[str]]]:
    """Return the stores, a client's latest project folders, and the conversations read by (source, path)."""
    folders = [path for _, path, _ in projects_by_activity(tx, 20, source)]  # searched for stores
    return list_stores(tx), folders, stored_keys(tx)
