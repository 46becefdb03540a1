"""Find the hooks that Codex does not run because its user has not trusted them, as noted in its `config.toml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def untrusted(hooks: Path, events: tuple[str, ...], ours: re.Pattern[str]) -> list[str]:
    """Return the events whose hook of ours is not trusted yet; a change after it was trusted is not noticed."""
    import json
    import tomllib  # a record of facts imports what takes time only when it is asked

    try:
        listed = json.loads(hooks.read_text(encoding="utf-8"))["hooks"]
        state = tomllib.loads(hooks.with_name("config.toml").read_text(encoding="utf-8")).get("hooks", {})
    except (OSError, ValueError, KeyError, TypeError):
        return []
    trusted = state.get("state", {}) if isinstance(state, Mapping) else {}
    places = {event: _place(listed.get(event), ours) for event in events}
    return [event for event, place in places.items() if place and not _is_trusted(trusted, hooks, event, place)]


def _place(groups: Any, ours: re.Pattern[str]) -> str:
    for group, held in enumerate(groups if isinstance(groups, list) else ()):
        handlers = held.get("hooks") if isinstance(held, Mapping) else None
        for handler, given in enumerate(handlers if isinstance(handlers, list) else ()):
            if isinstance(given, Mapping) and ours.search(str(given.get("command"))):
                return f"{group}:{handler}"
    return ""


def _is_trusted(state: Any, hooks: Path, event: str, place: str) -> bool:
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
    keys = (f"{file}:{snake}:{place}" for file in (hooks, hooks.resolve()))
    entries = [state[key] for key in keys if isinstance(state, Mapping) and isinstance(state.get(key), Mapping)]
    return any(entry.get("trusted_hash") and entry.get("enabled") is not False for entry in entries)
