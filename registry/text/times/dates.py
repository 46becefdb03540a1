"""Dates named outright: "October 3, 2023", "in January", "3월 5일", "작년 12월 초", "10/3", "New Year's Day". Pure.

Days are those of the offset that `now` carries. A date without a year is the latest such date that is not to come.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta

from registry.text.times.spans import TICK, Span, day_of, month_of, week_of, year_of
from registry.text.times.vocabulary import WORDS, one_of

_MONTH = rf"(?P<month>{one_of(WORDS['months'])})\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_FEAST = one_of(WORDS["feasts"])
_PART = r"(?P<part>early|beginning of|start of|mid|mid-|middle of|late|end of)"
_KOREAN_YEAR = r"(?:(?P<year>(?:19|20)?\d\d) ?년|(?P<said>작년|지난해|재작년|올해|금년))"
_KOREAN_PART = r"(?: ?(?P<part>초순?|중순|하순|말))?"
_CENTURY = 2000
AROUND = timedelta(days=3)  # to each side of a day that is only about right
Reading = Callable[[datetime, re.Match[str]], Span]


def _latest(now: datetime, year: int | None, span_in: Callable[[int], Span]) -> Span:
    """The span in the year named, else the latest one that has begun."""
    if year is not None:
        return span_in(year)
    this_year = span_in(now.year)
    return this_year if this_year.start and this_year.start <= now else span_in(now.year - 1)


def _year_named(now: datetime, match: re.Match[str]) -> int | None:
    named = match.groupdict()
    if named.get("year"):
        return int(named["year"]) + (_CENTURY if len(named["year"]) == 2 else 0)
    if named.get("said"):
        return now.year - int(WORDS["years_back"][named["said"]])
    return None


def _month_number(match: re.Match[str]) -> int:
    named = match["month"].lower()
    return int(named) if named.isdigit() else WORDS["months"][named]


def _on_day(now: datetime, match: re.Match[str]) -> Span:
    month, day = _month_number(match), int(match["day"])
    return _latest(now, _year_named(now, match), lambda year: day_of(now.replace(year=year, month=month, day=day)))


def _in_month(now: datetime, match: re.Match[str]) -> Span:
    month = _month_number(match)
    whole = _latest(now, _year_named(now, match), lambda year: month_of(now.replace(year=year, month=month, day=1)))
    part = match.groupdict().get("part")
    if not part:
        return whole
    return _third(whole, WORDS["parts"][part.lower()])


def _third(month: Span, third: int) -> Span:
    """Return the first, the middle or the last ten days of a month."""
    if month.start is None or month.end is None:
        return month
    first, last = ((1, 10), (10, 20), (20, 31))[third]
    return Span(month.start + timedelta(days=first - 1), min(month.end, month.start + timedelta(days=last) - TICK))


def _in_year(now: datetime, match: re.Match[str]) -> Span:
    """A year; its beginning, middle or end are three months or four of it."""
    whole = year_of(now.replace(year=_year_named(now, match) or now.year, month=1, day=1))
    part = match.groupdict().get("part")
    if not part:
        return whole
    first, count = ((1, 3), (5, 4), (10, 3))[WORDS["parts"][part.lower()]]
    return months_from(_year_named(now, match) or now.year, first, now, count)


def months_from(year: int, first: int, now: datetime, count: int = 3) -> Span:
    """Return so many months from that one on."""
    last = first + count - 2
    end = now.replace(year=year + last // 12, month=last % 12 + 1, day=1)
    return Span(month_of(now.replace(year=year, month=first, day=1)).start, month_of(end).end)


def _season_of(now: datetime, match: re.Match[str]) -> Span:
    return months_from(_year_named(now, match) or now.year, WORDS["seasons"][match["season"].lower()], now)


def _quarter_of(now: datetime, match: re.Match[str]) -> Span:
    return _latest(now, _year_named(now, match), lambda year: months_from(year, 3 * int(match["quarter"]) - 2, now))


def _part_of_this(now: datetime, match: re.Match[str]) -> Span:
    """ "월초에", "at the end of the year": of the latest month or year in which that has begun."""
    part = match["part"].lower()
    third = WORDS["parts"][part]
    if match["whole"].lower() in ("연", "year"):
        return _latest(now, None, lambda year: months_from(year, (1, 5, 10)[third], now))
    month = month_of(now) if (1, 10, 20)[third] <= now.day else month_of(now, 1)
    return _third(month, third)


def _iso(now: datetime, match: re.Match[str]) -> Span:
    year, month, day = int(match["year"]), int(match["month"]), match["day"]
    at = now.replace(year=year, month=month, day=int(day or 1))
    return day_of(at) if day else month_of(at)


def _feast(now: datetime, match: re.Match[str]) -> Span:
    """A feast is spoken of for some days: "last Christmas" is the latest one, three days to each side."""
    month, day = WORDS["feasts"][match["feast"].lower()]
    if match.groupdict().get("which"):
        named = _latest(now, None, lambda year: day_of(now.replace(year=year, month=month, day=day)))
        return Span(*(at and at + step for at, step in zip(named, (-AROUND, AROUND), strict=True)))
    return _latest(now, _year_named(now, match), lambda year: day_of(now.replace(year=year, month=month, day=day)))


def _in_month_named(now: datetime, match: re.Match[str]) -> Span:
    """ "last October": the latest one that is over."""
    found = _in_month(now, match)
    if match["which"].lower() != "this" and found.end and found.end > now and found.start:
        return month_of(found.start.replace(year=found.start.year - 1))
    return found


def _on_the(now: datetime, match: re.Match[str]) -> Span:
    """The latest such day of a month: "on the 12th", 12일에."""
    for back in range(3):
        first = month_of(now, back).start
        if first and (day := int(match["day"])) <= _days_of(first):
            found = day_of(first + timedelta(days=day - 1))
            if found.start and found.start <= now:
                return found
    raise ValueError("no such day")


def _days_of(first: datetime) -> int:
    whole = month_of(first)
    return whole.end.day if whole.end else 0


def _week_number(now: datetime, match: re.Match[str]) -> Span:
    """A week by its number, Monday to Sunday."""

    def of(year: int) -> Span:
        monday = datetime.fromisocalendar(year, int(match["week"]), 1)
        return week_of(now.replace(year=monday.year, month=monday.month, day=monday.day))

    return _latest(now, _year_named(now, match), of)


_WEEK = rf"(?P<week>{one_of(WORDS['weeks_of_month'])})"


def _week_of_month(now: datetime, match: re.Match[str]) -> Span:
    """Counted from the first day or from the first Monday: two days to each side belong to it, too."""
    whole, week = _in_month(now, match), WORDS["weeks_of_month"][match["week"].lower()]
    if whole.start is None or whole.end is None:
        return whole
    start = min(whole.start + timedelta(days=7 * week - 9), whole.end - timedelta(days=9))
    return Span(max(whole.start, start), min(whole.end, start + timedelta(days=11) - TICK))


def _week_with(now: datetime, match: re.Match[str]) -> Span:
    day = _on_day(now, match).start
    return week_of(day) if day else Span(None, None)


_SAID_BEHIND = r"(?=\s*(?:[,.?!]|$|(?:we|i|you|about|with|in|when)\b))"
_SEASON_NAMES = "spring|summer|fall|autumn|winter"
_ON, _IN = r"(?:on |from |since |of )?(?:the )?", r"(?:in|during|from|since|of|back in|until|till|before|after) "
_SPOKE = "(?:에|에는|날)? ?(?:우리|한 |했|하던|나눈|얘기|이야기|대화|논의|물어|작업|세션|채팅)"
"""Words after 11.12 that make it a day, not a version or section."""
_ALONE = "january|february|april|june|july|august|september|october|november|december"
"""Months by whose name alone nothing else is meant."""
DATE_RULES: tuple[tuple[str, Reading, str], ...] = (
    (rf"(?:in |during )?(?:the )?{_WEEK} week (?:of|in) {_MONTH}(?:,? {_YEAR})?", _week_of_month, "en"),
    (rf"(?:in |during )?(?:the )?week of {_MONTH} {_DAY}(?:,? {_YEAR})?", _week_with, "en"),
    (rf"(?:{_KOREAN_YEAR} ?)?(?P<month>1[0-2]|[1-9])월 ?{_WEEK} ?주", _week_of_month, "ko"),
    (rf"{_ON}{_MONTH} {_DAY}(?:,? {_YEAR})?", _on_day, "en"),
    (rf"{_ON}{_DAY} (?:of )?{_MONTH}(?:,? {_YEAR})?", _on_day, "en"),
    (rf"(?:around |in |at |from |of )?(?:the )?{_PART} ?{_MONTH}(?:,? {_YEAR})?", _in_month, "en"),
    (rf"(?:around |in |at |from |of |back in )?(?:the )?{_PART} ?{_YEAR}", _in_year, "en"),
    (rf"(?:in |from |back in )?(?:the )?(?P<season>{_SEASON_NAMES}) (?:of )?{_YEAR}", _season_of, "en"),
    (rf"{_KOREAN_YEAR} ?(?P<season>봄|여름|가을|겨울)", _season_of, "ko"),
    (rf"(?:in )?q(?P<quarter>[1-4])(?: (?:of )?{_YEAR})?", _quarter_of, "en"),
    (rf"(?:{_KOREAN_YEAR} ?)?(?P<quarter>[1-4]) ?분기", _quarter_of, "ko"),
    (rf"(?:around |in |at |from )?(?:the )?{_PART} the (?P<whole>month|year)", _part_of_this, "en"),
    (r"(?P<whole>연|월) ?(?P<part>초|말)", _part_of_this, "ko"),
    (rf"{_IN}{_MONTH}(?:,? {_YEAR})?", _in_month, "en"),
    (rf"{_MONTH} {_YEAR}", _in_month, "en"),
    (rf"{_IN}{_YEAR}", _in_year, "en"),
    (rf"{_ON}(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)(?:-(?P<day>\d\d))?", _iso, "en"),
    (rf"(?:in )?(?P<which>last|this|past) {_MONTH}", _in_month_named, "en"),
    (rf"(?<!\d )(?P<month>{_ALONE})(?=\s*[.?!]*$|,? (?:we|i|you)\b)", _in_month, "en"),
    (rf"(?:on|since|until|from) the (?P<day>\d{{1,2}})(?:st|nd|rd|th){_SAID_BEHIND}", _on_the, "en"),
    (r"(?:in )?(?:calendar )?week (?P<week>\d{1,2})(?: (?:of )?(?P<year>20\d\d))?", _week_number, "en"),
    (r"(?:in |during )?(?P<year>20\d\d)-?W(?P<week>\d\d)", _week_number, "en"),
    (r"(?P<year>(?:19|20)\d\d)[./](?P<month>\d{1,2})[./](?P<day>\d{1,2})", _on_day, "ko"),
    (r"(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>(?:19|20)\d\d)", _on_day, "en"),
    (r"(?:(?P<year>20\d\d)년 ?)?(?P<week>\d{1,2})주차", _week_number, "ko"),
    (r"(?P<day>\d{1,2})일(?=에(?! ?한 ?번)|날)(?:날)?", _on_the, "ko"),
    (r"(?:on |from )(?P<month>\d{1,2})/(?P<day>\d{1,2})(?:/(?P<year>(?:19|20)\d\d))?", _on_day, "en"),
    (rf"(?:on |at |over |around )?(?P<which>last|this past) (?P<feast>{_FEAST})", _feast, "en"),
    (r"(?P<which>지난) ?(?P<feast>크리스마스|성탄절)", _feast, "ko"),
    (rf"(?:on |at |over )?(?P<feast>{_FEAST})(?: {_YEAR})?", _feast, "en"),
    (rf"(?:{_KOREAN_YEAR} ?)?(?P<month>1[0-2]|[1-9])월 ?(?P<day>\d{{1,2}})일(?:날)?", _on_day, "ko"),
    (rf"(?:{_KOREAN_YEAR} ?)?(?P<month>1[0-2]|[1-9])월(?! ?\d{{1,2}} ?일){_KOREAN_PART}(?:달)?", _in_month, "ko"),
    (r"(?P<year>(?:19|20)\d\d) ?년(?:도)?(?: ?(?P<part>초|중순|말))?", _in_year, "ko"),
    (rf"(?P<month>1[0-2]|0?[1-9])[.](?P<day>\d{{1,2}})(?={_SPOKE})", _on_day, "ko"),
    (r"(?P<month>1[0-2]|[1-9])/(?P<day>\d{1,2})", _on_day, "ko"),
)  # fmt: skip
"""Pattern, how it is read, and the language whose endings may follow. A bare 10/3 needs a Korean ending."""
