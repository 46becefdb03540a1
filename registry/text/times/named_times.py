"""Time expressions and the spans they mean: "last Tuesday", "3 days ago", "지난주", "작년 봄", 昨日. Pure.

Days are those of the offset that `now` carries; weeks begin on Monday; both ends of a span belong to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import lru_cache

from registry.text.times.dates import DATE_RULES, Reading, months_from
from registry.text.times.hours import HOURS
from registry.text.times.japanese_times import JAPANESE_RULES
from registry.text.times.spans import (
    TICK,
    Span,
    day_of,
    hour_around,
    hours_of,
    joined,
    minutes_around,
    month_of,
    week_of,
    weekend_of,
    year_of,
)
from registry.text.times.vocabulary import WORDS

SPANS: dict[str, Callable[[datetime, int], Span]] = {
    "minute": minutes_around, "hour": hour_around, "day": day_of, "week": week_of, "month": month_of,
    "year": year_of, "weekend": weekend_of,
}  # fmt: skip
_MOST = 1000
AROUND = 7
"""Days added on each side of a distant time, which nobody remembers to the day."""


def _ago(now: datetime, match: re.Match[str]) -> Span:
    count, unit = _count(match["count"]), WORDS["units"][match["unit"]]
    named = SPANS[unit](now, count)
    return _about_weeks_ago(now, count, named) if unit == "week" and count > 1 else named


def _about_weeks_ago(now: datetime, count: int, week: Span) -> Span:
    return joined(week, Span(day_of(now, 7 * count + 2).start, day_of(now, 7 * count - 4).end))


def _some_ago(now: datetime, match: re.Match[str]) -> Span:
    """ "a few weeks ago": two to six of them back; a couple are one to three."""
    span_of = SPANS[WORDS["units"][match["unit"]]]
    most, least = (3, 1) if match.groupdict().get("some", "").startswith("couple") else (6, 2)
    return Span(span_of(now, most).start, span_of(now, least).end)


def _half_a_year_ago(now: datetime, _: re.Match[str]) -> Span:
    return Span(month_of(now, 7).start, month_of(now, 5).end)


def _yesterday_or_before(now: datetime, _: re.Match[str]) -> Span:
    return Span(day_of(now, 2).start, day_of(now, 1).end)


def _season(now: datetime, match: re.Match[str]) -> Span:
    """Three months: of the year that is named; of "last summer" the latest that is over, of "this" one the one that is,
    else that of this year."""
    which = match["which"].lower().replace(" ", "")
    first = WORDS["seasons"][match["season"].lower()]
    if which in WORDS["years_back"]:
        return months_from(now.year - WORDS["years_back"][which], first, now)
    years = [months_from(now.year - back, first, now) for back in range(3)]
    if which in ("this", "이번"):
        return next((one for one in years if one.start and one.end and one.start <= now <= one.end), years[0])
    return next(one for one in years if one.end and one.end < now)


def _quarter(now: datetime, match: re.Match[str]) -> Span:
    first = 3 * ((now.month - 1) // 3) + 1
    if match["which"].lower() in ("this", "이번"):
        return months_from(now.year, first, now)
    return months_from(now.year - (first == 1), (first - 4) % 12 + 1, now)


_OTHER = {"week": 28}
"""Days that "the other …" may reach back, if not a week."""


def _the_other(now: datetime, match: re.Match[str]) -> Span:
    """ "the other day": not today, and hardly more than a week ago."""
    return Span(day_of(now, _OTHER.get(match["unit"].lower(), 8)).start, day_of(now, 1).end)


def _this_day_then(now: datetime, match: re.Match[str]) -> Span:
    """작년 이맘때: a week to each side of this day of that year."""
    year = now.year - WORDS["years_back"][match["year"].lower().replace(" ", "")]
    then = now.replace(year=year, day=28) if (now.month, now.day) == (2, 29) else now.replace(year=year)
    return Span(day_of(then, AROUND).start, day_of(then, -AROUND).end)


def _past(now: datetime, match: re.Match[str]) -> Span:
    """ "the last 3 days": up to now."""
    return Span(SPANS[WORDS["units"][match["unit"]]](now, _count(match["count"])).start, now)


def _past_few(now: datetime, match: re.Match[str]) -> Span:
    """ "the last few days", 최근 며칠: up to now."""
    unit = WORDS["units"][match.groupdict().get("unit") or "day"]
    return Span(SPANS[unit](now, WORDS["some"][match["some"].lower()]).start, now)


def _weekday_number(match: re.Match[str]) -> int:
    names: list[str] = WORDS["weekdays"]
    return names.index(next(day for day in names if day.startswith(match["day"].lower()[:3])))


def _weekday(now: datetime, match: re.Match[str]) -> Span:
    """The latest such day before today."""
    wanted = _weekday_number(match)
    return day_of(now, (now.weekday() - wanted - 1) % 7 + 1)


def _this_weekday(now: datetime, match: re.Match[str]) -> Span:
    return day_of(now, (now.weekday() - _weekday_number(match)) % 7)


def _weekday_of_last_week(now: datetime, match: re.Match[str]) -> Span:
    return day_of(now, now.weekday() + 7 - _weekday_number(match))


def _latest_weekend(now: datetime, _: re.Match[str]) -> Span:
    return weekend_of(now, 0 if now.weekday() > 4 else 1)


def _today(now: datetime, match: re.Match[str]) -> Span:
    """ "which tool makes the PDFs today?" asks for now."""
    asks_for_now = re.match(r"\s*(?:what|which|who|where|how)\b", match.string, re.IGNORECASE)
    if asks_for_now and not re.search(r"\b(?:we|i|you|did|was|were|from|earlier)\b", match.string, re.IGNORECASE):
        raise ValueError("not when it was said")
    return day_of(now)


def _korean_weekday(now: datetime, match: re.Match[str]) -> Span:
    wanted, which = WORDS["korean_weekdays"].index(match["day"]), match["which"]
    if match["week"]:
        return day_of(now, now.weekday() + 7 * WORDS["back"][which] - wanted)
    latest = (now.weekday() - wanted) % 7 or (0 if which == "이번" else 7)
    return day_of(now, latest + 7 * max(WORDS["back"][which] - 1, 0))


def _bare_korean_weekday(now: datetime, match: re.Match[str]) -> Span:
    return day_of(now, (now.weekday() - WORDS["korean_weekdays"].index(match["day"])) % 7)


def _count(word: str) -> int:
    return min(int(word), _MOST) if word.isdigit() else int(WORDS["counts"][word.lower()])


def _named(unit: str, back: int) -> Callable[[datetime, re.Match[str]], Span]:
    return lambda now, _: SPANS[unit](now, back)


# Neither inside an identifier, a path or an address nor inside a longer word.
_BEFORE, _AFTER = r"(?<![\w./@#-])", r"(?![\w/@-]|\.\w)"
_ENGLISH_PART = r"(?:,? (?:(?:in the|at) )?(?P<hours>morning|afternoon|evening|night))?"
_ENGLISH_END = rf"{_ENGLISH_PART}(?:['’]s)?{_AFTER}"
_KOREAN_PART = r"(?: ?(?P<hours>아침|오전|점심|낮|오후|저녁|밤|새벽))?"
_KOREAN_END = (
    rf"{_KOREAN_PART}(?:에|의|은|는|도|부터|에는|에도|쯤|쯤에|까지|까지는| ?이후(?:로|에)?| ?이전(?:에)?)?{_AFTER}"
)
_NUMBER = r"(?P<count>\d{1,3}|an?|one|two|three|four|five|six|seven)"
_ABOUT = "(?:(?:about|around|roughly|some) )?"
_KOREAN_ABOUT, _KOREAN_NEARLY = "(?:(?:약|대략|한) )?", "(?: ?(?:쯤|정도))?"
_KOREAN_COUNT = r"(?P<count>\d{1,3}|한|두|세|네|다섯) ?(?P<unit>분|시간|일|주일|주|달|개월|년)"
_UNIT = "(?P<unit>minute|hour|day|week|month|year)s?"
_DAYS = "|".join(WORDS["weekdays"])
_SHORT_DAYS = rf"{_DAYS}|mon|tues?|weds?|thu(?:rs?)?|fri"
BOUNDED = "since|until|till|before|after"

_RULES: tuple[tuple[str, Callable[[datetime, re.Match[str]], Span]], ...] = (
    (rf"(?:the )?day before yesterday{_ENGLISH_END}", _named("day", 2)),
    (rf"(?:just )?the other (?P<unit>day|week|night|morning|evening){_AFTER}", _the_other),
    (rf"(?:since )?yesterday{_ENGLISH_END}", _named("day", 1)),
    (rf"(?:earlier |from )?today{_ENGLISH_END}", _today),
    (rf"(?:earlier )?this (?P<hours>morning|afternoon|evening){_AFTER}", _named("day", 0)),
    (rf"last night{_AFTER}", lambda now, _: hours_of(day_of(now, 1), *HOURS["night"])),
    (rf"{_ABOUT}{_NUMBER} {_UNIT} (?:ago|back){_AFTER}", _ago),
    (rf"{_ABOUT}a fortnight ago{_AFTER}", lambda now, _: _about_weeks_ago(now, 2, week_of(now, 2))),
    (rf"(?:a )?(?P<some>few|couple of|several|some) {_UNIT} (?:ago|back){_AFTER}", _some_ago),
    (rf"{_ABOUT}half a year ago{_AFTER}", _half_a_year_ago),
    (rf"반년{_KOREAN_NEARLY} ?전{_KOREAN_END}", _half_a_year_ago),
    (rf"yesterday (?:or|and) (?:the )?day before(?: (?:that|yesterday))?{_AFTER}", _yesterday_or_before),
    (rf"어제(?:나|랑|하고|와) ?(?:그저께|그제|엊그제){_KOREAN_END}", _yesterday_or_before),
    (rf"(?:in |over |during )?(?P<which>this|last|previous|past) quarter{_AFTER}", _quarter),
    (rf"(?P<which>지난|저번|이번) ?분기{_KOREAN_END}", _quarter),
    (rf"(?:(?:in|over|within|during|from|for) )?(?:the )?(?:last|past) {_NUMBER} {_UNIT}{_AFTER}", _past),
    (rf"(?:(?:in|over|within|during|from|for) )?(?:the )?(?:last|past) (?P<some>few|several|couple)(?: of)? {_UNIT}"
     rf"{_AFTER}", _past_few),
    (rf"(?:in |during )?(?:the )?(?P<unit>week|weekend|month|year) before last{_ENGLISH_END}",
     lambda now, match: SPANS[match["unit"].lower()](now, 2)),
    (rf"(?:over |on |earlier )?(?:the )?(?P<which>this|last|previous|past) (?P<unit>week|month|year|weekend)"
     rf"{_ENGLISH_END}", lambda now, match: SPANS[match["unit"].lower()](now, _weeks_back(now, match))),
    (rf"(?:(?:around|at|in|from) )?(?:the )?(?P<part>early|beginning of|start of|mid|middle of|late|end of) (?:the )?"
     rf"(?P<which>this|last|previous) (?P<unit>week|month|year){_AFTER}",
     lambda now, match: _part_of(SPANS[match["unit"].lower()](now, _weeks_back(now, match)), match["part"])),
    (rf"(?:on )?(?:the )?(?P<day>{_DAYS})(?: of)? last week{_ENGLISH_END}", _weekday_of_last_week),
    (rf"(?:on )?(?P<day>{_DAYS})(?: of)? this week{_ENGLISH_END}", _this_weekday),
    (rf"last week['’]?s? (?P<day>{_DAYS}){_ENGLISH_END}", _weekday_of_last_week),
    (rf"(?:on )?last (?P<day>{_SHORT_DAYS}){_ENGLISH_END}", _weekday),
    (rf"(?:on |this )(?P<day>{_SHORT_DAYS}){_ENGLISH_END}", _this_weekday),
    (rf"since (?P<day>{_SHORT_DAYS}){_ENGLISH_END}", _this_weekday),
    (rf"(?P<which>지지난|저저번|지난|저번|이번) ?(?P<week>주 ?)?(?P<day>[{WORDS['korean_weekdays']}])요일{_KOREAN_END}",
     _korean_weekday),
    (rf"(?<!다음 주 )(?<!다음주 )(?<!담주 )(?P<day>[{WORDS['korean_weekdays']}])요일{_KOREAN_END}",
     _bare_korean_weekday),
    (rf"(?P<which>지지난|저저번|지난|저번|이번|금) ?주(?P<weekend> ?주말)?{_KOREAN_END}",
     lambda now, match: (weekend_of if match["weekend"] else week_of)(now, WORDS["back"][match["which"]])),
    (rf"(?P<which>지지난|저저번|지난|저번|이번|금) ?주(?P<part> ?초반?| ?중반| ?후반| 말){_KOREAN_END}",
     lambda now, match: _part_of(week_of(now, WORDS["back"][match["which"]]), match["part"].strip())),
    (rf"(?P<which>지난|저번) ?주말{_KOREAN_END}",
     lambda now, match: weekend_of(now, 0 if now.weekday() == 6 else 1)),
    (rf"지지난 ?주말{_KOREAN_END}", _named("weekend", 2)),
    (rf"이번 ?주말{_KOREAN_END}", _named("weekend", 0)),
    (rf"(?P<which>지지난|저저번|지난|저번|이번) ?달(?: ?(?P<part>초|초순|중순|말|하순))?{_KOREAN_END}",
     lambda now, match: _part_of(month_of(now, WORDS["back"][match["which"]]), match["part"])),
    (rf"(?:그저께|그제|엊그제|엊그저께){_KOREAN_END}", _named("day", 2)),
    (rf"(?:어제|어저께|전날){_KOREAN_END}", _named("day", 1)),
    (rf"(?:어젯밤|간밤|지난밤)(?:에)?{_AFTER}", lambda now, _: hours_of(day_of(now, 1), *HOURS["밤"])),
    (rf"엊저녁(?:에)?{_AFTER}", lambda now, _: hours_of(day_of(now, 1), *HOURS["저녁"])),
    (rf"오늘{_KOREAN_END}", _named("day", 0)),
    (rf"(?P<year>작년|지난 ?해|재작년) ?(?:이맘때|이 ?때|이 ?즈음|요맘때|오늘){_KOREAN_END}", _this_day_then),
    (rf"(?:(?:around|about|at) )?(?:this time|the same time|this day) (?P<year>last year|a year ago){_AFTER}",
     _this_day_then),
    (rf"(?P<year>작년|지난 ?해|재작년|올해)(?: ?(?P<part>초|말))?{_KOREAN_END}",
     lambda now, match: _part_of_year(now, match)),
    (rf"{_KOREAN_ABOUT}{_KOREAN_COUNT}{_KOREAN_NEARLY} ?전{_KOREAN_END}", _ago),
    (rf"며칠 ?전{_KOREAN_END}", lambda now, _: Span(day_of(now, 7).start, day_of(now, 2).end)),
    (rf"몇 ?(?P<unit>주|달|개월|년) ?전{_KOREAN_END}", _some_ago),
    (rf"(?P<count>이틀|사흘|나흘|닷새|엿새|이레|여드레|아흐레|열흘|보름) ?전{_KOREAN_END}",
     lambda now, match: day_of(now, _count(match["count"]))),
    (rf"일주일 ?전{_KOREAN_END}", _named("week", 1)),
    (rf"(?:최근|지난) ?{_KOREAN_COUNT}(?: ?(?:동안|간|사이))?{_KOREAN_END}", _past),
    (rf"(?:최근|지난) ?(?:일주일|한 ?주)(?: ?(?:동안|간|사이))?{_KOREAN_END}",
     lambda now, _: Span(day_of(now, 7).start, now)),
    (rf"(?:최근|지난|요) ?(?P<some>며칠)(?: ?(?:동안|간|사이))?{_KOREAN_END}", _past_few),
)  # fmt: skip
_MAYBE_RULES: tuple[tuple[str, Callable[[datetime, re.Match[str]], Span]], ...] = (
    (rf"(?P<which>작년|지난 ?해|재작년|올해|지난|이번) ?(?P<season>봄|여름|가을|겨울){_KOREAN_END}", _season),
    (rf"(?:in |over |during )?(?P<which>this|last|past) (?P<season>spring|summer|fall|autumn|winter){_AFTER}", _season),
    (rf"(?P<day>{_DAYS}) (?P<hours>morning|afternoon|evening|night){_AFTER}", _this_weekday),
    (rf"(?P<day>{_DAYS})['’]s(?= (?:chat|session|conversation|discussion|talk|work|meeting)s?\b)", _this_weekday),
    (rf"(?P<day>{_DAYS})(?=,? (?:we|i|you)\b)", _this_weekday),
    (rf"(?:until|till|before|after) (?P<day>{_DAYS}){_AFTER}", _this_weekday),
    (rf"(?:over|at|on|during) the weekend{_AFTER}", _latest_weekend),
    (rf"주말(?:에|에는| ?동안)?{_AFTER}", _latest_weekend),
    (rf"tonight(?:['’]s)?{_AFTER}", lambda now, _: hours_of(day_of(now), *HOURS["night"])),
    (
        r"(?:아까 )?(?P<hours>아침|오전|오후|저녁|새벽)(?:에|에는)"
        r"(?= (?:우리|한 |했|하던|얘기|이야기|대화|논의|물어|나눈))",
        _named("day", 0),
    ),
    (rf"아까 (?P<hours>아침|오전|오후|저녁|새벽)(?:에|에는){_AFTER}", _named("day", 0)),
)
"""Expressions that name a time only if the request speaks of our talk then: "Monday morning standup" is a subject."""
_ENDS = {"en": _ENGLISH_END, "ko": _KOREAN_END}
BARE_DATE = r"(?P<month>1[0-2]|[1-9])/(?P<day>\d{1,2})"


def _weeks_back(now: datetime, match: re.Match[str]) -> int:
    """On a Sunday "last weekend" is over a week ago; on other days the one that was."""
    return int(WORDS["back"][match["which"].lower()])


_MONTHS_OF_PART = {"초": (1, 3), "말": (10, 12)}


def _part_of_year(now: datetime, match: re.Match[str]) -> Span:
    """The beginning or the end of a year are three months of it."""
    year = now.replace(year=now.year - WORDS["years_back"][match["year"].replace(" ", "")], month=1, day=1)
    first, last = _MONTHS_OF_PART.get(match["part"] or "", (1, 12))
    return Span(month_of(year.replace(month=first)).start, month_of(year.replace(month=last)).end)


def _part_of(whole: Span, part: str | None) -> Span:
    """The beginning, the middle or the end of a week, a month or a year."""
    if not part or whole.start is None or whole.end is None:
        return whole
    days = (whole.end - whole.start).days + 1
    lasts = {7: (0, 2, 4, 7), 365: (0, 90, 273, 366), 366: (0, 91, 274, 366)}.get(days, (0, 10, 20, 31))
    first, last = lasts[WORDS["parts"][part.lower()] :][:2]
    return Span(whole.start + timedelta(days=first), min(whole.end, whole.start + timedelta(days=last) - TICK))


def _end_of(pattern: str, language: str) -> str:
    """A bare 10/3 may be a fraction or a path: only a Korean ending makes it a date."""
    if pattern == BARE_DATE:
        return rf"(?:에|일|날)(?:에|의|은|는)?{_AFTER}"
    return _ENDS[language]


@lru_cache(1)
def patterns() -> tuple[tuple[re.Pattern[str], Reading, bool], ...]:
    """Every pattern, how it is read, and whether it is a date; made when first needed: they take a while."""
    return (
        *((re.compile(_BEFORE + pattern, re.IGNORECASE), read, False) for pattern, read in _RULES),
        *((re.compile(_BEFORE + pattern, re.IGNORECASE), read, True) for pattern, read in _MAYBE_RULES),
        *((re.compile(pattern), read, is_date) for pattern, read, is_date in JAPANESE_RULES),
        *(
            (re.compile(_BEFORE + pattern + _end_of(pattern, language), re.IGNORECASE), read, True)
            for pattern, read, language in DATE_RULES
        ),
    )
