"""Access JSON values of unknown shape without exceptions, because clients change their formats without notice."""

import json
import math
import re
from typing import Any

from registry import domain

Record = dict[str, Any]

_UNSTORABLE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


class _Decoder(json.JSONDecoder):
    """Decodes JSON. NUL, and lone surrogates, which clients make by cutting an emoji in half, become U+FFFD."""

    def raw_decode(self, s: str, idx: int = 0) -> tuple[Any, int]:
        value, end = super().raw_decode(s, idx)
        return domain.storable(value) if _UNSTORABLE.search(s, idx, end) else value, end


DECODER = _Decoder(parse_constant=lambda _: None)  # NaN and Infinity are not valid JSON


def read_json(raw: object) -> Any:
    """Parse JSON text or UTF-8 bytes; return None if it is missing or damaged."""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    if not isinstance(text, str):
        return None
    try:
        return DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def object_in(text: str) -> Record | None:
    """Parse a JSON object; return None for any other text."""
    value = read_json(text)
    return value if isinstance(value, dict) else None


def parse_nested(value: object) -> Any:
    """Parse JSON in a string and make it storable; return any other text unchanged."""
    inner = read_json(value)
    return storable(value if inner is None else inner)


def storable(value: object, depth: int = 20) -> Any:
    """Remove levels below `depth` and infinite numbers, which cannot be stored."""
    if not isinstance(value, dict | list):
        return None if isinstance(value, float) and not math.isfinite(value) else value
    if depth == 0:
        return "…"
    if isinstance(value, list):
        return [storable(item, depth - 1) for item in value]
    return {key: storable(item, depth - 1) for key, item in value.items()}


def compact(value: Any) -> str:
    """Return a value as JSON on one line; return text unchanged."""
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
    """Return the non-empty strings in a JSON array."""
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
    """Return the first non-empty text of the named fields; an empty text if there is none."""
    return next((text for name in names if (text := text_at(holder, name))), "")
