"""/flow/statistics: the runs of a period in figures, over time, and those to look at: the slowest, the failing."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from pydantic import Field

from backoffice.dependencies import SOURCE, Asking
from backoffice.pages.flow.rendering import render_flow
from backoffice.pages.reader import as_local
from backoffice.pages.viewer.channels import PERIOD, given_query
from backoffice.queries import OperationName, StatisticsQuery
from orchestrator.views import runs as views
from registry.domain import format_time, now

router = APIRouter(prefix="/flow", default_response_class=HTMLResponse)

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
async def statistics_page(request: Request, client: Asking) -> HTMLResponse:
    """Counts, success rates and response times by operation, source, channel and error; a chart to choose from.

    The figures of a million runs take a while to count: the frame is shown meanwhile.
    """
    asked = given_query(request, StatisticsPageQuery)
    at = now()
    period = asked.period(at)
    bucket_s = period.bucket_s(at)
    limits = {"from": _written(period.from_), "to": _written(period.to)}
    found = await client.view(views.statistics_page, period.from_, period.to, bucket_s, asked.operation, SOURCE)
    return render_flow(
        request,
        "statistics.html",
        lasts=[*LAST, "all"],
        last=None if asked.from_ or asked.to else asked.last,
        limits=limits,
        shown_limits={name: as_local(request, limits[name]) for name in PERIOD},
        bucket_s=bucket_s,
        operation=asked.operation,
        found=found,
    )


def _written(moment: datetime | None) -> str:
    return format_time(moment) if moment else ""
