"""What happened: the reader's days, the year as a map, and what is new since they last looked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from backoffice.dependencies import Stored
from backoffice.pages.rendering import render
from backoffice.pages.zone import reader_now, utc_offset_minutes
from registry.domain import format_time, now, parse_time
from registry.monitor.activity import messages_by_day, messages_by_project, messages_by_source
from registry.storage.database import ReadTransaction

router = APIRouter(default_response_class=HTMLResponse)

WEEKS = 53
DAY = timedelta(days=1)
SHOWN = 4
LEVELS = 4
LOOKED = "looked"
"""The cookie: when this visit began, and the one before it."""
SAME_VISIT = timedelta(minutes=30)


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
async def activity_page(request: Request, registry: Stored) -> HTMLResponse:
    """The year as a map, and who spoke in the last week: a part of the list's page; without a script, a page."""
    here = reader_now(request)
    offset = utc_offset_minutes(request)
    midnight = here.replace(hour=0, minute=0, second=0, microsecond=0)
    year = midnight - timedelta(weeks=WEEKS)
    week = midnight - 6 * DAY

    def work(tx: ReadTransaction) -> dict[str, Any]:
        return {
            "days": map_of(messages_by_day(tx, year.astimezone(UTC), offset), here.date()),
            "sources": messages_by_source(tx, week.astimezone(UTC))[:SHOWN],
            "projects": messages_by_project(tx, week.astimezone(UTC))[:SHOWN],
        }

    return render(
        request, "activity.html", section="registry", week=week.date().isoformat(), **await registry.read(work)
    )


@dataclass(frozen=True, slots=True)
class Visit:
    """When the reader looked before this visit (None: never), and what their browser keeps of it."""

    before: datetime | None
    cookie: str

    def keep(self, response: Response) -> None:
        """Let the browser remember."""
        response.set_cookie(LOOKED, self.cookie, max_age=31_536_000, samesite="lax", httponly=True)


def visit(request: Request) -> Visit:
    """This visit and the one before; what is looked at within half an hour is one visit."""
    began, before = _kept(request.cookies.get(LOOKED, ""))
    if began is None or now() - began > SAME_VISIT:
        began, before = now(), began
    return Visit(before, ".".join(str(int(at.timestamp())) for at in (began, before) if at))


def _kept(cookie: str) -> Sequence[datetime | None]:
    times = [datetime.fromtimestamp(int(part), UTC) for part in cookie.split(".")[:2] if _is_time(part)]
    return [*times, None, None][:2]


def _is_time(part: str) -> bool:
    return part.isascii() and part.isdecimal() and len(part) <= 10


def day_of(request: Request, instant: str) -> str:
    """The reader's day of an instant."""
    return parse_time(instant).astimezone(reader_now(request).tzinfo).date().isoformat()


def named_days(request: Request) -> dict[str, str]:
    """The days that have a name."""
    today = reader_now(request).date()
    return {today.isoformat(): "today", (today - DAY).isoformat(): "yesterday"}


def since(before: datetime | None) -> str | None:
    """As an address has it."""
    return format_time(before) if before else None
