"""Mask secrets in stored values with the registry's own key."""

from hashlib import blake2b
from secrets import token_bytes
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Engine, select

from registry.storage.database import ReadTransaction, WriteTransaction, insert_new
from registry.storage.tables import registry_key
from registry.text.privacy.masking import mask_value

_CACHED_KEYS: WeakKeyDictionary[Engine, bytes] = WeakKeyDictionary()


def key_of(tx: WriteTransaction) -> bytes:
    """Return the registry's random key, created at first use; marks and digests cannot be guessed without it."""
    if key := find_key(tx):
        return key
    insert_new(tx, registry_key, [{"number": 1, "key": token_bytes(32)}])
    return bytes(tx.execute(select(registry_key.c.key).where(registry_key.c.number == 1)).scalar_one())


def find_key(tx: ReadTransaction) -> bytes | None:
    """Return the registry's key; None if it has none yet."""
    if tx.engine not in _CACHED_KEYS:
        key = _stored_key(tx)
        if key is None:
            return None
        _CACHED_KEYS[tx.engine] = key
    return _CACHED_KEYS[tx.engine]


def _stored_key(tx: ReadTransaction) -> bytes | None:
    key = tx.execute(select(registry_key.c.key).where(registry_key.c.number == 1)).scalar()
    return None if key is None else bytes(key)


def registry_id(tx: ReadTransaction) -> str:
    """Return the id that identifies this registry at any address; "" for a read-only one without a key.

    It is not cached, because another process may have restored another registry into this database.
    """
    key = _stored_key(tx)
    return blake2b(key=key, digest_size=12, person=b"registry id").hexdigest() if key else ""


def forget_key(tx: WriteTransaction) -> None:
    """Drop the cached key, after another registry was restored into this database."""
    _CACHED_KEYS.pop(tx.engine, None)


def masked(tx: WriteTransaction, value: Any) -> Any:
    """Return the value with each secret in its texts replaced by a mark."""
    return mask_value(value, key_of(tx))
