"""What happened: the year as a map, and who spoke in the last week."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, timedelta
from typing import NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from backoffice.dependencies import Asking
from backoffice.pages.reader import reader_now, utc_offset_minutes
from backoffice.pages.rendering import render
from orchestrator.views import figures

router = APIRouter(default_response_class=HTMLResponse)

WEEKS = 53
DAY = timedelta(days=1)
LEVELS = 4


class Day(NamedTuple):
    """A square of the map: where it stands, how many messages, and how dark that is (0 to LEVELS)."""

    date: str
    week: int
    weekday: int
    messages: int
    level: int


def map_of(counts: Mapping[str, int], today: date) -> list[Day]:
    """The last year, a column for each week."""
    monday = today - timedelta(days=today.weekday()) - (WEEKS - 1) * timedelta(weeks=1)
    days = [monday + place * DAY for place in range((today - monday).days + 1)]
    most = max(counts.values(), default=0)
    return [
        Day(day.isoformat(), place // 7, place % 7, count, _level(count, most))
        for place, day in enumerate(days)
        for count in (counts.get(day.isoformat(), 0),)
    ]


def _level(count: int, most: int) -> int:
    """Half of the most is nearly as dark as the most: one busy day must not make all others pale."""
    return 0 if not count else max(1, min(LEVELS, round(LEVELS * (count / most) ** 0.5)))


@router.get("/activity")
async def activity_page(request: Request, client: Asking) -> HTMLResponse:
    """The year as a map, and who spoke in the last week: a part of the list's page; without a script, a page."""
    here = reader_now(request)
    offset = utc_offset_minutes(request)
    midnight = here.replace(hour=0, minute=0, second=0, microsecond=0)
    year = midnight - timedelta(weeks=WEEKS)
    week = midnight - 6 * DAY

    shown = await client.view(figures.activity, year.astimezone(UTC), week.astimezone(UTC), offset)
    shown["days"] = map_of(shown["days"], here.date())
    return render(request, "activity.html", section="registry", week=week.date().isoformat(), **shown)
