"""Record which sessions of the clients' stores were read and when, and what was skipped and why."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import select

from registry.domain import format_time, now
from registry.storage.database import ReadTransaction, WriteTransaction, upsert
from registry.storage.safety.masking import masked
from registry.storage.tables import store, store_session


def seen_sessions(tx: ReadTransaction, source: str, path: str) -> dict[str, str]:
    """Return the fingerprints of a store's sessions at the last read, by key."""
    query = select(store_session.c.key, store_session.c.fingerprint).where(
        store_session.c.source == source, store_session.c.path == path
    )
    return {key: fingerprint for key, fingerprint in tx.execute(query)}


def stored_keys(tx: ReadTransaction) -> dict[tuple[str, str], list[str]]:
    """Return the keys of the sessions that are stored as channels, by source and path of the store."""
    query = select(store_session.c.source, store_session.c.path, store_session.c.key)
    found: dict[tuple[str, str], list[str]] = {}
    for source, path, key in tx.execute(query.where(store_session.c.channel_number.is_not(None))):
        found.setdefault((source, path), []).append(key)
    return found


def keys_of_channel(tx: ReadTransaction, number: int, source: str) -> list[str]:
    """Return the keys of a client's sessions that are stored in this channel."""
    query = select(store_session.c.key).where(
        store_session.c.channel_number == number, store_session.c.source == source
    )
    return list(tx.execute(query).scalars())


def save_seen_sessions(
    tx: WriteTransaction, source: str, path: str, sessions: Iterable[tuple[str, str, int | None]]
) -> None:
    """Store the key and fingerprint of each session read, and the number of its channel, if it has one.

    Call it in the transaction that stores the messages, so that both are stored or neither.
    """
    entries = ({"key": key, "fingerprint": fingerprint, "channel_number": n} for key, fingerprint, n in sessions)
    rows = {one["key"]: {"source": source, "path": path, **one} for one in entries}
    if rows:
        upsert(tx, store_session, ("source", "path", "key"), list(rows.values()))


def save_store(tx: WriteTransaction, **state: Any) -> None:
    """Update a store's row after a sync; `stamp`: the reader's stamp of the whole store just before."""
    values = {**state, "synced_at": now(), "skipped": masked(tx, state["skipped"])}
    upsert(tx, store, ("source", "path"), [values])


def last_sync_of(tx: ReadTransaction, source: str, path: str) -> tuple[str | None, list[dict[str, str]]]:
    """Return a store's stamp at its last sync, None before the first one, and the skipped records."""
    query = select(store.c.stamp, store.c.skipped).where(store.c.source == source, store.c.path == path)
    row = tx.execute(query).first()
    return (row.stamp, row.skipped) if row else (None, [])


def list_stores(tx: ReadTransaction) -> list[dict[str, Any]]:
    rows = tx.execute(select(store).order_by(store.c.source, store.c.path))
    return [{**row._mapping, "synced_at": format_time(row.synced_at)} for row in rows]
