"""Secrets masked in any value, with a key at hand. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_CLEAN: set[int] = set()
"""The hashes of texts in which nothing was found: a chat that is sent again is not looked through again."""
_MOST_CLEAN = 200_000
_HOLDS_NONE = frozenset((bool, int, float, type(None)))
"""Most of what a record says: thousands of places in a ranking."""


def mask_value(value: Any, key: bytes) -> Any:
    """The value with a mark in the place of each secret, in all texts that it holds.

    What stands under a name such as `password` is one if it looks like one. A value without any is returned itself:
    most are, and to make a record anew takes several times as long as to look through it.
    """
    return value if _is_clean(value) else _masked(value, key)


def _is_clean(value: Any) -> bool:
    """Return whether there is none in it; what is told by its type is passed over many at a time."""
    left, unseen = [value], list[str]()
    while left:
        held = left.pop()
        kind = type(held)
        if kind in _HOLDS_NONE:
            continue
        if isinstance(held, str):
            if len(held) >= _SHORTEST and hash(held) not in _CLEAN:
                unseen.append(held)
        elif kind is dict:
            if not (held.keys() <= _PLAIN or all([_is_plain(name, of) for name, of in held.items()])):
                return False
            left += [one for one in held.values() if type(one) not in _HOLDS_NONE]
        elif kind is list or kind is tuple:
            left += held if {*map(type, held)} - _HOLDS_NONE else ()
        elif isinstance(held, Mapping | list | tuple):
            return False  # of no kind that a record is made of
    return all([_mask_text(text, b"any") == text for text in unseen])


def _is_plain(name: Any, held: Any) -> bool:
    """Return whether neither a field's name nor its value is a secret; cached for names that hint at none.
    nothing so."""
    if not isinstance(name, str):
        return _is_clean(name)
    from registry.text.privacy.secrets import is_secret_value, may_hold_secret

    if _mask_text(name, b"any") != name:
        return False
    if may_hold_secret(name):
        return not (isinstance(held, str) and is_secret_value(name, held))
    if len(_PLAIN) < _MOST_PLAIN:
        _PLAIN.add(name)
    return True


_PLAIN: set[str] = set()
_MOST_PLAIN = 10_000


def _masked(value: Any, key: bytes) -> Any:
    match value:
        case str():
            return _mask_text(value, key)
        case dict() | Mapping():  # whether it is a dict is told at once
            return {_masked(name, key): _mask_item(name, held, key) for name, held in value.items()}
        case list() | tuple():
            return [_masked(held, key) for held in value]
    return value


def holds_secret(value: Any) -> bool:
    """Return whether some text in it holds one."""
    return bool(value) and mask_value(value, b"any") != value


def _mask_item(name: object, value: Any, key: bytes) -> Any:
    if isinstance(name, str) and isinstance(value, str):
        from registry.text.privacy.secrets import is_secret_value, mask

        if is_secret_value(name, value):
            return mask(value, "password" if "pass" in name.lower() else "secret", key)
    return _masked(value, key)


def _mask_text(text: str, key: bytes) -> str:
    if len(text) < _SHORTEST:
        return text
    if hash(text) in _CLEAN:
        return text
    from registry.text.privacy.secrets import (
        mask_secrets,  # its patterns are needed where something is stored, and only there
    )

    found = mask_secrets(text, key)
    if found == text:
        note_clean([text])
    return found


def note_clean(texts: Iterable[str]) -> None:
    """In these no secret was found."""
    if len(_CLEAN) >= _MOST_CLEAN:
        _CLEAN.clear()
    _CLEAN.update(map(hash, texts))


_SHORTEST = 8
"""Characters; nothing shorter is taken for a secret with its name."""
