"""Days and times in filters are the reader's own: the browser tells its time zone by a cookie (`app.js`).

The API beneath means UTC. Who has no script is told that it is UTC here too.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from fastapi import Request

from registry.domain import format_time, parse_time
from registry.text.times.time_words import parse_span

COOKIE = "zone"
Told = Literal["told", "untold", "unknown"]


def zone_told(request: Request) -> Told:
    """Whether we know the reader's time zone; `unknown`: the browser named one that we have no table of."""
    if not request.cookies.get(COOKIE):
        return "untold"
    return "told" if _zone_of(request) else "unknown"


def as_instant(request: Request, name: str, given: str) -> str:
    """A filter's `from` or `to` as the reader means it, as an instant; what is none stays, to be refused."""
    span = parse_span(given, reader_now(request))
    moment = span and (span.end if name == "to" else span.start)
    return format_time(moment) if moment else given


def as_local(request: Request, given: str) -> str:
    """An instant as the reader's clock and calendar say it: what a field for a date or a time takes."""
    try:
        moment = parse_time(given).astimezone(_zone_of(request) or UTC)
    except (ValueError, OverflowError):
        return ""
    return moment.isoformat(timespec="minutes")[:16]


def reader_now(request: Request) -> datetime:
    """Now, by the reader's clock and calendar."""
    return datetime.now(_zone_of(request) or UTC)


def utc_offset_minutes(request: Request) -> int:
    """The reader's clock against UTC, now."""
    offset = reader_now(request).utcoffset() or timedelta()
    return int(offset.total_seconds() // 60)


def _zone_of(request: Request) -> ZoneInfo | None:
    try:
        return ZoneInfo(request.cookies[COOKIE])
    except (KeyError, ValueError, OSError):  # none told, not a name of a zone, or no table of it
        return None
