"""Compute spans of time: days, weeks, months and years around an instant, in its UTC offset. Pure."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

TICK = timedelta(milliseconds=1)  # the registry's resolution: one span ends a tick before the next begins


class Span(NamedTuple):
    """A time span, both ends included; None is open."""

    start: datetime | None
    end: datetime | None


EVER = Span(None, None)


def between(start: datetime, end: datetime) -> Span:
    """Return the span from one instant to just before another."""
    return Span(start, end - TICK)


def midnight(at: datetime) -> datetime:
    """Return the beginning of a day."""
    return at.replace(hour=0, minute=0, second=0, microsecond=0)


def day_of(at: datetime, back: int = 0) -> Span:
    """Return the day of an instant, or the day `back` days earlier."""
    start = midnight(at) - timedelta(days=back)
    return Span(start, start + (timedelta(days=1) - TICK))  # the last representable day has no next one


def week_of(at: datetime, back: int = 0) -> Span:
    """Return the week of an instant, Monday to Sunday, or an earlier one."""
    monday = midnight(at) - timedelta(days=at.weekday() + 7 * back)
    return between(monday, monday + timedelta(days=7))


def weekend_of(at: datetime, back: int = 0) -> Span:
    """Return Saturday and Sunday of the week of an instant, or of an earlier one."""
    monday = midnight(at) - timedelta(days=at.weekday() + 7 * back)
    return between(monday + timedelta(days=5), monday + timedelta(days=7))


def months_of(year: int, first: int, count: int, at: datetime) -> Span:
    """Return `count` months from month `first` of a year on; `first` may be below 1 or above 12."""
    begin, end = (
        midnight(at).replace(year=year + month // 12, month=month % 12 + 1, day=1)
        for month in (first - 1, first - 1 + count)
    )
    return between(begin, end)


def month_of(at: datetime, back: int = 0) -> Span:
    return months_of(at.year, at.month - back, 1, at)


def year_of(at: datetime, back: int = 0) -> Span:
    return months_of(at.year - back, 1, 12, at)


def minutes_around(at: datetime, back: int = 0) -> Span:
    """Return a span around `back` minutes ago, a rounded number: from twice as many (and 5) to half as many."""
    return Span(at - timedelta(minutes=2 * back + 5), at - timedelta(minutes=back // 2))


def hour_around(at: datetime, back: int = 0) -> Span:
    """Return an hour on each side of `back` hours ago: such a number is not exact."""
    return Span(at - timedelta(hours=back + 1), at - timedelta(hours=max(back - 1, 0)))


SPANS: dict[str, Callable[[datetime, int], Span]] = {
    "minute": minutes_around, "hour": hour_around, "day": day_of, "week": week_of, "weekend": weekend_of,
    "month": month_of, "year": year_of,
}  # fmt: skip
