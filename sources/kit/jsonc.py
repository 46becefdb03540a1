"""Read and edit JSON settings with comments and trailing commas; an edit leaves the rest of the text as it is. Pure.

Editing raises ValueError if the text is not JSON, or has a value of another type where we want to write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


def put(text: str, path: tuple[str, ...], value: Any) -> str:
    """Return the text with a value at a path of keys; missing objects are created. An empty text counts as `{}`."""
    text = text if text[skip(text, 0) :] else text + "{}"
    parent = container = parse(text)
    for depth, key in enumerate(path):
        if not isinstance(container.data, dict):
            raise ValueError(f"{'.'.join(path[:depth]) or 'the document'} is not an object")
        entry = container.entry(key)
        if entry is None:
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            return _insert(text, container, key, value)
        parent, container = container, entry.value
    if container.data == value:
        return text
    return text[: container.start] + _render(value, _Style.of_entries(text, parent)) + text[container.end :]


def append(text: str, path: tuple[str, ...], item: Any) -> str:
    """Return the text with one more item in the array at a path, which is created if missing."""
    found = find(text, path)
    if found is None:
        return put(text, path, [item])
    if not isinstance(found.data, list):
        raise ValueError(f"{'.'.join(path)} is not an array")
    return _insert(text, found, None, item)


def drop(text: str, path: Path) -> str:
    """Return the text without the value at a path, and without objects that became empty."""
    found = _entry_at(text, path)
    return _prune(_cut(text, *found), path[:-1]) if found else text


def drop_items(text: str, path: Path, is_unwanted: Callable[[Any], bool]) -> str:
    """Return the text without some items of the array at a path, and without containers that became empty."""
    while (found := find(text, path)) is not None:
        unwanted = next((entry for entry in found.entries if is_unwanted(entry.value.data)), None)
        if unwanted is None or not isinstance(found.data, list):
            break
        text = _prune(_cut(text, found, unwanted), path)
    return text


def get(text: str, path: Path) -> Any:
    found = find(text, path)
    return found.data if found else None


def settings_in(text: str) -> Any:
    """Return the settings in a text; None if there are none, or it is not JSON."""
    try:
        return get(text, ())
    except ValueError:
        return None


def is_bare(text: str) -> bool:
    """Return True if the text has no entry and no comment."""
    return re.sub("[ \t\r\n\ufeff]+", "", text) in ("", "{}")


# Changing


def _insert(text: str, container: Value, key: str | None, value: Any) -> str:
    style = _Style.of_entries(text, container)
    key_text = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
    entry = style.before + key_text + _render(value, style)
    close = container.end - 1
    if not container.entries:
        end = _end_of_content(text, container.start + 1, close)
        return text[:end] + entry + style.after + text[close:]
    last = container.entries[-1]
    end = _end_of_content(text, last.value.end, close)
    if last.comma is not None:
        return text[:end] + entry + "," + text[end:]
    return text[: last.value.end] + "," + text[last.value.end : end] + entry + text[end:]


def _cut(text: str, container: Value, entry: JsonEntry) -> str:
    """Remove an entry, one of its commas and the space before it: the inverse of `_insert`."""
    index = container.entries.index(entry)
    before = container.entries[index - 1] if index else None
    floor = container.start + 1 if before is None else before.value.end if before.comma is None else before.comma + 1
    start = _end_of_content(text, floor, entry.start)
    if entry.comma is not None:
        return _join(text[:start], text[entry.value.end : entry.comma] + text[entry.comma + 1 :])
    if before is None or before.comma is None:
        close = container.end - 1
        rest = text[entry.value.end : close]
        return _join(text[:start], (rest if rest.strip() else "") + text[close:])
    return _join(text[: before.comma] + text[before.comma + 1 : start], text[entry.value.end :])


def _join(before: str, after: str) -> str:
    """Join two parts, with a newline if the first ends in a `//` comment, which would swallow the second."""
    is_in_comment = "//" in before.rpartition("\n")[2] and not after.lstrip(" \t").startswith(("\n", "\r"))
    try:
        parse(before + after if is_in_comment else "{}")
    except ValueError:
        return f"{before}\n{after}"
    return before + after


def _prune(text: str, path: Path) -> str:
    """Remove the containers that a removal left empty, except the document itself."""
    while found := _entry_at(text, path):
        container, entry = found
        if text[entry.value.start + 1 : entry.value.end - 1].strip():
            break
        text, path = _cut(text, container, entry), path[:-1]
    return text


def _entry_at(text: str, path: Path) -> tuple[Value, JsonEntry] | None:
    """Return the entry at a path, and the object or array that contains it; None for the document itself."""
    container = find(text, path[:-1]) if path else None
    entry = container.entry(path[-1]) if container else None
    return (container, entry) if container and entry else None


def _end_of_content(text: str, start: int, end: int) -> int:
    return start + len(text[start:end].rstrip(" \t\r\n"))


@dataclass(frozen=True, slots=True)
class _Style:
    """The layout of entries: on lines of their own with an indent, or all on one line."""

    newline: str
    indent: str
    step: str
    before: str
    after: str

    @classmethod
    def of_entries(cls, text: str, container: Value) -> _Style:
        """Return the layout for a new entry of an object or array."""
        newline = "\r\n" if "\r\n" in text else "\n"
        step = _step(text)
        outer = _indent_at(text, container.start)
        inner = outer + step
        if container.entries:
            last = container.entries[-1]
            end = last.value.end if last.comma is None else last.comma + 1
            has_comment = bool(text[end : container.end - 1].strip())
            if "\n" not in text[container.start : container.end] and not has_comment:
                return cls("", "", "", " ", "")
            if "\n" in text[container.start : container.entries[0].start]:
                inner = _indent_at(text, container.entries[0].start)
        return cls(newline, inner, step, newline + inner, newline + outer)


def _step(text: str) -> str:
    found = re.search(r"[{\[][^\S\n]*\r?\n([ \t]+)", text)
    return found[1] if found and text[: found.start()].strip(" \t\r\n\ufeff") == "" else "  "


def _indent_at(text: str, pos: int) -> str:
    line = text[text.rfind("\n", 0, pos) + 1 : pos]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _render(value: Any, style: _Style) -> str:
    if not style.newline:
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=style.step).split("\n")
    return (style.newline + style.indent).join(lines)


_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALARS = json.JSONDecoder(strict=False)  # a string may contain a raw tab

Path = tuple[str | int, ...]  # from the document to a value: keys of objects, indexes of arrays


@dataclass(slots=True)
class Value:
    """A value and its position in the text; for an object or array also its entries."""

    start: int
    end: int
    data: Any
    entries: list[JsonEntry] = field(default_factory=list)

    def entry(self, key: str | int) -> JsonEntry | None:
        """Return the member with that key (the last one, if it occurs twice), or the item at that index."""
        if isinstance(key, int):
            return self.entries[key] if isinstance(self.data, list) and key < len(self.entries) else None
        return next((entry for entry in reversed(self.entries) if entry.key == key), None)


@dataclass(slots=True)
class JsonEntry:
    """A member of an object, or an item of an array (then without a key). `start` is that of the key."""

    key: str | None
    start: int
    value: Value
    comma: int | None = None  # the position of the comma after it


def parse(text: str) -> Value:
    value = _value(text, skip(text, 0), 0)
    end = skip(text, value.end)
    if end < len(text):
        raise _syntax_error(text, end)
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


def skip(text: str, pos: int) -> int:
    """Return the position after white space and comments."""
    found = _BLANK.match(text, pos)
    return found.end() if found else pos


def _value(text: str, start: int, depth: int) -> Value:
    opening = text[start : start + 1]
    if depth > 100:
        raise _syntax_error(text, start)
    if opening == "{":
        return _container(text, start, "}", depth)
    if opening == "[":
        return _container(text, start, "]", depth)
    data, end = _scalar(text, start)
    return Value(start, end, data)


def _container(text: str, start: int, closing: str, depth: int) -> Value:
    entries: list[JsonEntry] = []
    pos = skip(text, start + 1)
    while text[pos : pos + 1] != closing:
        if entries and entries[-1].comma is None:
            raise _syntax_error(text, pos)
        is_item = closing == "]"
        entry = JsonEntry(None, pos, _value(text, pos, depth + 1)) if is_item else _member(text, pos, depth + 1)
        entries.append(entry)
        pos = skip(text, entry.value.end)
        if text[pos : pos + 1] == ",":
            entry.comma = pos
            pos = skip(text, pos + 1)
    if closing == "]":
        return Value(start, pos + 1, [entry.value.data for entry in entries], entries)
    members = {entry.key or "": entry.value.data for entry in entries}
    return Value(start, pos + 1, members, entries)


def _member(text: str, pos: int, depth: int) -> JsonEntry:
    if text[pos : pos + 1] != '"':
        raise _syntax_error(text, pos)
    key, end = _scalar(text, pos)
    colon = skip(text, end)
    if text[colon : colon + 1] != ":":
        raise _syntax_error(text, colon)
    return JsonEntry(key, pos, _value(text, skip(text, colon + 1), depth))


def _scalar(text: str, start: int) -> tuple[Any, int]:
    try:
        return _SCALARS.raw_decode(text, start)
    except ValueError as exc:
        raise _syntax_error(text, start) from exc


def _syntax_error(text: str, pos: int) -> ValueError:
    line = text.count("\n", 0, pos) + 1
    return ValueError(f"line {line}: this is not JSON: {text[pos : pos + 20]!r}")
