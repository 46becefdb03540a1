"""JSON values out of a client's database, whose shape nobody promised: every access answers, nothing raises."""

from __future__ import annotations

import json
import math
from typing import Any

from sources.kit.jsonl import items, mapping

_DEEPEST = 64


def read_json(raw: object) -> Any:
    """The value stored as JSON text or UTF-8 bytes; None if there is none or it is damaged."""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    if not isinstance(text, str):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def unfolded(value: Any) -> Any:
    """The value behind JSON kept in a string. Text that is no JSON stays text; nesting without end is cut to None."""
    if not isinstance(value, str):
        return None if _too_deep(value) else value
    inner = read_json(value)
    return value if inner is None or _too_deep(inner) else inner


def compact(value: Any) -> str:
    """The value on one line; text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in a JSON array."""
    return [item for item in items(value) if isinstance(item, dict)]


def strings(value: Any) -> list[str]:
    """The strings in a JSON array that are not empty."""
    return [item for item in items(value) if item and isinstance(item, str)]


def number(value: Any) -> float | None:
    """The value if it is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def inside(value: Any, *path: str) -> Any:
    """What stands at a path of object fields, or None."""
    for name in path:
        value = mapping(value).get(name)
    return value


def _too_deep(value: Any) -> bool:
    level, depth = [value], 0
    while level and depth <= _DEEPEST:
        level = [inner for item in level for inner in _nested_in(item)]
        depth += 1
    return bool(level)


def _nested_in(value: Any) -> list[Any]:
    held = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [item for item in held if isinstance(item, dict | list)]
