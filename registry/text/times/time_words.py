"""Parse the times in a request ("last Tuesday", "3 days ago", "since Monday", "지난주") as spans. Pure.

Days are in the UTC offset of `now`; weeks begin on Monday; both ends of a span are included.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from registry.domain import clamp_year
from registry.text.times.named_times import BOUNDED, WORDS, Resolver, hours_of, korean, patterns, with_margin
from registry.text.times.spans import SPANS, TICK, Span, day_of, month_of, year_of


class TimeExpression(NamedTuple):
    """A span and its words, `text[begin:end]`. `is_date`: an explicit date or the bare name of a day, which may be the
    subject of a request and not the time of the conversation."""

    span: Span
    begin: int
    end: int
    is_date: bool = False


def find_times(text: str, now: datetime) -> list[TimeExpression]:
    """Return the time expressions of a text in order; the longest one if several begin at the same position."""
    every: list[TimeExpression] = []
    for pattern, resolver, is_date in patterns():
        for match in pattern.finditer(text):
            if (span := _resolve(resolver, now, match)) is not None:
                # A part of a month or year is almost always the time of the conversation, not its subject.
                may_be_subject = is_date and not match.groupdict().get("part")
                word = TimeExpression(span, match.start(), match.end(), may_be_subject)
                every.append(word if "last_day" in match.groupdict() else _apply_bound(text, word, now))
    found: list[TimeExpression] = []
    for word in sorted(every, key=lambda one: (one.begin, -one.end)):
        if not found or word.begin >= found[-1].end:
            found.append(word)
    return _join_ranges(text, found)


_TO = re.compile(r" ?(?:[-–~]|and|to|until|through)(?: the)? ?")


def _join_ranges(text: str, found: Sequence[TimeExpression]) -> list[TimeExpression]:
    """Make one span of two times: "from November 3 to yesterday", 지난주 월요일부터 어제까지."""
    joined: list[TimeExpression] = []
    for word in found:
        first = joined[-1] if joined else None
        if first and first.span.start and word.span.end and first.span.start <= word.span.end:
            between = text[first.end : word.begin]
            if _TO.fullmatch(between) or (not between.strip() and word.span.start is None):
                word = TimeExpression(
                    Span(first.span.start, word.span.end), first.begin, word.end, first.is_date and word.is_date
                )
                joined.pop()
        joined.append(word)
    return joined


_BOUND = re.compile(rf"(?:^|\s)(?P<word>{BOUNDED}) (?:the )?$", re.IGNORECASE)
_EARLIER = re.compile(r"(?<![시에은는도엔]) ?전(?:에|까지)?(?!\w)")  # 크리스마스 전에, but not 어제 오후 3시 전에
_NEARLY = re.compile(f"(?:{korean('nearly')})(?:에|의|은|는)?$")


def _apply_bound(text: str, word: TimeExpression, now: datetime) -> TimeExpression:
    """Apply the word before or after a time: "since Monday" (어제부터) lasts until now, "until Monday" (어제까지)
    includes it, "before Monday" does not, "around Monday" (월요일쯤) adds some days on each side."""
    expression = text[word.begin : word.end].lower()
    before = _BOUND.search(text[: word.begin])
    named = before["word"].lower() if before else expression.split(" ", 1)[0]
    begin = before.start("word") if before else word.begin
    start, end = word.span

    def has_kind(kind: str) -> bool:
        return named in WORDS[kind] or expression.endswith(tuple(one for one in WORDS[kind] if not one.isascii()))

    if has_kind("from_then") and start:
        return word._replace(span=Span(end + TICK if named == "after" and end else start, max(now, start)), begin=begin)
    if has_kind("up_to"):
        return word._replace(span=Span(None, end), begin=begin)
    follows = _EARLIER.match(text, word.end)
    if (follows or has_kind("earlier")) and start:
        return word._replace(span=Span(None, start - TICK), begin=begin, end=follows.end() if follows else word.end)
    is_approximate = named in WORDS["nearly"] or bool(_NEARLY.search(expression))
    if is_approximate and start and end and timedelta(hours=23) < end - start < timedelta(days=1):
        return word._replace(span=with_margin(word.span), begin=begin)
    return word


def _resolve(read: Resolver, now: datetime, match: re.Match[str]) -> Span | None:
    try:
        span = read(now, match)
    except OverflowError:  # before the year 1
        return Span(None, now)
    except ValueError:  # there is no 31 February
        return None
    hours = match.groupdict().get("hours")
    if not hours:
        return span
    part = hours_of(span, hours)
    is_to_come = part.start is not None and part.start > now  # after midnight, "this morning" is that of the day before
    return Span(*(at and at - timedelta(days=1) for at in part)) if is_to_come else part


_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")
_SHORT = re.compile(r"(?P<count>\d{1,3}) ?(?P<unit>[hdwmy])")
MAX_CHARS = 200  # of a time in words: longer values take too long to parse, and are none
_SHORT_UNITS = {"h": "hour", "d": "day", "w": "week", "m": "month", "y": "year"}


def parse_span(value: str, now: datetime) -> Span | None:
    """Parse a date (2026, 2026-03, 2026-03-05), an ISO 8601 instant, a time expression or 7d; None for others."""
    value = value.strip()
    if len(value) > MAX_CHARS:
        return None
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
        return _resolve(lambda at, found: Span(span_of(at, int(found["count"])).start, at), now, match)
    for words in (value, f"on {value}", f"in {value}", f"{value} ago", f"{value} 전"):
        found = find_times(words, now)
        if found and (found[0].begin, found[0].end) == (0, len(words)):
            return found[0].span
    try:
        moment = clamp_year(datetime.fromisoformat(value))
    except (ValueError, OverflowError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)
    return Span(moment, moment)
