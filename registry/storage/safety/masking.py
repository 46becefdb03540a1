"""Secrets masked with the registry's own key: what is stored has marks in their place, wherever it is stored."""

from __future__ import annotations

from secrets import token_bytes
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Engine, select

from registry.storage.database import ReadTransaction, WriteTransaction, insert_into
from registry.storage.tables import registry_key
from registry.text.privacy.masking import mask_value

_KEYS: WeakKeyDictionary[Engine, bytes] = WeakKeyDictionary()


def key_of(tx: WriteTransaction) -> bytes:
    """The registry's random key, made when it is first needed: no mark and no digest can be guessed without it."""
    return find_key(tx) or _make_key(tx)


def find_key(tx: ReadTransaction) -> bytes | None:
    """Return the registry's key; None if it has none yet."""
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
    made = insert_into(tx.dialect.name, registry_key).values(number=1, key=token_bytes(32)).on_conflict_do_nothing()
    tx.execute(made)
    return bytes(tx.execute(select(registry_key.c.key).where(registry_key.c.number == 1)).scalar_one())


def masked(tx: WriteTransaction, value: Any) -> Any:
    """Return the value with a mark in the place of each secret, in all texts that it holds."""
    return mask_value(value, key_of(tx))
