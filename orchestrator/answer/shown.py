"""A value as it goes out to a client. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from registry.text.privacy.visible import visible


def shown(value: Any) -> Any:
    """No field that is null, and nothing in its texts that a reader would not see."""
    match value:
        case str():
            return visible(value)
        case Mapping():
            return {name: shown(item) for name, item in value.items() if item is not None}
        case list() | tuple():
            return [shown(item) for item in value]
    return value
