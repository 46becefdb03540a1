"""Time expressions of requests in Japanese: 昨日, 先週の金曜日, 3日前, 11月12日の午後. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from registry.text.times.hours import HOURS
from registry.text.times.spans import Span, day_of, hours_of, month_of, week_of, weekend_of, year_of
from registry.text.times.vocabulary import WORDS, one_of

_BACK: dict[str, dict[str, int]] = WORDS["japanese"]
_WEEKDAYS: str = WORDS["japanese_weekdays"]
_UNITS: dict[str, Callable[[datetime, int], Span]] = {"日": day_of, "週間": week_of, "か月": month_of, "年": year_of}
_DIGITS = {ord(wide): narrow for wide, narrow in zip("０１２３４５６７８９", "0123456789", strict=True)}


def _number(said: str) -> int:
    return int(said.translate(_DIGITS))


def _in_week(now: datetime, match: re.Match[str]) -> Span:
    back = _BACK["weeks_back"][match["week"]]
    if match["weekend"]:
        return weekend_of(now, back)
    if match["day"]:
        return day_of(now, now.weekday() + 7 * back - _WEEKDAYS.index(match["day"]))
    return week_of(now, back)


def _on_date(now: datetime, match: re.Match[str]) -> Span:
    """A date without a year is the latest one that is not to come."""
    month, day = _number(match["month"]), _number(match["day"]) if match["day"] else None

    def of(year: int) -> Span:
        at = now.replace(year=year, month=month, day=day or 1)
        return day_of(at) if day else month_of(at)

    if match["year"]:
        return of(_number(match["year"]))
    if match["said"]:
        return of(now.year - _BACK["years_back"][match["said"]])
    this_year = of(now.year)
    return this_year if this_year.start and this_year.start <= now else of(now.year - 1)


_N = "[0-9０-９]"
_BEFORE = r"(?<![0-9０-９A-Za-z一-鿿])"
_PART = r"(?:の?(?P<hours>朝|午前|昼|午後|夕方|夜))?"
_END = r"(?:から|まで)?(?:には|の|は|に|も)?"

Reading = Callable[[datetime, re.Match[str]], Span]
_YEAR = rf"(?:(?P<year>{_N}{{4}})年|(?P<said>{one_of(_BACK['years_back'])})の?)?"
_WITH_A_PART: tuple[tuple[str, Reading, bool], ...] = (
    (rf"(?P<said>{one_of(_BACK['days_back'])})",
     lambda now, match: day_of(now, _BACK["days_back"][match["said"]]), False),
    (rf"(?P<week>{one_of(_BACK['weeks_back'])})(?:の?(?:(?P<day>[{_WEEKDAYS}])曜日?|(?P<weekend>週末)))?",
     _in_week, False),
    (rf"(?P<said>{one_of(_BACK['months_back'])})",
     lambda now, match: month_of(now, _BACK["months_back"][match["said"]]), False),
    (rf"(?P<said>{one_of(_BACK['years_back'])})",
     lambda now, match: year_of(now, _BACK["years_back"][match["said"]]), False),
    (rf"(?P<count>{_N}{{1,3}})(?P<unit>日|週間|か月|年)前",
     lambda now, match: _UNITS[match["unit"]](now, _number(match["count"])), False),
    (rf"{_YEAR}(?P<month>{_N}{{1,2}})月(?:(?P<day>{_N}{{1,2}})日)?", _on_date, True),
)  # fmt: skip
JAPANESE_RULES: tuple[tuple[str, Reading, bool], ...] = (
    *((_BEFORE + pattern + _PART + _END, read, is_date) for pattern, read, is_date in _WITH_A_PART),
    (_BEFORE + "今朝" + _END, lambda now, _: hours_of(day_of(now), *HOURS["朝"]), False),
    (_BEFORE + "(?:昨夜|昨晩|ゆうべ)" + _END, lambda now, _: hours_of(day_of(now, 1), *HOURS["夜"]), False),
)
"""Pattern, how it is read, and whether it is a date outright. Words are not set apart, so only what cannot be the end
of a longer one begins a time."""
