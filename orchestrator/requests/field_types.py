"""Define the types of request fields: times (also in words), names, limits."""

import ast
import json
import re
import unicodedata
from contextlib import suppress
from datetime import date, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from registry.domain import now, parse_time
from registry.text.times.time_words import parse_span

_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def _instant(end: Literal["start", "end"]) -> BeforeValidator:
    """Parse a time in words (yesterday, 지난주, 7d) as its first or last instant; an end day is included."""

    def read(given: object) -> object:
        with suppress(ValueError):
            return _iso(given)
        span = parse_span(given, now().astimezone()) if isinstance(given, str) else None
        if span and (moment := getattr(span, end)):
            return moment
        raise ValueError("a time such as 2025-09-29T14:30:15Z, yesterday, last week, 7d or 지난주")

    return BeforeValidator(read, json_schema_input_type=str)


def _iso(given: object) -> object:
    """Parse an ISO 8601 time. A bare date is refused: it is a span."""
    if isinstance(given, datetime):
        return given
    if isinstance(given, str) and not _DAY.fullmatch(given.strip()):
        with suppress(ValueError):
            return parse_time(given)
    raise ValueError("an ISO 8601 time such as 2025-09-29T14:30:15.123Z")


def parse_literal(given: object) -> object:
    """Parse an object or list that was sent as text, in JSON or in Python's notation."""
    if isinstance(given, str) and given[:1] in ("{", "["):
        for parse in (json.loads, ast.literal_eval):
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                value = parse(given)
                if isinstance(value, list) or (
                    isinstance(value, dict) and all(isinstance(name, str) for name in value)
                ):
                    return value
    return given


def _check_visible(given: str) -> str:
    if not given.strip() or any(unicodedata.category(letter) == "Cc" for letter in given):
        raise ValueError("must have visible characters, and no control characters")
    return given


def _day(given: object) -> object:
    """Parse a day in words; return a date unchanged."""
    if isinstance(given, str) and not _DAY.fullmatch(given.strip()):
        today = now().astimezone()
        span = parse_span(given, today)
        if span and span.start:
            return span.start.astimezone(today.tzinfo).date()
        raise ValueError("a day such as 2026-01-31, or a word such as yesterday or 어제")
    return given


def _as_list(given: object) -> object:
    return [given] if isinstance(given, str) else given


def _non_blank_list(given: object) -> object:
    listed = _as_list(parse_literal(given))
    return [one for one in listed if one is not None and str(one).strip()] if isinstance(listed, list) else listed


Timestamp = Annotated[
    datetime,
    BeforeValidator(_iso, json_schema_input_type=str),
    AfterValidator(parse_time),
    Field(json_schema_extra={"format": "date-time"}),
]
Instant = Annotated[datetime, _instant("start"), AfterValidator(parse_time)]
EndInstant = Annotated[datetime, _instant("end"), AfterValidator(parse_time)]
ChannelName = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_check_visible)]
NameKind = Literal["session", "channel", "tag", "project", "source"]
RoleName = Literal["user", "assistant", "system", "tool", "thinking", "error"]
_ROLES_OF_MODELS = {
    **dict.fromkeys(("human", "사용자"), "user"),
    **dict.fromkeys(("ai", "model", "bot", "chatbot", "gpt", "어시스턴트"), "assistant"),
    **{"developer": "system", "function": "tool"},
}


def _role(given: object) -> object:
    """Replace the role names that models use by ours."""
    return _ROLES_OF_MODELS.get(given.lower(), given.lower()) if isinstance(given, str) else given


GivenRole = Annotated[RoleName, BeforeValidator(_role)]
Limit = Annotated[int, Field(ge=1, le=1000)]
MAX_MESSAGES = 20_000  # messages in one call: more would block other writers for too long
MAX_COUNT = 2**31 - 1  # largest count: every database can hold it
Offset = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Mode = Literal["raw", "summary", "digest"]
GivenMode = Annotated[Mode, BeforeValidator(lambda given: given.lower() if isinstance(given, str) else given)]
Order = Literal["asc", "desc"]
UtcOffset = Annotated[
    int, Field(ge=-14 * 60, le=14 * 60, description="UTC offset for words such as 'yesterday', in minutes")
]
WORDINGS = (
    "always 3-4 other wordings of the same question: synonyms, technical words, likely words of the answer, the other "
    'language; for "make login faster": ["speed up sign-in", "auth latency", "cache sessions", "로그인 속도"]'
)
"""Description of `also` for models. Of all measures it improves recall the most."""
Also = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=400)]],
    Field(max_length=8, description=WORDINGS),
    BeforeValidator(_non_blank_list),
]
Roles = Annotated[list[GivenRole], BeforeValidator(_as_list)]
SourceName = Annotated[
    str,
    StringConstraints(strip_whitespace=True, to_lower=True, min_length=1, max_length=64),
    AfterValidator(lambda given: re.sub(r"[\s_]+", "-", given)),
]
Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]
Nickname = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
Tag = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=64)]
Tags = Annotated[list[Tag], BeforeValidator(_as_list)]
Day = Annotated[date, BeforeValidator(_day)]
