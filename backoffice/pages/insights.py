"""/insights: activity, answers and tokens of a period on one page."""

from datetime import UTC, datetime, timedelta
from typing import Literal

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from backoffice.dependencies import SOURCE, CurrentClient
from backoffice.pages.reader import as_local, midnight, utc_offset_minutes
from backoffice.pages.rendering import render
from backoffice.pages.viewer.channels import PERIOD, given_query
from backoffice.pages.viewer.today import WEEKS, months_of, year_map
from backoffice.queries import StatisticsQuery
from orchestrator.views import figures
from registry.domain import format_time, now

router = APIRouter(default_response_class=HTMLResponse)

PERIODS = {"24h": timedelta(days=1), "7d": timedelta(days=7), "30d": timedelta(days=30), "1y": timedelta(days=365)}


class InsightsQuery(StatisticsQuery):
    """A period: from `from` to `to`, or else the `last` days."""

    last: Literal["24h", "7d", "30d", "1y", "all"] = "30d"

    def period(self, at: datetime) -> StatisticsQuery:
        if self.from_ or self.to or self.last == "all":
            return self
        # From a whole minute on: the figures of a large registry are cached by their period.
        start = (at - PERIODS[self.last]).replace(second=0, microsecond=0) + timedelta(minutes=1)
        return self.model_copy(update={"from_": start})


@router.get("/insights")
async def insights_page(request: Request, client: CurrentClient) -> HTMLResponse:
    """Show activity, the outcomes of searches, and token usage of a period."""
    query = given_query(request, InsightsQuery)
    at = now()
    period = query.period(at)
    bucket_s = period.bucket_s(at)
    limits = {name: format_time(at) if at else "" for name, at in (("from", period.from_), ("to", period.to))}
    today = midnight(request)
    year = (today - timedelta(weeks=WEEKS)).astimezone(UTC)
    offset = utc_offset_minutes(request)
    shown = await client.view(figures.insights, year, period.from_, period.to, bucket_s, offset, SOURCE)
    days = year_map(shown["counts"], today.date())
    return render(
        request,
        "flow/insights.html",
        last=None if query.from_ or query.to else query.last,
        limits=limits,
        shown_limits={name: as_local(request, limits[name]) for name in PERIOD},
        bucket_s=bucket_s,
        days=days,
        months=months_of(days),
        busiest=max(shown["hours"].values(), default=0),
        **shown,
    )
