"""Mask secrets with the registry's own key, wherever something is stored."""

from hashlib import blake2b
from secrets import token_bytes
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Engine, select

from registry.storage.database import ReadTransaction, WriteTransaction, insert_new
from registry.storage.tables import registry_key
from registry.text.privacy.masking import mask_value

_KEYS: WeakKeyDictionary[Engine, bytes] = WeakKeyDictionary()


def key_of(tx: WriteTransaction) -> bytes:
    """Return the registry's random key, made at first use: no mark and no digest can be guessed without it."""
    if key := find_key(tx):
        return key
    insert_new(tx, registry_key, [{"number": 1, "key": token_bytes(32)}])
    return bytes(tx.execute(select(registry_key.c.key).where(registry_key.c.number == 1)).scalar_one())


def find_key(tx: ReadTransaction) -> bytes | None:
    """Return the registry's key; None if it has none yet."""
    if tx.engine not in _KEYS:
        held = _stored_key(tx)
        if held is None:
            return None
        _KEYS[tx.engine] = held
    return _KEYS[tx.engine]


def _stored_key(tx: ReadTransaction) -> bytes | None:
    held = tx.execute(select(registry_key.c.key).where(registry_key.c.number == 1)).scalar()
    return None if held is None else bytes(held)


def registry_id(tx: ReadTransaction) -> str:
    """Return the id by which other registries know this one, whatever its address; "" for a read-only one without.

    It is read each time: another process may have restored another registry in the place of this one.
    """
    key = _stored_key(tx)
    return blake2b(key=key, digest_size=12, person=b"registry id").hexdigest() if key else ""


def forget_key(tx: WriteTransaction) -> None:
    """Drop the cached key, after another registry was restored in the place of this one."""
    _KEYS.pop(tx.engine, None)


def masked(tx: WriteTransaction, value: Any) -> Any:
    """Return the value with a mark in the place of each secret, in all texts that it holds."""
    return mask_value(value, key_of(tx))
