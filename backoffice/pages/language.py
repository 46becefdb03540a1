"""The pages in English and Korean: a table of texts keyed by the English ones.

No gettext: two languages, one of them without plurals; times become the reader's own in the browser.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import Request

DEFAULT = "en"
LANGUAGES = (DEFAULT, "ko")
FOLDER = Path(__file__).parent.parent / "translations"
SAID = "said.json"
"""The sentences that other parts of the program make: errors, and the reasons in records."""
_FAULT = re.compile(r"; (?=[^;:]+: (?:given|missing))")
_FIELD = re.compile(r"\{(\w+)\}")

Translate = Callable[..., str]


def language_of(request: Request) -> str:
    """The language the reader has chosen (cookie `lang`), else the browser's."""
    chosen = request.cookies.get("lang")
    return chosen if chosen in LANGUAGES else _preferred(request.headers.get("accept-language", ""))


def _preferred(header: str) -> str:
    ranges = sorted((_weighted(part) for part in header.split(",")), key=lambda wish: -wish[1])
    known = (tag for tag, weight in ranges if tag in LANGUAGES and weight > 0)
    return next(known, DEFAULT)


def _weighted(part: str) -> tuple[str, float]:
    """`ko-KR;q=0.8` as ("ko", 0.8)."""
    tag, _, weight = part.partition(";q=")
    try:
        return tag.strip().lower().partition("-")[0], float(weight or 1)
    except ValueError:
        return tag, 0.0


@cache
def texts(language: str) -> Mapping[str, str]:
    """The texts of a language by the English ones; English needs none."""
    files = sorted((FOLDER / language).glob("*.json"))
    return {key: text for file in files for key, text in json.loads(file.read_text(encoding="utf-8")).items()}


def translator(language: str) -> Translate:
    """`t("{name} was deleted", name=…)`: a text in that language, its fields filled in."""
    known = texts(language)

    def translate(text: str, **fields: Any) -> str:
        return known.get(text, text).format(**fields) if fields else known.get(text, text)

    return translate


def teller(language: str) -> Callable[[str], str]:
    """`said("No channel 'x' in the registry")`: what others have put into words, in that language.

    Records and errors are in English, with their facts filled in; a sentence nobody knows stays as it is.
    """

    def said(text: str) -> str:
        matches = ((pattern.fullmatch(text), words) for pattern, words in _sentences(language))
        return next((words.format(**_whole(match.groupdict())) for match, words in matches if match), text)

    def _whole(facts: dict[str, str]) -> dict[str, str]:
        # What is allowed is in words again, and another fault may follow.
        allowed = facts.get("allowed")
        return facts if allowed is None else {**facts, "allowed": "; ".join(map(said, _FAULT.split(allowed)))}

    return said


@cache
def _sentences(language: str) -> list[tuple[re.Pattern[str], str]]:
    """Each sentence as a pattern of its fields, and its translation; those with most words of their own first."""
    file = FOLDER / language / SAID
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    in_order = sorted(known, key=lambda sentence: -len(_FIELD.sub("", sentence)))
    return [(_pattern(sentence), known[sentence]) for sentence in in_order]


def _pattern(sentence: str) -> re.Pattern[str]:
    parts = _FIELD.split(sentence)  # words, field, words, field, …
    fields = (f"(?P<{part}>.+?)" if i % 2 else re.escape(part) for i, part in enumerate(parts))
    return re.compile("".join(fields), re.DOTALL)


def counter(translate: Translate) -> Callable[[str, str, int], str]:
    """`tn("{n} message", "{n} messages", count)`; a language without plurals translates the second."""

    def count(one: str, many: str, n: int) -> str:
        return translate(one if n == 1 and translate(many) == many else many, n=f"{n:,}")

    return count
