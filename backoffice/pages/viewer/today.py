"""/overview and /today: the year as a map, the last week, answers to check; a day and its briefing."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from datetime import UTC, date, timedelta
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from markupsafe import Markup

from backoffice.dependencies import SOURCE, CurrentClient
from backoffice.pages.flow.runs import group_by_question
from backoffice.pages.reader import as_instant, midnight, utc_offset_minutes
from backoffice.pages.rendering import address, render, see_other
from backoffice.pages.viewer.channels import FILTERS, ROWS, RegistryQuery, list_context
from backoffice.pages.viewer.markdown import html_of
from backoffice.pages.viewer.steps import first_steps
from backoffice.queries import Word
from orchestrator.views import conversations, figures, runs

router = APIRouter(default_response_class=HTMLResponse)

WEEKS = 53
DAY = timedelta(days=1)


class Day(NamedTuple):
    """A square of the map: column, row, number of messages, and how dark it is (0 to 4)."""

    date: str
    week: int
    weekday: int
    messages: int
    level: int


def year_map(counts: Mapping[str, int], today: date) -> list[Day]:
    """Return the days of the last year, a column for each week; a day's level is the quartile of its messages."""
    monday = today - timedelta(days=today.weekday()) - (WEEKS - 1) * timedelta(weeks=1)
    days = [monday + index * DAY for index in range((today - monday).days + 1)]
    busy = sorted(count for day in days if (count := counts.get(day.isoformat(), 0)))
    return [
        Day(
            day.isoformat(), index // 7, index % 7, count, 1 + 4 * bisect_left(busy, count) // len(busy) if count else 0
        )
        for index, day in enumerate(days)
        for count in (counts.get(day.isoformat(), 0),)
    ]


def months_of(days: Sequence[Day]) -> list[tuple[str, int]]:
    """Return the first whole week of each month, and the month's English short name."""
    firsts = {day.date[:7]: day for day in reversed(days) if day.weekday == 0}
    ordered = sorted(firsts.values())
    return [(f"{date.fromisoformat(one.date):%b}", one.week) for one in ordered if 0 < one.week < WEEKS - 2]


@router.get("/overview")
async def overview(request: Request, client: CurrentClient) -> HTMLResponse:
    """Show the year as a map, who spoke in the last week, and answers to check: next to the list, or as a page."""
    today = midnight(request)
    year, week = today - timedelta(weeks=WEEKS), today - 6 * DAY
    offset = utc_offset_minutes(request)
    shown = await client.view(figures.activity, year.astimezone(UTC), week.astimezone(UTC), offset)
    days = year_map(shown.pop("days"), today.date())
    unsure = await client.view(runs.unsure_runs, SOURCE, 50)
    return render(
        request,
        "overview.html",
        days=days,
        months=months_of(days),
        week=week.date().isoformat(),
        unsure=group_by_question(unsure)[:8],
        steps=None if shown["has_asked"] else await first_steps(request, client),
        **shown,
    )


@router.get("/today")
async def today_page(
    request: Request,
    client: CurrentClient,
    briefing: Annotated[Word | None, Query()] = None,
    asked: Annotated[date | None, Query(alias="date", gt=date.min, lt=date.max)] = None,
) -> HTMLResponse:
    """Show the conversations of a day and its briefing: of the day asked for, else of today."""
    found = await client.view(conversations.latest_briefings, 60)
    here = midnight(request).date().isoformat()
    day = asked.isoformat() if asked else here
    shown = next((one for one in found if one["id"] == briefing), None) or next(
        (one for one in found if one["date"] == day), None
    )
    day = shown["date"] if shown else day
    html = Markup(html_of(shown["text"])) if shown else None  # noqa: S704, sanitised by `markdown`
    given = {**dict.fromkeys(FILTERS, ""), "from": day, "to": day}
    query = RegistryQuery(
        limit=ROWS, **{"from": as_instant(request, "from", day), "to": as_instant(request, "to", day)}
    )
    listing = await list_context(request, client, query, given)
    sides = [(date.fromisoformat(day) + offset).isoformat() for offset in (-DAY, DAY)]
    context = {"briefings": found, "shown": shown, "html": html, "today": here, "date": day, "sides": sides}
    return render(request, "today.html", **{**listing, **context})


@router.post("/today")
async def make_briefing(request: Request, client: CurrentClient, date: Annotated[str, Form()]) -> RedirectResponse:
    """Make the briefing of a day, or deliver it again to the actions that failed."""
    query = {"date": date, "utc_offset_minutes": utc_offset_minutes(request)}
    made = await client.run("daily_briefing", query)
    return see_other(address("/today", briefing=made["briefing"]["id"]))
