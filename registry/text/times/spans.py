"""Spans of time: days, weeks, months and years around an instant, in the offset it carries. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

TICK = timedelta(milliseconds=1)
"""The registry's resolution: one span ends a tick before the next begins."""


class Span(NamedTuple):
    """From one instant to another, both included; None is open."""

    start: datetime | None
    end: datetime | None


def _closed(start: datetime, end: datetime) -> Span:
    return Span(start, end - TICK)


def joined(one: Span, other: Span) -> Span:
    """From the first beginning to the last end of two closed spans."""
    starts, ends = (list(filter(None, times)) for times in zip(one, other, strict=True))
    return Span(min(starts, default=None), max(ends, default=None))


def midnight(at: datetime) -> datetime:
    """The beginning of a day."""
    return at.replace(hour=0, minute=0, second=0, microsecond=0)


def day_of(at: datetime, back: int = 0) -> Span:
    """The day of an instant, or one so many days earlier."""
    start = midnight(at) - timedelta(days=back)
    return Span(start, start + (timedelta(days=1) - TICK))  # the last day of all has no next one


def week_of(at: datetime, back: int = 0) -> Span:
    """Monday to Sunday."""
    monday = midnight(at) - timedelta(days=at.weekday() + 7 * back)
    return _closed(monday, monday + timedelta(days=7))


def weekend_of(at: datetime, back: int = 0) -> Span:
    """Saturday and Sunday of the week of an instant, or of an earlier one."""
    saturday = midnight(at) - timedelta(days=at.weekday() + 7 * back) + timedelta(days=5)
    return _closed(saturday, saturday + timedelta(days=2))


def month_of(at: datetime, back: int = 0) -> Span:
    """A calendar month."""
    start = midnight(at).replace(day=1)
    for _ in range(back):
        start = (start - timedelta(days=1)).replace(day=1)
    return _closed(start, (start + timedelta(days=32)).replace(day=1))


def year_of(at: datetime, back: int = 0) -> Span:
    """A calendar year."""
    start = midnight(at).replace(month=1, day=1, year=at.year - back)
    return _closed(start, start.replace(year=start.year + 1))


def minutes_around(at: datetime, back: int = 0) -> Span:
    """Return the span of a rounded number of minutes: from twice as many, and some more, to half as many."""
    return Span(at - timedelta(minutes=2 * back + 5), at - timedelta(minutes=back // 2))


def hour_around(at: datetime, back: int = 0) -> Span:
    """Return an hour to each side: a spoken hour is not exact."""
    return Span(at - timedelta(hours=back + 1), at - timedelta(hours=max(back - 1, 0)))


def hours_of(day: Span, first: int, last: int) -> Span:
    """A part of a day, by its hours; a night goes on past midnight."""
    if day.start is None:
        return day
    return _closed(day.start + timedelta(hours=first), day.start + timedelta(hours=last))
