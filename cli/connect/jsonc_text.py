"""Parse JSON with comments and trailing commas, and locate each value in the text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_ATOM = re.compile(r"[^\s,:\[\]{}\"/]+")


Path = tuple[str | int, ...]
"""From the document to a value: keys of objects, indexes of arrays."""


@dataclass(slots=True)
class Value:
    """A value and its position in the text; for an object or array also its entries."""

    start: int
    end: int
    data: Any
    entries: list[JsonEntry] = field(default_factory=list)

    def entry(self, key: str | int) -> JsonEntry | None:
        """Return the member of that key (of several the last, which counts), or the item of that index."""
        if isinstance(key, int):
            return self.entries[key] if isinstance(self.data, list) and key < len(self.entries) else None
        return next((entry for entry in reversed(self.entries) if entry.key == key), None)


@dataclass(slots=True)
class JsonEntry:
    """A member of an object, or an item of an array (then without a key). `start` is that of the key."""

    key: str | None
    start: int
    value: Value
    comma: int | None = None
    """The position of the comma after it."""


def parse(text: str) -> Value:
    """Parse the document; ValueError says where it is broken."""
    value = _value(text, skip(text, 0), 0)
    end = skip(text, value.end)
    if end < len(text):
        raise _broken(text, end)
    return value


def find(text: str, path: Path) -> Value | None:
    if not text[skip(text, 0) :]:
        return None
    value = parse(text)
    for key in path:
        entry = value.entry(key)
        if entry is None:
            return None
        value = entry.value
    return value


def skip(text: str, place: int) -> int:
    """Return the position after white space and comments."""
    found = _BLANK.match(text, place)
    return found.end() if found else place


def _value(text: str, start: int, depth: int) -> Value:
    opening = text[start : start + 1]
    if depth > 100:
        raise _broken(text, start)
    if opening == "{":
        return _container(text, start, "}", _member, depth)
    if opening == "[":
        return _container(text, start, "]", _item, depth)
    if opening == '"':
        data, end = _string(text, start)
        return Value(start, end, data)
    atom = _ATOM.match(text, start)
    if not atom:
        raise _broken(text, start)
    try:
        return Value(start, atom.end(), json.loads(atom[0]))
    except ValueError as exc:
        raise _broken(text, start) from exc


def _container(text: str, start: int, closing: str, read: Callable[[str, int, int], JsonEntry], depth: int) -> Value:
    entries: list[JsonEntry] = []
    place = skip(text, start + 1)
    while text[place : place + 1] != closing:
        if entries and entries[-1].comma is None:
            raise _broken(text, place)
        entry = read(text, place, depth + 1)
        entries.append(entry)
        place = skip(text, entry.value.end)
        if text[place : place + 1] == ",":
            entry.comma = place
            place = skip(text, place + 1)
    if closing == "]":
        return Value(start, place + 1, [entry.value.data for entry in entries], entries)
    members = {entry.key or "": entry.value.data for entry in entries}
    return Value(start, place + 1, members, entries)


def _member(text: str, place: int, depth: int) -> JsonEntry:
    key, end = _string(text, place)
    colon = skip(text, end)
    if text[colon : colon + 1] != ":":
        raise _broken(text, colon)
    return JsonEntry(key, place, _value(text, skip(text, colon + 1), depth))


def _item(text: str, place: int, depth: int) -> JsonEntry:
    return JsonEntry(None, place, _value(text, place, depth))


def _string(text: str, start: int) -> tuple[str, int]:
    if text[start : start + 1] != '"':
        raise _broken(text, start)
    try:
        data, end = scanstring(text, start + 1, False)
    except ValueError as exc:
        raise _broken(text, start) from exc
    return data, end


def _broken(text: str, place: int) -> ValueError:
    line = text.count("\n", 0, place) + 1
    return ValueError(f"line {line}: this is no JSON: {text[place : place + 20]!r}")
