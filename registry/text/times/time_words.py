"""Parse the time in a request ("last Tuesday", "3 days ago", "yesterday at 3pm", "지난주", 昨日) as a span. Pure.

Days are those of the offset that `now` carries; weeks begin on Monday; both ends of a span belong to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from registry.domain import reckonable
from registry.text.times.dates import AROUND
from registry.text.times.hours import HOURS, narrowed_by_clock
from registry.text.times.named_times import BARE_DATE, BOUNDED, SPANS, patterns
from registry.text.times.spans import (
    TICK,
    Span,
    day_of,
    hours_of,
    month_of,
    year_of,
)
from registry.text.times.vocabulary import WORDS


class TimeWord(NamedTuple):
    """A span and where a text names it: `text[begin:end]`. `is_date`: a date outright, or a day's bare name, which may
    be what was spoken about and not when it was said."""

    span: Span
    begin: int
    end: int
    is_date: bool = False


def find_time(text: str, now: datetime) -> TimeWord | None:
    """The first time word of a text, the longest of those that begin there; None if it has none."""
    return min(find_times(text, now), key=lambda word: (word.begin, -word.end), default=None)


def find_times(text: str, now: datetime) -> list[TimeWord]:
    """Every time word of a text, in no order; they may overlap."""
    return [*_ranges(text, now), *_single(text, now)]


def _single(text: str, now: datetime) -> list[TimeWord]:
    found = []
    for pattern, span_of, is_date in patterns():
        for match in pattern.finditer(text):
            span = _read(span_of, now, match)
            if span is not None:
                clocked = narrowed_by_clock(text, span, match.start(), match.end())
                # A part of a month or year is when something was said, and hardly ever what was spoken about.
                is_date_only = is_date and not match.groupdict().get("part")
                word = _bounded(text, TimeWord(*clocked, is_date_only), now)
                found.append(_nearly(text, word) if is_date else word)
    return found


_NEARLY_BEFORE = re.compile(r"(?:^|\s)(?:about|around|circa|sometime|언젠가) (?:the )?$", re.IGNORECASE)
_PREPOSITION = re.compile(r"(?:in|on|from|during|since|of) ", re.IGNORECASE)
_NEARLY_AFTER = re.compile(r" ?(?:쯤(?:에)?|전후(?:로|에)?|무렵(?:에)?|경에?|즈음(?:에)?)(?!\w)")


def _nearly(text: str, word: TimeWord) -> TimeWord:
    """A day that is only about right may be some days to each side: "around 15 September", 9월 15일쯤."""
    begin, end = word.begin, word.end
    if (before := _NEARLY_BEFORE.search(text[:begin])) and not _PREPOSITION.match(text, begin):
        begin = before.start() + text[before.start()].isspace()
    after = _NEARLY_AFTER.match(text, end)
    end = after.end() if after else end
    is_near = (begin, end) != (word.begin, word.end) or text[:end].endswith(("쯤", "쯤에"))
    start, last = word.span
    if is_near and start and last and last - start < timedelta(days=1):
        return word._replace(span=Span(start - AROUND, last + AROUND), begin=begin, end=end)
    return word._replace(begin=begin, end=end)


_BOUND = re.compile(rf"(?:^|\s)(?P<word>{BOUNDED}) (?:the )?$", re.IGNORECASE)


def _bounded(text: str, word: TimeWord, now: datetime) -> TimeWord:
    """ "since Monday", 어제부터: until now; "until Monday", 어제까지: with it; "before Monday": without it."""
    said = text[word.begin : word.end].lower()
    before = _BOUND.search(text[: word.begin])
    named = before["word"].lower() if before else said.split(" ", 1)[0]
    begin = before.start("word") if before else word.begin
    start, end = word.span
    if (named in tuple(WORDS["from_then"]) or said.endswith(tuple(WORDS["from_then"]))) and start:
        return word._replace(span=Span(end + TICK if named == "after" and end else start, max(now, start)), begin=begin)
    if named in tuple(WORDS["up_to"]) or said.endswith(tuple(WORDS["up_to"])):
        return word._replace(span=Span(None, end), begin=begin)
    if (named == "before" or said.endswith(tuple(WORDS["earlier"]))) and start:
        return word._replace(span=Span(None, start - TICK), begin=begin)
    return word


_BETWEEN = re.compile(r"(?<![\w./@#-])(?:between|from) (?=\S)", re.IGNORECASE)
_AND = re.compile(r" (?:and|to|until|till|through) ", re.IGNORECASE)
_FROM_TO = re.compile(r"(?P<first>\S[^,.?!]{0,20}?)부터 ?(?P<last>[^,.?!]{1,20}?)까지(?:는|의|에)?(?![\w])")
_DATE_SIDE = r"\d{1,2}/\d{1,2}|\d{1,2}월 ?\d{1,2}일|\d{4}[-./]\d{1,2}[-./]\d{1,2}"
_DATES_TO = re.compile(
    rf"(?<![\w./-])(?P<first>{_DATE_SIDE}) ?[~～〜] ?(?P<last>{_DATE_SIDE}|\d{{1,2}}일)(?:에|까지|의)?(?![\w/])"
)
_LONGEST_SIDE = 40


def _ranges(text: str, now: datetime) -> list[TimeWord]:
    """From one time to another: "between Monday and Wednesday", "from 3 to 7 November", 3일부터 7일까지, 11/3~11/7."""
    return [*_english_ranges(text, now), *_korean_ranges(text, now), *_ranges_of_dates(text, now)]


def _english_ranges(text: str, now: datetime) -> Iterator[TimeWord]:
    for begin in _BETWEEN.finditer(text):
        for link in _AND.finditer(text, begin.end(), begin.end() + _LONGEST_SIDE):
            first = text[begin.end() : link.start()]
            if not _side(first, now):
                continue
            rest = re.split(r"[?!]|[.,](?=\s|$)", text[link.end() :])[0].split(" ")
            for size in range(min(4, len(rest)), 0, -1):
                last = " ".join(rest[:size])
                span = _from_to(first, last, now)
                if span:
                    yield TimeWord(span, begin.start(), link.end() + len(last), is_date=True)
                    break


def _korean_ranges(text: str, now: datetime) -> Iterator[TimeWord]:
    for match in _FROM_TO.finditer(text):
        words = match["first"].split(" ")
        for skipped in range(len(words)):
            first = " ".join(words[skipped:])
            span = _from_to(first, match["last"], now)
            if span:
                yield TimeWord(span, match.end("first") - len(first), match.end(), is_date=True)
                break


def _ranges_of_dates(text: str, now: datetime) -> Iterator[TimeWord]:
    for match in _DATES_TO.finditer(text):
        first, last = (re.sub(rf"^{BARE_DATE}$", r"\g<0>에", match[side]) for side in ("first", "last"))
        span = _from_to(first, last, now)
        if span:
            yield TimeWord(span, match.start(), match.end(), is_date=True)


def _from_to(first: str, last: str, now: datetime) -> Span | None:
    begin = _side(first, now)
    end = _side(last, now)
    month = re.match(r"(?:.*?\d{1,2}월|[A-Za-z]+\.?) ?(?=\d)", first)
    if end is None and month and re.fullmatch(r"\d{1,2}(?:일|st|nd|rd|th)?", last):
        end = _side(month[0] + last, now)
    if not (begin and end and begin.start and end.end):
        return None
    start = begin.start if begin.start <= end.end else begin.start - timedelta(days=7)
    return Span(start, end.end) if start <= end.end else None


def _side(said: str, now: datetime) -> Span | None:
    for words in (said, f"on {said}", f"in {said}"):
        for pattern, span_of, _ in patterns():
            match = pattern.match(words)
            span = _read(span_of, now, match) if match else None
            if match and span:
                word = _bounded(words, TimeWord(*narrowed_by_clock(words, span, 0, match.end())), now)
                if word.end == len(words):
                    return word.span
    return None


def _read(span_of: Callable[[datetime, re.Match[str]], Span], now: datetime, match: re.Match[str]) -> Span | None:
    try:
        span = span_of(now, match)
    except OverflowError:  # before the year 1
        return Span(None, now)
    except ValueError:  # there is no 31 February
        return None
    hours = match.groupdict().get("hours")
    if not hours:
        return span
    part = hours_of(span, *HOURS[hours.lower()])
    is_to_come = part.start is not None and part.start > now  # past midnight, "this morning" is that of the day before
    return Span(*(at and at - timedelta(days=1) for at in part)) if is_to_come else part


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
        span_of = SPANS[_SHORT_UNITS[match["unit"]]]
        return _read(lambda at, found: Span(span_of(at, int(found["count"])).start, at), now, match)
    if span := _side(value, now) or next((one.span for one in _ranges(value, now)), None):
        return span
    try:
        moment = reckonable(datetime.fromisoformat(value))
    except (ValueError, OverflowError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)
    return Span(moment, moment)
