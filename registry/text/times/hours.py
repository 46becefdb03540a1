"""Times of a day: "in the afternoon", "at 3pm", 저녁, 오후 3시, 夜. Pure."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from registry.text.times.spans import Span, hours_of, midnight
from registry.text.times.vocabulary import WORDS

HOURS: dict[str, tuple[int, int]] = WORDS["hours"]
_CLOCK = r"(?P<hour>\d{1,2})(?::[0-5]\d)? ?(?P<half>[ap]\.?m\.?)|(?P<noon>noon|midday)"
_KOREAN_CLOCK = r"(?P<o_clock>\d{1,2})시(?: ?반| ?\d{1,2}분)?(?:쯤|경|에|쯤에|경에)?"
_BEHIND = re.compile(rf",? ?(?:(?:at|around|about) )?(?:{_CLOCK})(?!\w)|,? ?{_KOREAN_CLOCK}(?!\w)", re.IGNORECASE)
_BEFORE = re.compile(
    rf"(?<!\S)(?:(?:at|around|about) (?:{_CLOCK})|in the (?P<part>morning|afternoon|evening)) (?:on )?$", re.IGNORECASE
)
_FIRST_OF_THE_DAY = 7
"""Hours before this one mean the afternoon if the half of the day is not named."""


def narrowed_by_clock(text: str, span: Span, begin: int, end: int) -> tuple[Span, int, int]:
    """A day at `text[begin:end]`, and where it is said, with the time of day that stands right beside it."""
    if span.start is None or span.end is None or span.end - span.start > timedelta(days=1):
        return span, begin, end
    if behind := _BEHIND.match(text, end):
        return _around(span, span.start, behind), begin, behind.end()
    if before := _BEFORE.search(text[:begin]):
        if before["part"]:
            return hours_of(Span(midnight(span.start), span.end), *HOURS[before["part"].lower()]), before.start(), end
        return _around(span, span.start, before), before.start(), end
    return span, begin, end


def _around(span: Span, start: datetime, match: re.Match[str]) -> Span:
    day = midnight(start)
    end = span.end or start
    inside = [hour for hour in _hours(match) if start <= day + timedelta(hours=hour) <= end]
    if not inside:
        return span
    at = day + timedelta(hours=inside[0])
    return Span(at - timedelta(hours=1), at + timedelta(hours=1))


def _hours(match: re.Match[str]) -> tuple[int, ...]:
    named = match.groupdict()
    if named["noon"]:
        return (12,)
    if named["hour"]:
        return (int(named["hour"]) % 12 + (12 if named["half"][0].lower() == "p" else 0),)
    hour = int(named["o_clock"])
    return (hour + 12, hour) if hour < _FIRST_OF_THE_DAY else (hour, hour + 12)
