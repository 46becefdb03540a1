"""Access to JSON values whose shape is not known: clients change shapes without notice, so nothing raises."""

from __future__ import annotations

import json
import math
from typing import Any

Record = dict[str, Any]

DECODER = json.JSONDecoder(parse_constant=lambda _: None)  # NaN and Infinity are no JSON anywhere else


def read_json(raw: object) -> Any:
    """Parse JSON text or UTF-8 bytes; None if there is none or it is damaged."""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    if not isinstance(text, str):
        return None
    try:
        return DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def object_in(text: str) -> Record | None:
    """Return the JSON object in a text; None if there is none."""
    value = read_json(text)
    return value if isinstance(value, dict) else None


def parse_nested(value: Any) -> Any:
    """Parse JSON that is stored in a string. Text that is no JSON stays text; over 64 levels become None."""
    if not isinstance(value, str):
        return None if _too_deep(value) else value
    inner = read_json(value)
    return value if inner is None or _too_deep(inner) else inner


def compact(value: Any) -> str:
    """Return a value as JSON on one line; text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def mapping(value: object) -> Record:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def string(value: object) -> str:
    """Return the value if it is text, else an empty text."""
    return value if isinstance(value, str) else ""


def objects(value: Any) -> list[Record]:
    """Return the objects in a JSON array."""
    return [item for item in items(value) if isinstance(item, dict)]


def strings(value: Any) -> list[str]:
    """Return the strings in a JSON array that are not empty."""
    return [item for item in items(value) if item and isinstance(item, str)]


def number(value: Any) -> float | None:
    """Return the value if it is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def value_at(value: Any, *path: str) -> Any:
    """Return the value at a path of object fields, or None."""
    for name in path:
        value = mapping(value).get(name)
    return value


def text_at(value: Any, *path: str) -> str:
    """Return the text at a path of object fields, or an empty text."""
    return string(value_at(value, *path))


def first_text(holder: object, *names: str) -> str:
    """Return the first field that holds a text; an empty text if none does."""
    return next((text for name in names if (text := text_at(holder, name))), "")


def _too_deep(value: Any) -> bool:
    level, depth = [value] if isinstance(value, dict | list) else [], 0
    while level and depth <= 64:
        containers = (item.values() if isinstance(item, dict) else item for item in level)
        level = [inner for container in containers for inner in container if isinstance(inner, dict | list)]
        depth += 1
    return bool(level)
