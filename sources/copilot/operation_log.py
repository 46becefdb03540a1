"""An object kept as the operations that made it, as VS Code keeps its chats. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sources.kit.jsonl import Damage, Record, items, mapping

_WHOLE, _SET, _PUSH, _DELETE = range(4)
_NO_BEGINNING = "a change before the whole it changes"
_NO_PLACE = "a change to something that is not there"


def replayed(lines: Iterable[Record], damage: Damage) -> Record:
    """The object as it last was: `{kind: 0, v}` is all of it, 1 sets and 3 deletes what stands at the path `k`,
    2 appends `v` to the list there, cut to the length `i` before if that is given. Empty if there is no whole.
    """
    whole: Record | None = None
    for number, line in enumerate(lines, 1):
        if line.get("kind") == _WHOLE:
            whole = mapping(line.get("v"))
        elif whole is None:
            damage.note(number, _NO_BEGINNING)
        elif not _change(whole, line):
            damage.note(number, _NO_PLACE)
    return whole or {}


def _change(whole: Record, line: Record) -> bool:
    path = items(line.get("k"))
    if not path:
        return False
    holder: Any = whole
    for key in path[:-1]:
        holder = _at(holder, key)
    match line.get("kind"):
        case 1:
            return _set(holder, path[-1], line.get("v"))
        case 2:
            return _push(holder, path[-1], items(line.get("v")), line.get("i"))
        case 3:
            return _delete(holder, path[-1])
    return False


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
    held = _at(holder, key)
    if held is None and not _set(holder, key, held := []):
        return False
    if not isinstance(held, list):
        return False
    if isinstance(length, int) and length >= 0:
        del held[length:]
    held.extend(values)
    return True


def _delete(holder: Any, key: Any) -> bool:
    if isinstance(holder, dict) and isinstance(key, str):
        holder.pop(key, None)
        return True
    return _set(holder, key, None) if _is_place(holder, key) else False
