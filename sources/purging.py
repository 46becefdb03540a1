"""How long a client keeps its conversations before it deletes them by itself: what the registry guards against."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sources.base import Places
from sources.client import Purge
from sources.kit.loose_json import read_json

LONG = 365
"""Days from which on nobody is warned."""
_SPAN = re.compile(r"(\d{1,6})\s*([hdwmy]?)", re.IGNORECASE)
_DAYS = {"h": 1 / 24, "": 1.0, "d": 1.0, "w": 7.0, "m": 30.0, "y": 365.0}
_ENDINGS = ("", ".json", ".jsonl")


def days_kept(purge: Purge, places: Places) -> float | None:
    """After how many days the client deletes a conversation; None if it is told not to."""
    settings = _settings(purge.file(places))
    if purge.switch and _at(settings, purge.switch) is False:
        return None
    given = _SPAN.fullmatch(str(_at(settings, purge.setting)).strip())
    return float(given[1]) * _DAYS[given[2].lower()] if given else float(purge.days)


def gone(keys: Iterable[str]) -> int:
    """How many of the sessions that were read from files of their own are there no more. Others' keys are no paths."""
    return sum(Path(key).is_absolute() and not any(Path(key + ending).exists() for ending in _ENDINGS) for key in keys)


def _settings(file: Path) -> Any:
    try:
        return read_json(file.read_bytes())
    except OSError:
        return None


def _at(settings: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        settings = settings.get(key) if isinstance(settings, Mapping) else None
    return settings
