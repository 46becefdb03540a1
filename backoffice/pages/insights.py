"""/insights: activity, answers, tokens and problems of a period on one page."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from backoffice.dependencies import SOURCE, Asking
from backoffice.pages.reader import as_local, midnight, utc_offset_minutes
from backoffice.pages.rendering import render
from backoffice.pages.viewer.channels import PERIOD, given_query
from backoffice.pages.viewer.today import WEEKS, map_of, months_of
from backoffice.queries import StatisticsQuery
from orchestrator.views import figures
from orchestrator.views import runs as views
from registry.domain import format_time, now

router = APIRouter(default_response_class=HTMLResponse)

LAST = {"24h": timedelta(days=1), "7d": timedelta(days=7), "30d": timedelta(days=30), "1y": timedelta(days=365)}


class InsightsQuery(StatisticsQuery):
    """Which period: from `from` to `to`, or else the last so much time."""

    last: Literal["24h", "7d", "30d", "1y", "all"] = "30d"

    def period(self, at: datetime) -> StatisticsQuery:
        if self.from_ or self.to or self.last == "all":
            return self
        return self.model_copy(update={"from_": at - LAST[self.last], "to": at})


def _each_day(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the days from the first to the last, those without tokens too; at most a year, for the chart."""
    if not rows:
        return []
    nothing = {"output_tokens": 0, "cost_usd": 0}
    by_day = {row["name"]: {**row, "cost_usd": row["cost_usd"] or 0} for row in rows}
    first, last = date.fromisoformat(rows[-1]["name"]), date.fromisoformat(rows[0]["name"])
    first = max(first, last - timedelta(days=365))
    days = (str(first + timedelta(days=n)) for n in range((last - first).days + 1))
    return [(day, by_day.get(day, nothing)) for day in days]


@router.get("/insights")
async def insights_page(request: Request, client: Asking) -> HTMLResponse:
    """Show what was said when, how the questions to it went, and what models took."""
    asked = given_query(request, InsightsQuery)
    at = now()
    period = asked.period(at)
    bucket_s = period.bucket_s(at)
    limits = {name: format_time(at) if at else "" for name, at in (("from", period.from_), ("to", period.to))}
    today = midnight(request)
    year = (today - timedelta(weeks=WEEKS)).astimezone(UTC)
    said = await client.view(figures.insights, year, period.from_, period.to, utc_offset_minutes(request))
    found = await client.view(views.statistics_page, period.from_, period.to, bucket_s, SOURCE)
    days = map_of(said.pop("days"), today.date())
    return render(
        request,
        "flow/insights.html",
        last=None if asked.from_ or asked.to else asked.last,
        limits=limits,
        shown_limits={name: as_local(request, limits[name]) for name in PERIOD},
        bucket_s=bucket_s,
        found=found,
        days=days,
        months=months_of(days),
        token_days=_each_day(said["usage"]["day"]),
        busiest=max(said["hours"].values(), default=0),
        **said,
    )


@router.get("/insights/problems")
async def problems_page(request: Request, client: Asking) -> HTMLResponse:
    """Show the errors that several conversations mention: at the end of Insights, or as a page."""
    return render(request, "flow/problems.html", problems=await client.view(figures.problems))
