"""Access to JSON values whose shape is not known: clients change shapes without notice, so nothing raises."""

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


def parse_nested(value: object) -> Any:
    """Parse JSON that is stored in a string, and return it as it can be stored. Text that is no JSON stays text."""
    inner = read_json(value)
    return storable(value if inner is None else inner)


def storable(value: object, depth: int = 20) -> Any:
    """Remove what cannot be stored as JSON: levels below `depth`, and infinite numbers."""
    if not isinstance(value, dict | list):
        return None if isinstance(value, float) and not math.isfinite(value) else value
    if depth == 0:
        return "…"
    if isinstance(value, list):
        return [storable(item, depth - 1) for item in value]
    return {key: storable(item, depth - 1) for key, item in value.items()}


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
