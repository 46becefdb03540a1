"""Resolve time expressions to spans: "last Tuesday", "3 days ago", "mid July", "지난주", "작년 봄". Pure.

Days are in the UTC offset of `now`; weeks begin on Monday; both ends of a span are included. A date without a year is
the latest such date that is not in the future.
"""

import re
import tomllib
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import lru_cache
from importlib.resources import files
from typing import Any

from registry.text.times.spans import (
    SPANS,
    TICK,
    Span,
    between,
    day_of,
    midnight,
    month_of,
    months_of,
    week_of,
    weekend_of,
)

WORDS: dict[str, Any] = tomllib.loads(files(__package__).joinpath("words.toml").read_text(encoding="utf-8"))
MARGIN = timedelta(days=3)  # added on each side of an approximate day
Match = re.Match[str]
Resolver = Callable[[datetime, Match], Span]


def _latest(now: datetime, year: int | None, span_in: Callable[[int], Span]) -> Span:
    """Return the span in the given year, or the latest one that has begun."""
    if year is not None:
        return span_in(year)
    this_year = span_in(now.year)
    return this_year if this_year.start and this_year.start <= now else span_in(now.year - 1)


def _year(now: datetime, match: Match) -> int | None:
    named = match.groupdict()
    if year := named.get("year"):
        return int(year) + (2000 if len(year) == 2 else 0)
    if year_word := named.get("said"):
        return now.year - int(WORDS["years_back"][year_word.lower().replace("지난 해", "지난해")])
    return None


def _month(match: Match) -> int:
    named = match["month"].lower()
    return int(named) if named.isdigit() else 1 + [month[:3] for month in WORDS["months"]].index(named[:3])


def _third(whole: Span, part: str | None) -> Span:
    """Return the beginning, middle or end of a month or a year."""
    if not part or whole.start is None or whole.end is None:
        return whole
    third = WORDS["parts"][part.strip().lower()]
    if (whole.end - whole.start).days > 31:
        first, count = ((1, 3), (5, 4), (10, 3))[third]
        return months_of(whole.start.year, first, count, whole.start)
    begin, end = ((1, 10), (10, 20), (20, 31))[third]
    return Span(whole.start + timedelta(days=begin - 1), min(whole.end, whole.start + timedelta(days=end) - TICK))


def _on_day(now: datetime, match: Match) -> Span:
    month, day = _month(match), int(match["day"])
    return _latest(now, _year(now, match), lambda year: day_of(now.replace(year=year, month=month, day=day)))


def _week_of_day(now: datetime, match: Match) -> Span:
    """Resolve "the week of November 9"."""
    return week_of(_on_day(now, match).start or now)


def _days(now: datetime, match: Match) -> Span:
    """Resolve days of one month: "3 to 7 November", 11월 3일부터 7일까지."""
    start, day, last_day = _on_day(now, match).start, int(match["day"]), int(match["last_day"])
    if last_day < day:
        raise ValueError("not a range")
    return Span(start, day_of((start or now).replace(day=last_day)).end)


def _in_month(now: datetime, match: Match) -> Span:
    month, named = _month(match), match.groupdict()
    whole = _latest(now, _year(now, match), lambda year: months_of(year, month, 1, now))
    if named.get("which") in ("last", "past") and whole.end and whole.end > now:  # the span must be over
        return months_of(now.year - 1, month, 1, now)
    return _third(whole, named.get("part"))


def _in_year(now: datetime, match: Match) -> Span:
    return _third(months_of(_year(now, match) or now.year, 1, 12, now), match.groupdict().get("part"))


def _iso(now: datetime, match: Match) -> Span:
    at = now.replace(year=int(match["year"]), month=int(match["month"]), day=int(match["day"] or 1))
    return day_of(at) if match["day"] else month_of(at)


def _feast(now: datetime, match: Match) -> Span:
    """Resolve a feast; "last Christmas" is the latest one, with three days on each side."""
    month, day = WORDS["feasts"][match["feast"].lower().replace("’", "'").removesuffix(" day")]
    found = _latest(now, _year(now, match), lambda year: day_of(now.replace(year=year, month=month, day=day)))
    return with_margin(found) if match.groupdict().get("which") else found


def with_margin(span: Span) -> Span:
    """Return a span with some days added on each side."""
    return Span(*(at and at + step for at, step in zip(span, (-MARGIN, MARGIN), strict=True)))


def _season(now: datetime, match: Match) -> Span:
    """Return three months: of the given year, the latest ones that are over ("last summer"), or that began."""
    first, year = WORDS["seasons"][match["season"].lower()], _year(now, match)
    if year is not None:
        return months_of(year, first, 3, now)
    found = _latest(now, None, lambda year: months_of(year, first, 3, now))
    is_over = found.end is not None and found.end < now
    is_last = bool(WORDS["back"][match.groupdict().get("which", "this").lower()])
    return months_of(now.year - 1, first, 3, now) if is_last and not is_over else found


def _day_of_month(now: datetime, match: Match) -> Span:
    """Return the latest such day of a month: "on the 12th", 12일에."""
    for back in range(3):
        month = month_of(now, back)
        if month.start and month.end and month.start + timedelta(days=int(match["day"]) - 1) <= min(now, month.end):
            return day_of(month.start + timedelta(days=int(match["day"]) - 1))
    raise ValueError("no such day")


def _count(match: Match) -> tuple[str, int, int]:
    """Return (unit, largest count, smallest count)."""
    named = match.groupdict()
    unit = named.get("unit") or "day"
    unit = WORDS["units"].get(unit, unit.lower())
    if some := named.get("some"):
        return unit, *WORDS["some"][some.lower()]
    if days := named.get("days"):
        return "day", WORDS["korean_days"][days], WORDS["korean_days"][days]
    if named.get("count"):
        count_word = named["count"].lower()
        count = int(count_word) if count_word.isdigit() else WORDS["counts"][count_word]
        return unit, count, count
    return unit, 6, 2  # 며칠


def _ago(now: datetime, match: Match) -> Span:
    unit, most, least = _count(match)
    if unit == "week" and most == least and most > 1:  # two weeks ago may be twelve days
        week = week_of(now, most)
        ends = week.end, day_of(now, 7 * most - 4).end
        return Span(min(filter(None, (week.start, day_of(now, 7 * most + 2).start))), max(filter(None, ends)))
    span = Span(SPANS[unit](now, most).start, SPANS[unit](now, least).end)
    return with_margin(span) if unit == "day" and least >= 7 else span


def _half_year_ago(now: datetime, _: Match) -> Span:
    return Span(month_of(now, 7).start, month_of(now, 5).end)


def _last_units(now: datetime, match: Match) -> Span:
    """Resolve "the last 3 days", which end now."""
    unit, most, _ = _count(match)
    return Span(SPANS[unit](now, most).start, now)


def _relative_unit(now: datetime, match: Match) -> Span:
    """Resolve "last week", "early this year", 지난달 초."""
    unit = WORDS["units"].get(match["unit"], match["unit"].lower())
    return _third(SPANS[unit](now, WORDS["back"][match["which"].lower()]), match.groupdict().get("part"))


def _before_last(now: datetime, match: Match) -> Span:
    return SPANS[match["unit"].lower()](now, 2)


def _weekday(now: datetime, match: Match) -> Span:
    """Resolve "last Tuesday" (before today), "Tuesday" (may be today) and "Tuesday last week" (counted in weeks)."""
    named, names = match.groupdict(), WORDS["weekdays"]
    wanted = next(at for at, day in enumerate(names) if day.startswith(match["day"].lower()[:3]))
    if week := named.get("week"):
        return day_of(now, now.weekday() + 7 * WORDS["back"][week.lower()] - wanted)
    ago = (now.weekday() - wanted) % 7
    return day_of(now, ago or (7 if named.get("which") else 0))


def _korean_weekday(now: datetime, match: Match) -> Span:
    named, wanted = match.groupdict(), WORDS["korean_weekdays"].index(match["day"])
    back = WORDS["back"][named["which"]] if "which" in named else 0
    if named.get("week"):
        return day_of(now, now.weekday() + 7 * back - wanted)
    ago = (now.weekday() - wanted) % 7
    return day_of(now, ago + 7 * (back - 1 if back and ago else back))


def _latest_weekend(now: datetime, _: Match) -> Span:
    return weekend_of(now, 0 if now.weekday() > 4 else 1)


_ASKS_CURRENT_STATE = re.compile(r"^\s*(?:what|which|who|where|how)\b|(?:\S+\s+){3}today\W*$", re.IGNORECASE)
_MENTIONS_CONVERSATION = re.compile(
    r"\b(?:we|i|you|did|was|were|from|earlier|sessions?|chats?|conversations?)\b", re.IGNORECASE
)


@lru_cache(maxsize=1)  # a text may say "today" a thousand times
def _asks_current_state(text: str) -> bool:
    return bool(_ASKS_CURRENT_STATE.search(text)) and not _MENTIONS_CONVERSATION.search(text)


def _today(now: datetime, match: Match) -> Span:
    """Resolve "today", but not in "which tool makes the PDFs today?", which asks for the current state."""
    if _asks_current_state(match.string):
        raise ValueError("not the time of the conversation")
    return day_of(now)


def hours_of(days: Span, part: str) -> Span:
    """Return the named part of a day, or from that of the first day to that of the last; a night continues after
    midnight."""
    if not (days.start and days.end):
        return days
    first, last = WORDS["hours"][part.lower()]
    return between(days.start + timedelta(hours=first), midnight(days.end) + timedelta(hours=last))


def _day(back: int, part: str = "") -> Resolver:
    return lambda now, _: hours_of(day_of(now, back), part) if part else day_of(now, back)


def _named_day(now: datetime, match: Match) -> Span:
    return day_of(now, WORDS["days_back"][match["named"]])


def _days_ago(now: datetime, _: Match) -> Span:
    """Return the last three days before today: 엊그제 is a few days ago."""
    return Span(day_of(now, 3).start, day_of(now, 1).end)


def alternatives(names: Iterable[str]) -> str:
    """Return a pattern for any of these words; longer ones are tried first."""
    return "|".join(sorted(names, key=len, reverse=True))


def english(kind: str) -> str:
    """Return a pattern for any of the English words of a kind."""
    return alternatives(word.replace("'", "['’]") for word in WORDS[kind] if word.isascii())


def korean(kind: str) -> str:
    """Return a pattern for any of the Korean words of a kind."""
    return alternatives(word for word in WORDS[kind] if not word.isascii())


# not inside an identifier, a path, an address or a longer word
_BEFORE, _AFTER = r"(?<![\w./@#-])", r"(?![\w/@-]|\.\w)"
_CLOCK = r"(?:,? (?:at|around|about) (?:\d{1,2}(?::[0-5]\d)? ?[ap]\.?m\.?|noon))?"  # ignored: the day is enough
_ENGLISH_END = rf"(?:,? (?:(?:in the|at) )?(?P<hours>{english('hours')}))?{_CLOCK}(?:['’]s)?{_AFTER}"
_KOREAN_END = (
    rf"(?: ?(?P<hours>{korean('hours')}))?(?: ?\d{{1,2}}시(?: ?반| ?\d{{1,2}}분)?)?(?: ?(?:{korean('nearly')}))?"
    rf"(?:에|의|은|는|도|엔|부터|에는|에도|까지|까지는| ?이후(?:로|에)?| ?이전(?:에)?)?{_AFTER}"
)
_ENDS = {"en": _ENGLISH_END, "ko": _KOREAN_END}
_MONTH = rf"(?P<month>{alternatives({*WORDS['months'], *(month[:3] for month in WORDS['months']), 'sept'})})\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_LAST_DAY = r"(?P<last_day>\d{1,2})(?:st|nd|rd|th)?"
_BETWEEN, _TO = "(?:from |between )?(?:the )?", " ?(?:[-–~]|and|to|until|through) ?(?:the )?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_COMMA_YEAR = rf"(?:,? {_YEAR}| (?:of )?(?P<said>{english('years_back')}))?"
_PART = f"(?P<part>{english('parts')})"
_KOREAN_PART = f"(?: ?(?P<part>{korean('parts')}))?"
_FEAST = f"(?P<feast>(?:{english('feasts')})(?: day)?)"
_SAID_YEAR = f"(?P<said>{korean('years_back').replace('지난해', '지난 ?해')})"
_KOREAN_YEAR = rf"(?:(?P<year>(?:19|20)?\d\d) ?년|{_SAID_YEAR})"
_KOREAN_MONTH = rf"(?:{_KOREAN_YEAR} ?)?(?P<month>1[0-2]|[1-9])월"
_DAYS = "|".join(WORDS["weekdays"])
_SHORT_DAYS = rf"{_DAYS}|mon|tues?|weds?|thu(?:rs?)?|fri"
_WEEKDAY, _SHORT_WEEKDAY = f"(?P<day>{_DAYS})", f"(?P<day>{_SHORT_DAYS})"
_ON, _IN = (
    rf"(?:on |from |since |of )?(?:(?:{_SHORT_DAYS}),? )?(?:the )?",
    r"(?:in|during|from|since|of|back in|until|till|before|after|between) ",
)
_SEASON = f"(?P<season>{english('seasons')})"
_COUNT = rf"(?:(?P<count>\d{{1,3}}|{english('counts')})|(?P<some>{english('some')}))"
_UNIT = "(?P<unit>minute|hour|day|week|month|year)s?"
_KOREAN_COUNT = (
    rf"(?:(?:(?P<count>\d{{1,3}}|{korean('counts')})|(?P<some>{korean('some')})) ?(?P<unit>{korean('units')})"
    rf"|(?P<days>{korean('korean_days')})|며칠)"
)
_HOW_LONG_BEFORE = r"(?:몇 ?\S+|며칠) ?전(?:까지|이[지야었]|[ ?]*$)"  # asks for a number and is no time
_KOREAN_WEEKDAY = rf"(?P<day>[{WORDS['korean_weekdays']}])요일"
_WHICH = f"(?P<which>{korean('back')})"
_DURING = "(?:(?:in|over|within|during|from|for) )?"
BOUNDED = "|".join(map(english, ("from_then", "up_to", "earlier", "nearly")))

# times of conversations: pattern, resolver, language of the endings that may follow
_RULES: tuple[tuple[str, Resolver, str], ...] = (
    (r"(?:the )?day before yesterday", _day(2), "en"),
    (r"(?:since )?yesterday", _day(1), "en"),
    (r"(?:earlier |from )?today", _today, "en"),
    (r"(?:earlier )?this(?= (?:morning|afternoon|evening))", _day(0), "en"),
    (r"last night", _day(1, "night"), "en"),
    (rf"(?:(?:about|around|roughly|some|a) )?{_COUNT} {_UNIT} (?:ago|back)", _ago, "en"),
    (r"(?:about |around )?half a year (?:ago|back)", _half_year_ago, "en"),
    (rf"{_DURING}(?:the )?(?:last|past) {_COUNT} {_UNIT}", _last_units, "en"),
    (r"(?:in |during )?(?:the )?(?P<unit>week|weekend|month|year) before last", _before_last, "en"),
    (rf"(?:(?:around|at|in|from|over|on|earlier) )?(?:the )?(?:{_PART} (?:the )?)?(?P<which>this|last|previous|past) "
     r"(?P<unit>week|month|year|weekend)(?! of\b)", _relative_unit, "en"),
    (rf"(?:on )?(?:the )?{_WEEKDAY}(?: of)? (?P<week>last|this) week", _weekday, "en"),
    (rf"(?P<week>last) week['’]?s? {_WEEKDAY}", _weekday, "en"),
    (rf"(?:on )?(?P<which>last) {_SHORT_WEEKDAY}", _weekday, "en"),
    (rf"(?:on |this |since ){_SHORT_WEEKDAY}", _weekday, "en"),
    (rf"{_WHICH} ?(?P<week>주 ?)?{_KOREAN_WEEKDAY}", _korean_weekday, "ko"),
    (rf"{_WHICH} ?(?:주 ?)?(?P<unit>주말)", _relative_unit, "ko"),
    (rf"{_WHICH} ?(?P<unit>주|달){_KOREAN_PART}", _relative_unit, "ko"),
    (f"(?P<named>{korean('days_back')})", _named_day, "ko"),
    (r"엊그(?:제|저께)", _days_ago, "ko"),
    (r"(?:어젯밤|간밤|지난밤)", _day(1, "밤"), "ko"),
    (rf"(?!(?<=. ){_HOW_LONG_BEFORE})(?:(?:약|대략|한) )?{_KOREAN_COUNT}(?: ?(?:쯤|정도))? ?전", _ago, "ko"),
    (r"반 ?년(?: ?(?:쯤|정도))? ?전", _half_year_ago, "ko"),
    (rf"(?:최근|지난|요) ?{_KOREAN_COUNT}(?: ?(?:동안|간|사이))?", _last_units, "ko"),
    (_SAID_YEAR + _KOREAN_PART, _in_year, "ko"),
)  # fmt: skip
# dates that may be the subject: a time of the conversation only if the request mentions a conversation
_DATE_RULES: tuple[tuple[str, Resolver, str], ...] = (
    (rf"(?:{_KOREAN_YEAR}|{_WHICH}) ?(?P<season>{korean('seasons')})", _season, "ko"),
    (rf"(?P<season>{korean('seasons')})(?=에|엔)", _season, "ko"),
    (rf"(?:in |over |during )?(?P<which>this|last|past) {_SEASON}", _season, "en"),
    (rf"(?:in|during) (?:the )?{_SEASON}(?=\s*(?:[,.?!]|$))", _season, "en"),
    (rf"(?:in |from |back in )?(?:the )?{_SEASON} (?:of )?{_YEAR}", _season, "en"),
    (rf"(?P<bound>(?:until|till|before|after|between) )?{_WEEKDAY}(?(bound)|(?= (?:morning|afternoon|evening|night)\b"
     r"|['’]s (?:chat|session|conversation|discussion|talk|work|meeting)|,? (?:we|i|you)\b))", _weekday, "en"),
    (rf"(?<!다음 주 )(?<!다음주 )(?<!담주 ){_KOREAN_WEEKDAY}", _korean_weekday, "ko"),
    (r"(?:over|at|on|during) the weekend", _latest_weekend, "en"),
    (r"주말", _latest_weekend, "ko"),
    (rf"(?:in |during )?(?:the )?week of {_MONTH} {_DAY}{_COMMA_YEAR}", _week_of_day, "en"),
    (rf"{_BETWEEN}{_MONTH} {_DAY}{_TO}{_LAST_DAY}{_COMMA_YEAR}", _days, "en"),
    (rf"{_BETWEEN}{_DAY}{_TO}{_LAST_DAY} (?:of )?{_MONTH}{_COMMA_YEAR}", _days, "en"),
    (rf"{_ON}{_MONTH} {_DAY}{_COMMA_YEAR}", _on_day, "en"),
    (rf"{_ON}{_DAY} (?:of )?{_MONTH}{_COMMA_YEAR}", _on_day, "en"),
    (rf"(?:around |in |at |from |of )?(?:the )?{_PART} ?{_MONTH}{_COMMA_YEAR}", _in_month, "en"),
    (rf"(?:around |in |at |from |of |back in )?(?:the )?{_PART} ?{_YEAR}", _in_year, "en"),
    (rf"{_IN}{_MONTH}{_COMMA_YEAR}", _in_month, "en"),
    (rf"{_MONTH} {_YEAR}", _in_month, "en"),
    (rf"{_IN}{_YEAR}", _in_year, "en"),
    (rf"(?:in )?(?:the )?(?P<which>last|this|past) {_MONTH}", _in_month, "en"),
    (rf"(?<!\d )(?P<month>{alternatives(m for m in WORDS['months'] if m not in ('march', 'may'))})"
     r"(?=\s*[.?!]*$|,? (?:we|i|you)\b)", _in_month, "en"),
    (r"(?:on|since|until|from|before|after|around) the (?P<day>\d{1,2})(?:st|nd|rd|th)"
     r"(?=\s*(?:[,.?!]|$|(?:we|i|you|about|with|in|when)\b))", _day_of_month, "en"),
    (rf"{_ON}(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)(?:-(?P<day>\d\d))?", _iso, "en"),
    (rf"{_YEAR}[./](?P<month>\d{{1,2}})[./](?P<day>\d{{1,2}})", _on_day, "ko"),
    (rf"(?:on |at |over )?(?:(?P<which>last|this past) )?{_FEAST}(?: {_YEAR})?", _feast, "en"),
    (f"(?:(?P<which>지난) ?)?(?P<feast>{korean('feasts')})", _feast, "ko"),
    (rf"{_KOREAN_MONTH} ?(?P<day>\d{{1,2}})일?(?: ?[-–~] ?|부터 ?)(?P<last_day>\d{{1,2}})일(?: ?사이)?",
     _days, "ko"),
    (rf"{_KOREAN_MONTH} ?(?P<day>\d{{1,2}})일(?:날)?", _on_day, "ko"),
    (rf"{_KOREAN_MONTH}(?! ?\d{{1,2}} ?일){_KOREAN_PART}(?:달)?", _in_month, "ko"),
    (rf"{_YEAR} ?년(?:도)?{_KOREAN_PART}", _in_year, "ko"),
    (r"(?P<day>\d{1,2})일(?=에(?! ?한 ?번)|날)(?:날)?", _day_of_month, "ko"),
)  # fmt: skip


@lru_cache(1)
def patterns() -> tuple[tuple[re.Pattern[str], Resolver, bool], ...]:
    """Return (pattern, resolver, is a date) of every rule. Compiled at first use, because it takes a while."""
    return tuple(
        (re.compile(_BEFORE + pattern + _ENDS[language], re.IGNORECASE), read, is_date)
        for rules, is_date in ((_RULES, False), (_DATE_RULES, True))
        for pattern, read, language in rules
    )
