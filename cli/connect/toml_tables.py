"""Add and remove our table in a TOML file, and leave the rest of its text as it is. Pure.

Raises ValueError if the text is not TOML, or if the table is written so that it cannot be changed alone.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

_HEADER = re.compile(r"\s*\[")


def put_table(text: str, path: Sequence[str], table: Mapping[str, Any]) -> str:
    """Return the text with a table of strings, booleans, lists and inline tables of strings at a path of two names."""
    if _value_at(_parse(text), path) == table:
        return text
    newline = "\r\n" if "\r\n" in text else "\n"
    rest = drop_table(text, path)
    block = newline.join([f"[{'.'.join(map(_key, path))}]", *map(_line, table.items()), ""])
    return _check_rest_unchanged(rest, rest + (newline if rest else "") + block, path)


def drop_table(text: str, path: Sequence[str]) -> str:
    """Return the text without the table at a path, and without its subtables."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    start = next((number for number, line in enumerate(lines) if _is_ours(line, path)), None)
    if start is None:
        return _check_rest_unchanged(text, text, path)
    foreign = (n for n in range(start + 1, len(lines)) if _HEADER.match(lines[n]) and not _is_ours(lines[n], path))
    end = next(foreign, len(lines))
    while end > start + 1 and lines[end - 1].lstrip().startswith(("#", "\n", "\r\n")):
        end -= 1  # a comment before the next table belongs to that
    if start and (end == len(lines) or not lines[start - 1].strip()):  # the newline that `put_table` added
        lines[start - 1] = lines[start - 1].removesuffix("\n").removesuffix("\r")
    return _check_rest_unchanged(text, drop_table("".join(lines[:start] + lines[end:]), path), path)


def _is_ours(line: str, path: Sequence[str]) -> bool:
    try:
        header = tomllib.loads(line) if _HEADER.match(line) else {}
    except tomllib.TOMLDecodeError:
        return False
    return _value_at(header, path) is not None


def _check_rest_unchanged(before: str, after: str, path: Sequence[str]) -> str:
    """Return the new text; ValueError unless everything but our table is the same in both."""
    if _without(_parse(before), path) != _without(_parse(after), path) or (
        before == after and _value_at(_parse(after), path) is not None
    ):
        raise ValueError(f"{'.'.join(path)} is not written as a table of its own")
    return after


def _parse(text: str) -> dict[str, Any]:
    return tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))


def _value_at(document: Mapping[str, Any], path: Sequence[str]) -> Any:
    found: Any = document
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _without(document: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return the document without our table, and without an outer table that holds nothing else."""
    outer, name = path
    inner = document.pop(outer, {})
    rest = {key: value for key, value in inner.items() if key != name} if isinstance(inner, dict) else inner
    return document | ({outer: rest} if rest else {})


def _line(member: tuple[str, Any]) -> str:
    key, value = member
    return f"{_key(key)} = {_toml_value(value)}"


def _toml_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(map(_line, value.items())) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)
