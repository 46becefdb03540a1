"""Replay an object that is kept as the operations that made it, as VS Code keeps its chats. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sources.kit.jsonl import Damage
from sources.kit.loose_json import Record, items, mapping


def replayed(lines: Iterable[Record], damage: Damage) -> Record:
    """Return the object in its last state; empty if there is no whole.

    `{kind: 0, v}` is the whole object; 1 sets and 3 deletes the value at the path `k`; 2 appends `v` to the list there,
    cut to the length `i` before if that is given.
    """
    whole: Record | None = None
    for number, line in enumerate(lines, 1):
        if line.get("kind") == 0:
            whole = mapping(line.get("v"))
        elif whole is None:
            damage.note(number, "a change before the whole it changes")
        else:
            try:
                _change(whole, line)
            except (LookupError, TypeError, ValueError, AttributeError):
                damage.note(number, "a change to something that is not there")
    return whole or {}


def _change(whole: Record, line: Record) -> None:
    """Do one operation. Raises one of several errors if its place is not there."""
    *path, key = items(line.get("k"))
    kind = line.get("kind")
    holder: Any = whole
    for step in path:
        holder = holder[step]
    if isinstance(holder, dict) and not isinstance(key, str):
        raise TypeError("no name of a field")
    if kind == 1 and isinstance(holder, list) and key == len(holder):
        holder.append(line.get("v"))
    elif kind == 1:
        holder[key] = line.get("v")
    elif kind == 2:
        existing = holder.setdefault(key, []) if isinstance(holder, dict) else holder[key]
        if isinstance(length := line.get("i"), int):
            del existing[length:]
        existing.extend(items(line.get("v")))
    elif kind == 3 and isinstance(holder, dict):
        holder.pop(key, None)
    elif kind == 3:
        holder[key] = None
    else:
        raise ValueError("no kind of a change")
