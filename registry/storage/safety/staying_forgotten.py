"""Keep what was forgotten forgotten when a backup is restored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from registry.domain import new_id, now
from registry.storage.conditions import is_one_of
from registry.storage.conversations.aliases import aliases_of
from registry.storage.conversations.channels import ChannelRow
from registry.storage.database import WriteTransaction
from registry.storage.records.brief_runs import shorten_newest
from registry.storage.safety.forgetting import (
    CHANNEL,
    DERIVED,
    MESSAGE,
    SESSION,
    Affected,
    forget,
    forget_derived_again,
    keyed,
    note_forgotten,
)
from registry.storage.safety.masking import forget_key, key_of
from registry.storage.tables import channel, conversation, forgotten


@dataclass(frozen=True, slots=True)
class Tombstones:
    """The marks of what was forgotten in a registry: digests with their key, and message ids."""

    key: bytes
    digests: Sequence[tuple[bytes, str, str, datetime]]
    messages: Sequence[str]


def tombstones_of(tx: WriteTransaction) -> Tombstones:
    """Return the marks of everything that was forgotten so far."""
    columns = forgotten.c.digest, forgotten.c.what, forgotten.c.receipt, forgotten.c.forgotten_at
    digests = [(bytes(digest), what, receipt, at) for digest, what, receipt, at in tx.execute(select(*columns))]
    ids = tx.execute(select(conversation.c.id).where(conversation.c.forgotten)).scalars().all()
    return Tombstones(key_of(tx), digests, ids)


def forget_again(tx: WriteTransaction, tombstones: Tombstones) -> int:
    """Forget what came back, and return how many messages. Digests made with another registry's key are dropped."""
    forget_key(tx)  # the registry that was put back has its own
    held = set(tx.execute(select(conversation.c.id)).scalars()) if tombstones.messages else set()
    absent = [id_ for id_ in tombstones.messages if id_ not in held]
    ids = [*held.intersection(tombstones.messages), *_noted_messages(tx, tombstones)]
    there = is_one_of(tx, conversation.c.id, ids), conversation.c.forgotten.is_(False)
    messages = tx.execute(select(conversation).where(*there)).all()
    back = Affected(list(_channels_back(tx, tombstones)), messages)
    count = forget(tx, back).messages if back.channels or back.messages else 0
    if derived := {digest for digest, what, _, _ in tombstones.digests if what == DERIVED}:
        shorten_newest(tx)  # their words may have been gone already, and not been noted
        forget_derived_again(tx, tombstones.key, derived)
    if key_of(tx) == tombstones.key:
        for digest, what, receipt, at in tombstones.digests:
            note_forgotten(tx, [(digest, what)], receipt, at)
        marks = [(keyed(tombstones.key, MESSAGE, id_.encode()), MESSAGE) for id_ in absent]
        note_forgotten(tx, marks, new_id("fgt"), now())
    return count


def _noted_messages(tx: WriteTransaction, tombstones: Tombstones) -> list[str]:
    """Return the ids of forgotten messages that an earlier restored backup did not hold."""
    known = {digest for digest, what, _, _ in tombstones.digests if what == MESSAGE}
    if not known:
        return []
    ids = tx.execute(select(conversation.c.id)).scalars()
    return [id_ for id_ in ids if keyed(tombstones.key, MESSAGE, id_.encode()) in known]


def _channels_back(tx: WriteTransaction, tombstones: Tombstones) -> Iterator[ChannelRow]:
    known = {(digest, what) for digest, what, _, _ in tombstones.digests}
    if not known:
        return
    for row in tx.execute(select(channel)).all():
        named = [(CHANNEL, name) for name in (row.name, *aliases_of(tx, row.number))]
        named += [(SESSION, row.session_id)] if row.session_id else []
        if any((keyed(tombstones.key, what, name.encode()), what) in known for what, name in named):
            yield row
