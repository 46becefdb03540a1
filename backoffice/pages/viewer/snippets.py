"""Snippets of a text around the words searched for. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

BEFORE = 60
WIDTH = 200


class Part(NamedTuple):
    """A part of a snippet; `is_hit`: it is one of the words."""

    text: str
    is_hit: bool


def snippet(text: str, words: Sequence[str]) -> list[Part]:
    """Return one line of the text from shortly before the first of the words, with all words marked."""
    pattern = re.compile("|".join(re.escape(word) for word in _longest_first(words)) or "(?!)", re.IGNORECASE)
    first = pattern.search(text)
    start = max(first.start() - BEFORE, 0) if first else 0
    line = " ".join(text[start : start + WIDTH].split())
    shown = f"{'…' if start else ''}{line}{'…' if start + WIDTH < len(text) else ''}"
    return [Part(part, pattern.fullmatch(part) is not None) for part in _split(pattern, shown)]


def _longest_first(words: Sequence[str]) -> list[str]:
    return sorted(filter(None, words), key=len, reverse=True)


def _split(pattern: re.Pattern[str], text: str) -> Iterable[str]:
    return filter(None, re.split(f"({pattern.pattern})", text, flags=re.IGNORECASE))
