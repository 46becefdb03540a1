"""When a request speaks of: "last Tuesday", "3 days ago", "yesterday afternoon", "지난주" as spans of time. Pure.

Days are those of the offset that `now` carries; weeks begin on Monday; both ends of a span belong to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from registry.domain import reckonable
from registry.text.dates import DATE_RULES
from registry.text.spans import (
    TICK,
    Span,
    day_of,
    hour_around,
    hours_of,
    month_of,
    week_of,
    weekend_of,
    year_of,
)


class TimeWord(NamedTuple):
    """A span and where a text names it: `text[begin:end]`. `is_date`: a date outright, which may be what was spoken
    about and not when it was said."""

    span: Span
    begin: int
    end: int
    is_date: bool = False


_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_KOREAN_WEEKDAYS = "월화수목금토일"
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7} | {
    "한": 1, "하루": 1, "이틀": 2, "두": 2, "사흘": 3, "세": 3, "네": 4, "나흘": 4, "다섯": 5, "일주일": 1,
}  # fmt: skip
_UNITS = {
    "hour": "hour", "시간": "hour", "day": "day", "일": "day", "week": "week", "주": "week", "주일": "week",
    "month": "month", "달": "month", "개월": "month", "year": "year", "년": "year",
}  # fmt: skip
_SPANS: dict[str, Callable[[datetime, int], Span]] = {
    "hour": hour_around, "day": day_of, "week": week_of, "month": month_of, "year": year_of,
    "weekend": weekend_of,
}  # fmt: skip
_HOURS = {
    "morning": (5, 12), "afternoon": (12, 18), "evening": (17, 24), "night": (18, 28),
    "아침": (5, 12), "오전": (0, 12), "점심": (11, 15), "낮": (10, 18), "오후": (12, 24), "저녁": (17, 24),
    "밤": (18, 28), "새벽": (0, 7),
}  # fmt: skip
_MOST = 1000


def _ago(now: datetime, match: re.Match[str]) -> Span:
    return _SPANS[_UNITS[match["unit"]]](now, _count(match["count"]))


def _some_ago(now: datetime, match: re.Match[str]) -> Span:
    """ "a few weeks ago": two to six of them back."""
    span_of = _SPANS[_UNITS[match["unit"]]]
    return Span(span_of(now, 6).start, span_of(now, 2).end)


def _past(now: datetime, match: re.Match[str]) -> Span:
    """ "the last 3 days": up to now."""
    return Span(_SPANS[_UNITS[match["unit"]]](now, _count(match["count"])).start, now)


def _weekday(now: datetime, match: re.Match[str]) -> Span:
    """The latest such day before today."""
    wanted = _WEEKDAYS.index(match["day"].lower())
    return day_of(now, (now.weekday() - wanted - 1) % 7 + 1)


def _this_weekday(now: datetime, match: re.Match[str]) -> Span:
    """Of this week, if it has come; else the latest one."""
    wanted = _WEEKDAYS.index(match["day"].lower())
    return day_of(now, (now.weekday() - wanted) % 7)


def _weekday_of_last_week(now: datetime, match: re.Match[str]) -> Span:
    return day_of(now, now.weekday() + 7 - _WEEKDAYS.index(match["day"].lower()))


def _korean_weekday(now: datetime, match: re.Match[str]) -> Span:
    wanted, which = _KOREAN_WEEKDAYS.index(match["day"]), match["which"]
    if match["week"]:
        return day_of(now, now.weekday() + 7 * _KOREAN_BACK[which] - wanted)
    return day_of(now, (now.weekday() - wanted) % 7 or (0 if which == "이번" else 7))


def _bare_korean_weekday(now: datetime, match: re.Match[str]) -> Span:
    return day_of(now, (now.weekday() - _KOREAN_WEEKDAYS.index(match["day"])) % 7)


_KOREAN_BACK = {"지난": 1, "저번": 1, "이번": 0, "금": 0, "지지난": 2, "저저번": 2}
_BACK = {"this": 0, "last": 1, "previous": 1, "past": 1}


def _count(word: str) -> int:
    return min(int(word), _MOST) if word.isdigit() else _COUNTS[word.lower()]


def _named(unit: str, back: int) -> Callable[[datetime, re.Match[str]], Span]:
    return lambda now, _: _SPANS[unit](now, back)


# Neither inside an identifier, a path or an address nor inside a longer word.
_BEFORE, _AFTER = r"(?<![\w./@#-])", r"(?![\w/@-]|\.\w)"
_ENGLISH_PART = r"(?: (?P<hours>morning|afternoon|evening|night))?"
_ENGLISH_END = rf"{_ENGLISH_PART}(?:['’]s)?{_AFTER}"
_KOREAN_PART = r"(?: ?(?P<hours>아침|오전|점심|낮|오후|저녁|밤|새벽))?"
_KOREAN_END = rf"{_KOREAN_PART}(?:에|의|은|는|도|부터|에는|에도|쯤|쯤에)?{_AFTER}"
_NUMBER = r"(?P<count>\d{1,3}|an?|one|two|three|four|five|six|seven)"
_KOREAN_COUNT = r"(?P<count>\d{1,3}|한|두|세|네|다섯) ?(?P<unit>시간|일|주일|주|달|개월|년)"
_UNIT = "(?P<unit>hour|day|week|month|year)s?"
_DAYS = "|".join(_WEEKDAYS)

_RULES: tuple[tuple[str, Callable[[datetime, re.Match[str]], Span]], ...] = (
    (rf"(?:the )?day before yesterday{_ENGLISH_END}", _named("day", 2)),
    (rf"(?:since )?yesterday{_ENGLISH_END}", _named("day", 1)),
    (rf"(?:earlier )?today{_ENGLISH_END}", _named("day", 0)),
    (rf"this (?P<hours>morning|afternoon|evening){_AFTER}", _named("day", 0)),
    (rf"last night{_AFTER}", lambda now, _: hours_of(day_of(now, 1), *_HOURS["night"])),
    (rf"{_NUMBER} {_UNIT} ago{_AFTER}", _ago),
    (rf"(?:a few|few|a couple of|several|some) {_UNIT} ago{_AFTER}", _some_ago),
    (rf"(?:(?:in|over|within|during) )?(?:the )?(?:last|past) {_NUMBER} {_UNIT}{_AFTER}", _past),
    (rf"(?:over |on )?(?:the )?(?P<which>this|last|previous|past) (?P<unit>week|month|year|weekend){_ENGLISH_END}",
     lambda now, match: _SPANS[match["unit"].lower()](now, _weeks_back(now, match))),
    (rf"(?:on )?(?:the )?(?P<day>{_DAYS})(?: of)? last week{_ENGLISH_END}", _weekday_of_last_week),
    (rf"last week['’]?s? (?P<day>{_DAYS}){_ENGLISH_END}", _weekday_of_last_week),
    (rf"(?:on )?last (?P<day>{_DAYS}){_ENGLISH_END}", _weekday),
    (rf"(?:on |this )(?P<day>{_DAYS}){_ENGLISH_END}", _this_weekday),
    (rf"(?P<which>지지난|저저번|지난|저번|이번) ?(?P<week>주 ?)?(?P<day>[{_KOREAN_WEEKDAYS}])요일{_KOREAN_END}",
     _korean_weekday),
    (rf"(?P<day>[{_KOREAN_WEEKDAYS}])요일{_KOREAN_END}", _bare_korean_weekday),
    (rf"(?P<which>지지난|저저번|지난|저번|이번|금) ?주(?P<weekend> ?주말)?{_KOREAN_END}",
     lambda now, match: (weekend_of if match["weekend"] else week_of)(now, _KOREAN_BACK[match["which"]])),
    (rf"(?P<which>지난|저번) ?주말{_KOREAN_END}",
     lambda now, match: weekend_of(now, 0 if now.weekday() == 6 else 1)),
    (rf"이번 ?주말{_KOREAN_END}", _named("weekend", 0)),
    (rf"(?P<which>지지난|저저번|지난|저번|이번) ?달(?: ?(?P<third>초|중순|말))?{_KOREAN_END}",
     lambda now, match: _third(month_of(now, _KOREAN_BACK[match["which"]]), match["third"])),
    (rf"(?:그저께|그제|엊그제|엊그저께){_KOREAN_END}", _named("day", 2)),
    (rf"(?:어제|어저께|전날){_KOREAN_END}", _named("day", 1)),
    (rf"(?:어젯밤|간밤)(?:에)?{_AFTER}", lambda now, _: hours_of(day_of(now, 1), *_HOURS["밤"])),
    (rf"오늘{_KOREAN_END}", _named("day", 0)),
    (rf"(?P<year>작년|지난 ?해|재작년|올해)(?: ?(?P<part>초|말))?{_KOREAN_END}",
     lambda now, match: _part_of_year(now, match)),
    (rf"{_KOREAN_COUNT} ?전{_KOREAN_END}", _ago),
    (rf"며칠 ?전{_KOREAN_END}", lambda now, _: Span(day_of(now, 7).start, day_of(now, 2).end)),
    (rf"몇 ?(?P<unit>주|달|개월|년) ?전{_KOREAN_END}", _some_ago),
    (rf"(?P<count>이틀|사흘|나흘) ?전{_KOREAN_END}", lambda now, match: day_of(now, _count(match["count"]))),
    (rf"일주일 ?전{_KOREAN_END}", _named("week", 1)),
    (rf"(?:최근|지난) ?{_KOREAN_COUNT}(?: ?동안)?{_KOREAN_END}", _past),
)  # fmt: skip
_ENDS = {"en": _ENGLISH_END, "ko": _KOREAN_END}
_BARE_DATE = r"(?P<month>1[0-2]|[1-9])/(?P<day>\d{1,2})"


def _weeks_back(now: datetime, match: re.Match[str]) -> int:
    """On a Sunday "last weekend" is over a week ago; on other days the one that was."""
    return _BACK[match["which"].lower()]


_YEARS_BACK = {"작년": 1, "지난해": 1, "재작년": 2, "올해": 0}
_MONTHS_OF_PART = {"초": (1, 3), "말": (10, 12)}


def _part_of_year(now: datetime, match: re.Match[str]) -> Span:
    """The beginning or the end of a year are three months of it."""
    year = now.replace(year=now.year - _YEARS_BACK[match["year"].replace(" ", "")], month=1, day=1)
    first, last = _MONTHS_OF_PART.get(match["part"] or "", (1, 12))
    return Span(month_of(year.replace(month=first)).start, month_of(year.replace(month=last)).end)


def _third(month: Span, part: str | None) -> Span:
    if not part or month.start is None or month.end is None:
        return month
    first, last = {"초": (0, 10), "중순": (10, 20), "말": (20, 31)}[part]
    return Span(month.start + timedelta(days=first), min(month.end, month.start + timedelta(days=last) - TICK))


def _end_of(pattern: str, language: str) -> str:
    """A bare 10/3 may be a fraction or a path: only a Korean ending makes it a date."""
    if pattern == _BARE_DATE:
        return rf"(?:에|일|날)(?:에|의|은|는)?{_AFTER}"
    return _ENDS[language]


_COMPILED = (
    *((re.compile(_BEFORE + pattern, re.IGNORECASE), read, False) for pattern, read in _RULES),
    *(
        (re.compile(_BEFORE + pattern + _end_of(pattern, language), re.IGNORECASE), read, True)
        for pattern, read, language in DATE_RULES
    ),
)


def find_time(text: str, now: datetime) -> TimeWord | None:
    """The first time word of a text, the longest of those that begin there; None if it has none."""
    return min(find_times(text, now), key=lambda word: (word.begin, -word.end), default=None)


def find_times(text: str, now: datetime) -> list[TimeWord]:
    """Every time word of a text, in no order; they may overlap."""
    found = []
    for pattern, span_of, is_date in _COMPILED:
        for match in pattern.finditer(text):
            span = _read(span_of, now, match)
            if span is not None:
                found.append(_since(text, TimeWord(span, match.start(), match.end(), is_date), now))
    return found


def _since(text: str, word: TimeWord, now: datetime) -> TimeWord:
    """ "since Monday", 어제부터: until now."""
    said = text[word.begin : word.end].lower()
    before = _SINCE.search(text[: word.begin])
    if not (before or said.startswith("since ") or said.endswith("부터")):
        return word
    span = Span(word.span.start, max(now, word.span.start) if word.span.start else now)
    return word._replace(span=span, begin=before.start() if before else word.begin)


def _read(span_of: Callable[[datetime, re.Match[str]], Span], now: datetime, match: re.Match[str]) -> Span | None:
    try:
        span = span_of(now, match)
    except OverflowError:  # before the year 1
        return Span(None, now)
    except ValueError:  # there is no 31 February
        return None
    hours = match.groupdict().get("hours")
    return hours_of(span, *_HOURS[hours.lower()]) if hours else span


_SINCE = re.compile(r"\bsince $", re.IGNORECASE)
_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")
_SHORT = re.compile(r"(?P<count>\d{1,3}) ?(?P<unit>[hdwmy])")
_SHORT_UNITS = {"h": "hour", "d": "day", "w": "week", "m": "month", "y": "year"}


def parse_span(value: str, now: datetime) -> Span | None:
    """The span of a date (2026, 2026-03, 2026-03-05), an instant (ISO 8601), a time word or 7d; None for others."""
    value = value.strip()
    if match := _DATE.fullmatch(value):
        year, month, day = (int(part) if part else 1 for part in match.groups())
        year = min(max(year, 2), 9998)
        whole = day_of if match[3] else month_of if match[2] else year_of
        try:
            return whole(now.replace(year=year, month=month, day=day))
        except (ValueError, OverflowError):
            return None
    if match := _SHORT.fullmatch(value.lower()):
        span_of = _SPANS[_SHORT_UNITS[match["unit"]]]
        return _read(lambda at, found: Span(span_of(at, int(found["count"])).start, at), now, match)
    word = find_time(value, now)
    if word and (word.begin, word.end) == (0, len(value)):
        return word.span
    try:
        moment = reckonable(datetime.fromisoformat(value))
    except (ValueError, OverflowError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)
    return Span(moment, moment)
