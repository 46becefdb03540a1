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
        elif not _change(whole, line):
            damage.note(number, "a change to something that is not there")
    return whole or {}


def _change(whole: Record, line: Record) -> bool:
    """Do one operation; False if its place is not there."""
    path, value = items(line.get("k")), line.get("v")
    if not path:
        return False
    holder: Any = whole
    for key in path[:-1]:
        holder = _at(holder, key)
    key, kind = path[-1], line.get("kind")
    if kind == 1:
        return _set(holder, key, value)
    if kind == 2:
        return _push(holder, key, items(value), line.get("i"))
    if kind == 3 and isinstance(holder, dict) and isinstance(key, str):
        holder.pop(key, None)
        return True
    return kind == 3 and _is_place(holder, key) and _set(holder, key, None)


def _at(holder: Any, key: Any) -> Any:
    if isinstance(holder, dict) and isinstance(key, str):
        return holder.get(key)
    return holder[key] if _is_place(holder, key) else None


def _is_place(holder: Any, key: Any) -> bool:
    return isinstance(holder, list) and isinstance(key, int) and 0 <= key < len(holder)


def _set(holder: Any, key: Any, value: Any) -> bool:
    if (isinstance(holder, dict) and isinstance(key, str)) or _is_place(holder, key):
        holder[key] = value
    elif isinstance(holder, list) and key == len(holder):
        holder.append(value)
    else:
        return False
    return True


def _push(holder: Any, key: Any, values: list[Any], length: Any) -> bool:
    existing = _at(holder, key)
    if existing is None and not _set(holder, key, existing := []):
        return False
    if not isinstance(existing, list):
        return False
    if isinstance(length, int) and length >= 0:
        del existing[length:]
    existing.extend(values)
    return True
