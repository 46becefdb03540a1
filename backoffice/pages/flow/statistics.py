"""/flow/statistics: the runs of a period in figures, over time, and those to look at: the slowest, the failing."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, StreamingResponse
from pydantic import Field

from backoffice.dependencies import Stored
from backoffice.pages.reader import as_local
from backoffice.pages.rendering import awaited, render_in_parts
from backoffice.pages.viewer.channels import PERIOD, given_query
from backoffice.queries import OperationName, StatisticsQuery
from registry.domain import format_time, now
from registry.monitor import trends
from registry.monitor.statistics import (
    CHANNEL_RUNS,
    busiest_channels,
    execution_statistics,
    newest_executions,
    slowest_executions,
)
from registry.storage.database import ReadTransaction
from registry.storage.records.executions import ExecutionFilter
from registry.storage.records.judgements import ratings

router = APIRouter(prefix="/flow", default_response_class=HTMLResponse)

SHOWN = 10
LAST = {"1h": timedelta(hours=1), "24h": timedelta(days=1), "7d": timedelta(days=7), "30d": timedelta(days=30)}


class StatisticsPageQuery(StatisticsQuery):
    """Which period: from `from` to `to`, or else the last so much time."""

    operation: OperationName | None = Field(None, description="whose times the chart shows")
    last: Literal["1h", "24h", "7d", "30d", "all"] = Field("24h")

    def period(self, at: datetime) -> StatisticsQuery:
        """The period as two instants."""
        if self.from_ or self.to or self.last == "all":
            return self
        return self.model_copy(update={"from_": at - LAST[self.last], "to": at})


@router.get("/statistics")
async def statistics_page(request: Request, registry: Stored) -> StreamingResponse:
    """Counts, success rates and response times by operation, source, channel and error; a chart to choose from.

    The figures of a million runs take a while to count: the frame is shown meanwhile.
    """
    asked = given_query(request, StatisticsPageQuery)
    at = now()
    period = asked.period(at)
    wanted = ExecutionFilter(from_=period.from_, to=period.to)
    bucket_s = period.bucket_s(at)

    def work(tx: ReadTransaction) -> dict[str, Any]:
        figures = execution_statistics(tx, from_=wanted.from_, to=wanted.to, bucket_s=bucket_s)
        is_countable = trends.is_countable(tx, wanted)
        times = trends.latencies(tx, replace(wanted, operation=asked.operation), bucket_s) if is_countable else {}
        return {
            "figures": {
                **figures,
                "series": [{**NO_TIMES, **point, **times.get(point["at"], {})} for point in figures["series"]],
            },
            **_before(tx, wanted),
            "clients": trends.client_figures(tx, wanted, SHOWN) if is_countable else [],
            "ratings": ratings(tx, wanted.from_, wanted.to),
            "volumes": trends.volumes(tx, wanted) if is_countable else None,
            "errors": [_shown(group) for group in trends.error_groups(tx, wanted, SHOWN)],
            "channels": busiest_channels(tx, wanted, SHOWN),
            "slowest": slowest_executions(tx, wanted, SHOWN),
            "failing": newest_executions(tx, ExecutionFilter(from_=wanted.from_, to=wanted.to, status="failed"), SHOWN),
        }

    limits = {"from": _written(wanted.from_), "to": _written(wanted.to)}
    return render_in_parts(
        request,
        "flow/statistics.html",
        section="flow",
        lasts=[*LAST, "all"],
        last=None if asked.from_ or asked.to else asked.last,
        limits=limits,
        shown_limits={name: as_local(request, limits[name]) for name in PERIOD},
        channel_runs=CHANNEL_RUNS,
        bucket_s=bucket_s,
        operation=asked.operation,
        counted=awaited(lambda: registry.read(work)),
    )


NO_TIMES = {"p50_ms": None, "p95_ms": None}


def _before(tx: ReadTransaction, wanted: ExecutionFilter) -> dict[str, Any]:
    """The figures of the period before, of the same length: in all (None where nothing ran), and by what is listed."""
    if wanted.from_ is None or wanted.to is None:
        return {"before": None, "earlier": {}}
    earlier = ExecutionFilter(from_=wanted.from_ - (wanted.to - wanted.from_), to=wanted.from_)
    figures = execution_statistics(tx, from_=earlier.from_, to=earlier.to, bucket_s=WHOLE)
    if not figures["total"]["count"]:
        return {"before": None, "earlier": {}}
    clients = trends.client_figures(tx, earlier, MOST_CLIENTS) if trends.is_countable(tx, earlier) else []
    listed = {"operation": figures["operations"], "source": figures["sources"], "client": clients}
    by_name = {kind: {row[kind]: row for row in rows} for kind, rows in listed.items()}
    return {"before": figures["total"], "earlier": by_name}


WHOLE = 31_536_000
MOST_CLIENTS = 1000


def _shown(group: trends.ErrorGroup) -> dict[str, Any]:
    return {**group._asdict(), "first": format_time(group.first), "last": format_time(group.last)}


def _written(moment: datetime | None) -> str:
    return format_time(moment) if moment else ""
