"""When a request speaks of: "last Tuesday", "3 days ago", "지난주", "그저께" as spans of time. Pure.

Days are those of the offset that `now` carries; weeks begin on Monday; both ends of a span belong to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple


class Span(NamedTuple):
    """From one instant to another, both included; None is open."""

    start: datetime | None
    end: datetime | None


class TimeWord(NamedTuple):
    """A span and where a text names it: `text[begin:end]`."""

    span: Span
    begin: int
    end: int


TICK = timedelta(milliseconds=1)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_KOREAN_WEEKDAYS = "월화수목금토일"
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7} | {
    "한": 1, "하루": 1, "이틀": 2, "두": 2, "사흘": 3, "세": 3, "네": 4, "나흘": 4, "다섯": 5, "일주일": 1,
}  # fmt: skip
_UNITS = {
    "hour": "hour", "시간": "hour", "day": "day", "일": "day", "week": "week", "주": "week", "주일": "week",
    "month": "month", "달": "month", "개월": "month", "year": "year", "년": "year",
}  # fmt: skip
_MOST = 1000


def _day(at: datetime, back: int = 0) -> Span:
    start = at.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=back)
    return Span(start, start + timedelta(days=1) - TICK)


def _week(at: datetime, back: int = 0) -> Span:
    monday = _first(_day(at, at.weekday() + 7 * back))
    return Span(monday, monday + timedelta(days=7) - TICK)


def _month(at: datetime, back: int = 0) -> Span:
    start = _first(_day(at)).replace(day=1)
    for _ in range(back):
        start = (start - timedelta(days=1)).replace(day=1)
    return Span(start, (start + timedelta(days=32)).replace(day=1) - TICK)


def _year(at: datetime, back: int = 0) -> Span:
    start = _first(_day(at)).replace(month=1, day=1, year=at.year - back)
    return Span(start, start.replace(year=start.year + 1) - TICK)


def _hours(at: datetime, back: int = 0) -> Span:
    """Nobody means the minute: one hour to each side."""
    return Span(at - timedelta(hours=back + 1), at - timedelta(hours=max(back - 1, 0)))


_SPANS: dict[str, Callable[[datetime, int], Span]] = {
    "hour": _hours, "day": _day, "week": _week, "month": _month, "year": _year,
}  # fmt: skip


def _first(span: Span) -> datetime:
    assert span.start is not None  # noqa: S101, the spans made here are closed
    return span.start


def _ago(now: datetime, match: re.Match[str]) -> Span:
    return _SPANS[_UNITS[match["unit"]]](now, _count(match["count"]))


def _past(now: datetime, match: re.Match[str]) -> Span:
    """ "the last 3 days": up to now."""
    return Span(_SPANS[_UNITS[match["unit"]]](now, _count(match["count"])).start, now)


def _weekday(now: datetime, match: re.Match[str]) -> Span:
    """The latest such day before today."""
    wanted = _WEEKDAYS.index(match["day"])
    return _day(now, (now.weekday() - wanted - 1) % 7 + 1)


def _korean_weekday(now: datetime, match: re.Match[str]) -> Span:
    wanted, which = _KOREAN_WEEKDAYS.index(match["day"]), match["which"]
    if match["week"]:
        monday = _first(_week(now, _KOREAN_BACK[which]))
        return _day(monday + timedelta(days=wanted))
    return _day(now, (now.weekday() - wanted) % 7 or (0 if which == "이번" else 7))


_KOREAN_BACK = {"지난": 1, "저번": 1, "이번": 0, "금": 0, "지지난": 2, "저저번": 2}
_BACK = {"this": 0, "last": 1, "previous": 1}


def _count(word: str) -> int:
    return min(int(word), _MOST) if word.isdigit() else _COUNTS[word]


def _named(unit: str, back: int) -> Callable[[datetime, re.Match[str]], Span]:
    return lambda now, _: _SPANS[unit](now, back)


# Neither inside an identifier, a path or an address nor inside a longer word.
_BEFORE, _AFTER = r"(?<![\w./@#-])", r"(?![\w/@-]|\.\w)"
_ENGLISH_END = rf"(?:['’]s)?{_AFTER}"
_KOREAN_END = rf"(?:에|의|은|는|도|부터|에는|에도|쯤|쯤에)?{_AFTER}"
_NUMBER = r"(?P<count>\d{1,3}|an?|one|two|three|four|five|six|seven)"
_KOREAN_COUNT = r"(?P<count>\d{1,3}|한|두|세|네|다섯) ?(?P<unit>시간|일|주일|주|달|개월|년)"
_UNIT = "(?P<unit>hour|day|week|month|year)s?"

_RULES: tuple[tuple[str, Callable[[datetime, re.Match[str]], Span]], ...] = (
    (rf"(?:the )?day before yesterday{_ENGLISH_END}", _named("day", 2)),
    (rf"yesterday{_ENGLISH_END}", _named("day", 1)),
    (rf"today{_ENGLISH_END}", _named("day", 0)),
    (rf"last night{_ENGLISH_END}", _named("day", 1)),
    (rf"{_NUMBER} {_UNIT} ago{_AFTER}", _ago),
    (rf"(?:(?:in|over|within|during) )?(?:the )?(?:last|past) {_NUMBER} {_UNIT}{_AFTER}", _past),
    (rf"(?P<which>this|last|previous) (?P<unit>week|month|year){_ENGLISH_END}",
     lambda now, match: _SPANS[match["unit"]](now, _BACK[match["which"]])),
    (rf"(?:on )?last (?P<day>{'|'.join(_WEEKDAYS)}){_ENGLISH_END}", _weekday),
    (rf"(?P<which>지지난|저저번|지난|저번|이번) ?(?P<week>주 ?)?(?P<day>[{_KOREAN_WEEKDAYS}])요일{_KOREAN_END}",
     _korean_weekday),
    (rf"(?P<which>지지난|저저번|지난|저번|이번|금) ?주{_KOREAN_END}",
     lambda now, match: _week(now, _KOREAN_BACK[match["which"]])),
    (rf"(?P<which>지지난|저저번|지난|저번|이번) ?달{_KOREAN_END}",
     lambda now, match: _month(now, _KOREAN_BACK[match["which"]])),
    (rf"(?:그저께|그제|엊그제|엊그저께){_KOREAN_END}", _named("day", 2)),
    (rf"(?:어제|어저께|전날){_KOREAN_END}", _named("day", 1)),
    (rf"오늘{_KOREAN_END}", _named("day", 0)),
    (rf"(?:작년|지난 ?해){_KOREAN_END}", _named("year", 1)),
    (rf"올해{_KOREAN_END}", _named("year", 0)),
    (rf"{_KOREAN_COUNT} ?전{_KOREAN_END}", _ago),
    (rf"(?P<count>이틀|사흘|나흘) ?전{_KOREAN_END}", lambda now, match: _day(now, _count(match["count"]))),
    (rf"일주일 ?전{_KOREAN_END}", _named("week", 1)),
    (rf"(?:최근|지난) ?{_KOREAN_COUNT}(?: ?동안)?{_KOREAN_END}", _past),
)  # fmt: skip
_COMPILED = tuple((re.compile(_BEFORE + pattern, re.IGNORECASE), span) for pattern, span in _RULES)


def find_time(text: str, now: datetime) -> TimeWord | None:
    """The first time word of a text, the longest of those that begin there; None if it has none."""
    found: list[TimeWord] = []
    for pattern, span_of in _COMPILED:
        match = pattern.search(text.lower()) if len(text.lower()) == len(text) else pattern.search(text)
        if match:
            found.append(TimeWord(_safe(span_of, now, match), match.start(), match.end()))
    return min(found, key=lambda word: (word.begin, -word.end), default=None)


def _safe(span_of: Callable[[datetime, re.Match[str]], Span], now: datetime, match: re.Match[str]) -> Span:
    try:
        return span_of(now, match)
    except (OverflowError, ValueError):  # before the year 1
        return Span(None, now)


_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")


def parse_span(value: str, now: datetime) -> Span | None:
    """The span of a date (2026, 2026-03, 2026-03-05), an instant (ISO 8601) or a time word; None for others."""
    word = find_time(value, now)
    if word and (word.begin, word.end) == (0, len(value)):
        return word.span
    try:
        if match := _DATE.fullmatch(value):
            year, month, day = (int(part) if part else 1 for part in match.groups())
            whole = _day if match[3] else _month if match[2] else _year
            return whole(now.replace(year=year, month=month, day=day))
        moment = datetime.fromisoformat(value)
    except (ValueError, OverflowError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)
    return Span(moment, moment)
