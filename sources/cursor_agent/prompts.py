"""Separate the user's text from the additions of Cursor's agent. Pure."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

from registry.domain import EARLIEST, Role, parse_time

_QUERY, _QUERY_END = "<user_query>", "</user_query>"
_STAMP = re.compile(r"<timestamp>([^<]{1,100})</timestamp>\s*")
_TIME = re.compile(
    r"([A-Z][a-z]{2}) (\d{1,2}), (\d{4}),? (\d{1,2}):(\d\d)(?::(\d\d))?\s?([AP]M)?"
    r"(?: \(UTC([+-]\d{1,2})?(?::(\d\d))?\))?"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# the client's wrapper tags: all names of several words, and these of one word
_OPENING = re.compile(
    r"<((?:[a-z]+(?:_[a-z]+)+)|system-reminder|timestamp|context|rules|memories)(?: [^<>\n]{0,500})?(?<!/)>"
)
_WRAPPER = re.compile(rf"{_OPENING.pattern}.*?</\1>\s*", re.DOTALL)
_ATTACHED = re.compile(
    r"<(?:code_selection|file_contents?|folder_contents?|file_selection|terminal_selection|attached_file)"
    r'\s[^<>]{0,500}?path="([^"<>]{1,1000})"'
)
_FOLDER = re.compile(r"^Workspace Path:[ \t]*(\S[^\r\n]{0,1000})", re.MULTILINE)


def pieces_of(text: str) -> Iterator[tuple[Role, str]]:
    """Yield the context (system) and the prompt (user) of a text, in order, without the time stamp."""
    for role, piece in _split(text.strip()):
        if text_left := (_STAMP.sub("", piece) if role is Role.SYSTEM else piece).strip():
            yield role, text_left


def find_timestamp(text: str) -> datetime | None:
    """Parse the client's timestamp in a text, which has a time zone."""
    text = text.strip()
    typed_from = text.find(_QUERY)
    stamp = _STAMP.search(text, 0, typed_from if typed_from >= 0 else _end_of_leading_wrappers(text))
    found = _TIME.search(stamp[1]) if stamp else None
    if found is None:
        return None
    month, day, year, hour, minute, second, half, hours, minutes = found.groups()
    try:
        offset = timedelta(hours=int(hours or 0), minutes=int(f"{(hours or '+')[0]}{minutes or 0}"))
        zone = timezone(offset) if offset else UTC
        at = int(hour) % 12 + (12 if half == "PM" else 0) if half else int(hour)
        month_number = _MONTHS.index(month) + 1
        noted = parse_time(datetime(int(year), month_number, int(day), at, int(minute), int(second or 0), tzinfo=zone))
    except (ValueError, OverflowError):
        return None
    return noted if noted >= EARLIEST else None


def attachments_of(context: str) -> list[str]:
    return list(dict.fromkeys(_ATTACHED.findall(context)))


def folder_of(context: str) -> str:
    named = _FOLDER.search(context)
    return named[1].strip() if named else ""


def _split(text: str) -> Iterator[tuple[Role, str]]:
    begin = text.find(_QUERY)
    if begin >= 0:
        end = text.rfind(_QUERY_END)
        end = end if end > begin else len(text)
        yield Role.SYSTEM, text[:begin]
        yield Role.USER, text[begin + len(_QUERY) : end]
        yield Role.SYSTEM, text[end + len(_QUERY_END) :]
        return
    begin, end = _end_of_leading_wrappers(text), len(text)
    end = _start_of_trailing_wrappers(text, begin)
    yield Role.SYSTEM, text[:begin]
    yield Role.USER, text[begin:end]
    yield Role.SYSTEM, text[end:]


def _end_of_leading_wrappers(text: str) -> int:
    at = 0
    while wrapper := _WRAPPER.match(text, at):
        at = wrapper.end()
    return len(text) if _OPENING.match(text, at) else at  # one that is never closed


def _start_of_trailing_wrappers(text: str, begin: int) -> int:
    start = end = begin
    for wrapper in _WRAPPER.finditer(text, begin):
        start = wrapper.start() if wrapper.start() > end else start
        end = wrapper.end()
    return start if begin < end == len(text) else len(text)
