"""Secrets masked in any value, with a key at hand. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_CLEAN: set[int] = set()
"""The hashes of texts in which nothing was found: a chat that is sent again is not looked through again."""
_MOST_CLEAN = 200_000
_HOLDS_NONE = frozenset((bool, int, float, type(None)))
"""Most of what a record says."""


def mask_value(value: Any, key: bytes) -> Any:
    """The value with a mark in the place of each secret, in all texts that it holds.

    What stands under a name such as `password` is one if it looks like one.
    """
    match value:
        case str():
            return _mask_text(value, key)
        case None | int() | float():  # most of a record; to ask whether they are mappings takes longest
            return value
        case dict() | Mapping():  # whether it is a dict is told at once
            return {
                mask_value(name, key): held if type(held) in _HOLDS_NONE else _mask_item(name, held, key)
                for name, held in value.items()
            }
        case list() if {*map(type, value)} == {int}:  # of which there may be thousands
            return value
        case list() | tuple():
            return [mask_value(held, key) for held in value]
    return value


def holds_secret(value: Any) -> bool:
    """Whether some text in it holds one."""
    return bool(value) and mask_value(value, b"any") != value


def _mask_item(name: object, value: Any, key: bytes) -> Any:
    if isinstance(name, str) and isinstance(value, str):
        from registry.text.privacy.secrets import is_secret_value, mask

        if is_secret_value(name, value):
            return mask(value, "password" if "pass" in name.lower() else "secret", key)
    return mask_value(value, key)


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
