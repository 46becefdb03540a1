"""The reader of a page: language and time zone.

English and Korean are a table of texts keyed by the English ones. No gettext: two languages, one of them without
plurals. Days and times in filters are in the reader's time zone, which the browser sends as a cookie (`app.js`). The
API uses UTC. Without scripts the pages use UTC, too, and say so.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo

from fastapi import Request

from orchestrator.operations import labels
from registry.domain import format_time, parse_time
from registry.text.times.time_words import parse_span

DEFAULT = "en"
LANGUAGES = (DEFAULT, "ko")
FOLDER = Path(__file__).parent.parent / "translations"
SENTENCES_FILE = "said.json"  # translations of the errors and reasons that other packages write
_FAULT = re.compile(r"; (?=[^;:]+: (?:given|missing))")
_FIELD = re.compile(r"\{(\w+)\}")
_NESTED_FIELDS = ("allowed", "sentence")  # fields of a sentence that contain sentences

Translate = Callable[..., str]


def language_of(request: Request) -> str:
    """Return the language chosen by the reader (cookie `lang`), else the browser's."""
    chosen = request.cookies.get("lang")
    return chosen if chosen in LANGUAGES else _preferred_language(request.headers.get("accept-language", ""))


def _preferred_language(header: str) -> str:
    ranges = sorted((_weighted(part) for part in header.split(",")), key=lambda wish: -wish[1])
    known = (tag for tag, weight in ranges if tag in LANGUAGES and weight > 0)
    return next(known, DEFAULT)


def _weighted(part: str) -> tuple[str, float]:
    """Parse `ko-KR;q=0.8` into ("ko", 0.8)."""
    tag, _, weight = part.partition(";q=")
    try:
        return tag.strip().lower().partition("-")[0], float(weight or 1)
    except ValueError:
        return tag, 0.0


@cache
def texts(language: str) -> Mapping[str, str]:
    """Return the texts of a language, keyed by the English ones; none for English."""
    if language == DEFAULT:
        return {}
    files = sorted((FOLDER / language).glob("*.json"))
    texts = {key: text for file in files for key, text in json.loads(file.read_text(encoding="utf-8")).items()}
    return dict(labels().values()) | texts


def translator(language: str) -> Translate:
    """Return `t`: `t("{name} was deleted", name=…)` translates a text and fills in its fields."""
    known = texts(language)

    def translate(text: str, **fields: Any) -> str:
        return known.get(text, text).format(**fields) if fields else known.get(text, text)

    return translate


def sentence_translator(language: str) -> Callable[[str], str]:
    """Return a function that translates sentences of other packages, such as "No channel 'x' in the registry".

    Records and errors are in English, with their values filled in; an unknown sentence stays as it is.
    """

    def translate(text: str) -> str:
        # Only the faults of a request are a list: other sentences may quote such words.
        return "; ".join(map(_translate_one, _FAULT.split(text) if _FAULT.match(f"; {text}") else [text]))

    def _translate_one(text: str) -> str:
        matches = ((pattern.fullmatch(text), words) for pattern, words in _sentences(language))
        return next((words.format(**_facts(match)) for match, words in matches if match), text)

    def _facts(match: re.Match[str]) -> dict[str, str]:
        return {name: translate(fact) if name in _NESTED_FIELDS else fact for name, fact in match.groupdict().items()}

    return translate


@cache
def _sentences(language: str) -> list[tuple[re.Pattern[str], str]]:
    """Return sentences as patterns with their translations, those with the most literal text first."""
    file = FOLDER / language / SENTENCES_FILE
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    in_order = sorted(known, key=lambda sentence: -len(_FIELD.sub("", sentence)))
    return [(_pattern(sentence), known[sentence]) for sentence in in_order]


def _pattern(sentence: str) -> re.Pattern[str]:
    parts = _FIELD.split(sentence)  # words, field, words, field, …
    fields = (f"(?P<{part}>.+?)" if i % 2 else re.escape(part) for i, part in enumerate(parts))
    return re.compile("".join(fields), re.DOTALL)


def counter(translate: Translate) -> Callable[[str, str, int], str]:
    """Return `tn`: `tn("{n} message", "{n} messages", count)` translates a count."""

    def count(one: str, many: str, n: int) -> str:
        return translate(one if n == 1 and translate(many) == many else many, n=f"{n:,}")

    return count


COOKIE = "zone"
ZoneState = Literal["sent", "unsent", "unknown"]


def zone_state(request: Request) -> ZoneState:
    """Return whether the browser has sent its time zone; `unknown`: one without time zone data."""
    if not request.cookies.get(COOKIE):
        return "unsent"
    return "sent" if _zone_of(request) else "unknown"


def as_instant(request: Request, name: str, given: str) -> str:
    """Convert a filter's `from` or `to` to an instant; return anything else unchanged, to be refused."""
    span = parse_span(given, reader_now(request)) if given else None
    moment = span and (span.end if name == "to" else span.start)
    return format_time(moment) if moment else given


def as_local(request: Request, given: str) -> str:
    """Convert an instant to the reader's local time, as a date or time field takes it."""
    try:
        moment = parse_time(given).astimezone(_zone_of(request) or UTC)
    except (ValueError, OverflowError):
        return ""
    return moment.isoformat(timespec="minutes")[:16]


def reader_now(request: Request) -> datetime:
    return datetime.now(_zone_of(request) or UTC)


def midnight(request: Request) -> datetime:
    return reader_now(request).replace(hour=0, minute=0, second=0, microsecond=0)


def utc_offset_minutes(request: Request) -> int:
    offset = reader_now(request).utcoffset() or timedelta()
    return int(offset.total_seconds() // 60)


def _zone_of(request: Request) -> ZoneInfo | None:
    try:
        return ZoneInfo(request.cookies[COOKIE])
    except (KeyError, ValueError, OSError):  # no cookie, not a zone's name, or no time zone data
        return None


def day_of(request: Request, instant: str) -> str:
    return parse_time(instant).astimezone(reader_now(request).tzinfo).date().isoformat()


def day_names(request: Request) -> dict[str, str]:
    """Return the dates of today and yesterday with their names."""
    today = reader_now(request).date()
    return {today.isoformat(): "today", (today - timedelta(days=1)).isoformat(): "yesterday"}


def age(instant: str, *, now: datetime, language: str) -> str:
    """Return how long ago an instant was, in a few characters: `5m`, `3h`, `2d`, then the date."""
    moment = parse_time(instant).astimezone(now.tzinfo)
    minutes = max(int((now - moment).total_seconds() // 60), 0)
    if not minutes:
        return {"en": "now", "ko": "방금"}[language]
    units = {"en": ("{}m", "{}h", "{}d"), "ko": ("{}분", "{}시간", "{}일")}[language]
    for unit, size, most in zip(units, (1, 60, 1440), (60, 1440, 10_080), strict=True):
        if minutes < most:
            return unit.format(minutes // size)
    if language == "ko":
        return f"{moment.month}월 {moment.day}일" if moment.year == now.year else f"{moment:%Y.%m}"
    return f"{moment:%b} {moment.day}" if moment.year == now.year else f"{moment:%b %Y}"
