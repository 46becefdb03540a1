"""Secrets masked with the registry's own key: what is stored has marks in their place, wherever it is stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from secrets import token_bytes
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Engine, select

from registry.storage.database import ReadTransaction, WriteTransaction, insert_into
from registry.storage.tables import registry_key

_KEYS: WeakKeyDictionary[Engine, bytes] = WeakKeyDictionary()
_CLEAN: set[int] = set()
"""The hashes of texts in which nothing was found: a chat that is sent again is not looked through again."""
_MOST_CLEAN = 200_000


def key_of(tx: WriteTransaction) -> bytes:
    """The registry's random key, made when it is first needed: no mark and no digest can be guessed without it."""
    return find_key(tx) or _make_key(tx)


def find_key(tx: ReadTransaction) -> bytes | None:
    """The same, without making one."""
    if tx.engine not in _KEYS:
        held = tx.execute(select(registry_key.c.key).where(registry_key.c.number == 1)).scalar()
        if held is None:
            return None
        _KEYS[tx.engine] = bytes(held)
    return _KEYS[tx.engine]


def forget_key(tx: WriteTransaction) -> None:
    """Read it anew when it is asked for next: another registry was put in the place of this one."""
    _KEYS.pop(tx.engine, None)


def _make_key(tx: WriteTransaction) -> bytes:
    """Not remembered: this transaction may yet be undone."""
    made = insert_into(tx.dialect.name, registry_key).values(number=1, key=token_bytes(32)).on_conflict_do_nothing()
    tx.execute(made)
    return bytes(tx.execute(select(registry_key.c.key).where(registry_key.c.number == 1)).scalar_one())


def masked(tx: WriteTransaction, value: Any) -> Any:
    """The value with a mark in the place of each secret, in all texts that it holds."""
    return mask_value(value, key_of(tx))


def mask_value(value: Any, key: bytes) -> Any:
    """The same with a key at hand. What stands under a name such as `password` is one if it looks like one."""
    match value:
        case str():
            return _mask_text(value, key)
        case None | int() | float():  # most of a record; to ask whether they are mappings takes longest
            return value
        case dict() | Mapping():  # whether it is a dict is told at once
            return {mask_value(name, key): _mask_item(name, held, key) for name, held in value.items()}
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
