"""Forget messages and channels for good, record their digests, so that they do not return, and wipe the freed pages.

A message keeps its row without text: its digest and its client's id identify a resend. A channel leaves only digests of
its names, session id and messages, keyed with the registry's key. They identify it when it is sent again or a backup is
restored.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, Text, cast, delete, func, or_, select, tuple_, update

from registry.domain import format_time, new_id, now
from registry.errors import NotFound, StorageError
from registry.project import REMEMBERED
from registry.storage.conditions import is_of_project, is_one_of
from registry.storage.conversations.channels import (
    ChannelRow,
    change_channel,
    find_channel,
    lock_channel,
    recount_channel,
)
from registry.storage.conversations.images import drop_images
from registry.storage.conversations.messages import MessageRow, delete_channel, get_message, unindex
from registry.storage.conversations.references import aliases_of, resolve_session
from registry.storage.database import Database, ReadTransaction, WriteTransaction, insert_new
from registry.storage.exchange.edits import lock_edits
from registry.storage.exchange.forgetting_elsewhere import ForgottenEdit, forgotten_edits, note_forgetting, tell_again
from registry.storage.records.executions import shorten_newest
from registry.storage.safety.derived import ForgottenMessages, all_derived, find_derived, forget_derived, spellings
from registry.storage.safety.forgotten_digests import (
    DERIVED,
    MESSAGE,
    WORDS,
    channel_digests_to_check,
    channel_digests_to_note,
    digests_to_check,
    digests_to_note,
    keyed_digest,
)
from registry.storage.safety.masking import forget_key, key_of
from registry.storage.safety.visibility import ask_all
from registry.storage.tables import channel, conversation, forgotten, message_vector, metadata

logger = logging.getLogger(__name__)

BY_POLICY = "pol"
"""The prefix of receipts of retention policies. These apply to this registry only, so others are not notified."""


@dataclass(frozen=True, slots=True)
class ForgetSelection:
    """Conditions that select what to forget, combined by AND. Without `before` and `matching`, whole channels."""

    ids: Sequence[str] = ()
    channel: str | None = None
    project: str | None = None
    before: datetime | None = None
    matching: str | None = None
    is_deleted: bool = False
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Affected:
    """The channels to forget completely, and single messages of other channels."""

    channels: Sequence[ChannelRow]
    messages: Sequence[MessageRow]


@dataclass(frozen=True, slots=True)
class Receipt:
    """The id, time and counts of a forgetting."""

    id: str
    forgotten_at: str
    channels: int
    messages: int
    vectors: int = 0
    executions: int = 0
    results: int = 0
    cases: int = 0
    views: int = 0
    texts: int = 0
    is_dry_run: bool = False


def affected_by(tx: ReadTransaction, wanted: ForgetSelection) -> Affected:
    """Return the channels and messages to forget; NotFound if there are none."""
    if wanted.ids:
        found = Affected([], [get_message(tx, one, include_deleted=True) for one in wanted.ids])
    else:
        channels = tx.execute(select(channel).where(*_channel_conditions(tx, wanted))).all()
        ended = [row for row in channels if not wanted.before or row.updated_at < wanted.before]
        # remembered sentences are always in the channel of this name, so that must stay usable
        whole = [] if wanted.matching else [row for row in ended if row.source != REMEMBERED]
        numbers = {row.number for row in whole}
        rest = [row.number for row in channels if row.number not in numbers]
        found = Affected(whole, _selected_messages(tx, wanted, rest) if rest else [])
    found = replace(found, messages=[*found.messages, *_copies_of(tx, found)])
    is_of_words = wanted.matching and wanted == ForgetSelection(matching=wanted.matching)
    derived = find_derived(tx, ForgottenMessages(matching=wanted.matching)) if is_of_words else {}
    if not (found.channels or found.messages or any(derived.values())):
        raise NotFound("Nothing to forget.", "Nothing in the registry matches")
    return found


def _copies_of(tx: ReadTransaction, found: Affected) -> Sequence[MessageRow]:
    """Return the copies of these messages in chats of people who have added to the shared chat."""
    original, copy = conversation.alias().c, conversation.c
    same = select(original.digest, original.timestamp).where(_is_in(original, found))
    is_copy = copy.of_other_person, copy.forgotten.is_(False), tuple_(copy.digest, copy.timestamp).in_(same)
    return ask_all(tx, select(conversation).where(*is_copy, ~_is_in(copy, found)).order_by(copy.number)).all()


def _is_in(columns: Any, found: Affected) -> ColumnElement[bool]:
    within = is_one_of(columns.channel_number, [row.number for row in found.channels])
    return or_(within, is_one_of(columns.number, [row.number for row in found.messages]))


def _channel_conditions(tx: ReadTransaction, wanted: ForgetSelection) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if wanted.channel:
        row = find_channel(tx, wanted.channel) or resolve_session(tx, wanted.channel)
        conditions.append(channel.c.number == row.number)
    if wanted.project:
        conditions.append(is_of_project(channel.c.project_path, wanted.project))
    if wanted.owner:
        conditions.append(channel.c.owner == wanted.owner)
    if wanted.is_deleted:
        conditions.append(channel.c.deleted.is_(True))
    return conditions


def _selected_messages(tx: ReadTransaction, wanted: ForgetSelection, channels: Sequence[int]) -> list[MessageRow]:
    conditions: list[ColumnElement[bool]] = [conversation.c.forgotten.is_(False)]
    if wanted.before:
        conditions.append(conversation.c.timestamp < wanted.before)
    if wanted.matching:
        columns = (conversation.c.text, cast(conversation.c.payload, Text))
        forms = spellings(wanted.matching)
        conditions.append(or_(*(column.icontains(one, autoescape=True) for column in columns for one in forms)))
    query = select(conversation).where(is_one_of(conversation.c.channel_number, channels), *conditions)
    return list(tx.execute(query.order_by(conversation.c.number)))


def dry_receipt(found: Affected) -> Receipt:
    messages = len(found.messages) + sum(row.message_count for row in found.channels)
    return Receipt("", format_time(now()), len(found.channels), messages, is_dry_run=True)


def forget(
    tx: WriteTransaction, found: Affected, matching: str | None = None, *, is_exact: bool = False, receipt: str = ""
) -> Receipt:
    """Forget rows, index entries, vectors and derived records, in one transaction.

    `is_exact`: as in `ForgottenMessages`. `receipt`: the receipt's id; a new one by default.
    """
    lock_edits(tx)
    receipt = receipt or new_id("fgt")
    at = now()
    vectors = _vectors(tx, found)
    derived = find_derived(tx, replace(forgotten_messages_of(tx, found, matching), is_exact=is_exact))
    key = key_of(tx)
    ids = (one for some in derived.values() for one in some)
    note_forgotten(tx, [(keyed_digest(key, DERIVED, one.encode()), DERIVED) for one in ids], receipt, at)
    forget_derived(tx, derived)
    ordered = sorted(found.messages, key=lambda row: (row.channel_number, row.number))
    for number, some in groupby(ordered, key=lambda row: row.channel_number):
        note_forgetting(tx, lock_channel(tx, number), list(some), is_channel=False)
    messages = len(found.messages) + sum(_forget_channel(tx, row, receipt, at) for row in found.channels)
    forget_messages(tx, found.messages)
    counts: dict[str, Any] = {name: len(some) for name, some in derived.items()}
    return Receipt(receipt, format_time(at), len(found.channels), messages, vectors, **counts)


def forgotten_messages_of(tx: ReadTransaction, found: Affected, matching: str | None = None) -> ForgottenMessages:
    """Return the names and ids by which records may mention the forgotten messages."""
    names = {name for row in found.channels for name in (row.name, *aliases_of(tx, row.number))}
    within = is_one_of(conversation.c.channel_number, [row.number for row in found.channels])
    rows = [*found.messages, *tx.execute(select(conversation.c.number, conversation.c.id).where(within))]
    partial_names = {row.channel for row in found.messages}
    return ForgottenMessages(names, partial_names, {row.id for row in rows}, {row.number for row in rows}, matching)


def forget_derived_again(tx: WriteTransaction, key: bytes, known: Collection[bytes]) -> None:
    """Forget derived records that a backup restored: those whose digests are `known`."""
    every = all_derived(tx).items()
    forget_derived(
        tx, {name: [one for one in ids if keyed_digest(key, DERIVED, one.encode()) in known] for name, ids in every}
    )


def forget_messages(tx: WriteTransaction, rows: Sequence[MessageRow]) -> None:
    """Remove the text of messages; digests and ids stay to identify a resend."""
    if not rows:
        return
    unindex(tx, rows)
    numbers = [row.number for row in rows]
    blank = {"text": "", "payload": {}, "length": 0, "deleted": True, "forgotten": True, "with_channel": False}
    tx.execute(update(conversation).where(is_one_of(conversation.c.number, numbers)).values(**blank))
    tx.execute(delete(message_vector).where(is_one_of(message_vector.c.message_number, numbers)))
    drop_images(tx, numbers)
    texts_of = {
        row.channel_number: {one.text for one in rows if one.channel_number == row.channel_number} for row in rows
    }
    for number, texts in texts_of.items():
        recount_channel(tx, number)
        # a channel without messages is hidden until it gets a new one
        tx.execute(update(channel).where(channel.c.number == number, channel.c.message_count == 0).values(deleted=True))
        _drop_title_made_of(tx, number, texts)


def _drop_title_made_of(tx: WriteTransaction, number: int, texts: Iterable[str]) -> None:
    row = tx.execute(select(channel).where(channel.c.number == number)).one()
    title = (row.title or "").strip(" .…").lower()
    if title and any(title in " ".join(text.split()).lower() for text in texts):
        change_channel(tx, row, {"title": None, "meta": {name: row.meta[name] for name in row.meta if name != "title"}})


def _forget_channel(tx: WriteTransaction, row: ChannelRow, receipt: str, at: datetime) -> int:
    key = key_of(tx)
    within = conversation.c.channel_number == row.number
    digests = tx.execute(select(conversation.c.digest).where(within)).scalars().all()
    marks = channel_digests_to_note(key, (row.name, *aliases_of(tx, row.number)), row.session_id, row.owner)
    marks += [mark for digest in digests for mark in digests_to_note(key, WORDS, bytes(digest), row.owner)]
    # one receipt per channel: a new conversation must match a single forgotten one
    note_forgotten(tx, marks, f"{receipt}.{row.number}", at)
    ids = select(conversation.c.number, conversation.c.id).where(within).order_by(conversation.c.number)
    if not receipt.startswith(BY_POLICY):
        note_forgetting(tx, row, tx.execute(ids).all(), is_channel=True)
    delete_channel(tx, row, soft=False)
    return len(digests)


def note_forgotten(tx: WriteTransaction, digests: Sequence[tuple[bytes, str]], receipt: str, at: datetime) -> None:
    """Record digests of forgotten names, ids, messages and records."""
    about = {"receipt": receipt, "forgotten_at": at}
    insert_new(tx, forgotten, [{"digest": digest, "what": what, **about} for digest, what in dict(digests).items()])


def is_anything_forgotten(tx: ReadTransaction) -> bool:
    """Return True if any digest is recorded; usually there is none, which saves the comparison."""
    return tx.execute(select(forgotten.c.receipt).limit(1)).first() is not None


def find_forgotten(tx: ReadTransaction, digests: Sequence[bytes]) -> dict[bytes, tuple[str, str]]:
    """Return those of the digests that were forgotten, with their kind and receipt."""
    query = select(forgotten.c.digest, forgotten.c.what, forgotten.c.receipt).where(forgotten.c.digest.in_(digests))
    return {bytes(digest): (what, receipt) for digest, what, receipt in tx.execute(query)}


def forget_known_words(tx: WriteTransaction, into: ChannelRow, numbers: Collection[int]) -> None:
    """Forget those of a channel's messages whose words were forgotten on request, here and where they came from."""
    lock_edits(tx)
    rows = tx.execute(select(conversation).where(is_one_of(conversation.c.number, numbers))).all()
    key = key_of(tx)
    marked = [
        (row, digest) for row in rows for digest, _ in digests_to_check(key, WORDS, bytes(row.digest), into.owner)
    ]
    noted = find_forgotten(tx, [digest for _, digest in marked])
    by_request = {digest for digest, (_, receipt) in noted.items() if not receipt.startswith(BY_POLICY)}
    known = [row for row, digest in marked if digest in by_request]
    note_forgetting(tx, into, known, is_channel=False)
    forget_messages(tx, known)


def _vectors(tx: ReadTransaction, found: Affected) -> int:
    number = message_vector.c.message_number
    within = is_one_of(conversation.c.channel_number, [row.number for row in found.channels])
    is_one = is_one_of(number, [row.number for row in found.messages])
    condition = or_(is_one, number.in_(select(conversation.c.number).where(within)))
    return tx.execute(select(func.count()).select_from(message_vector).where(condition)).scalar_one()


async def wipe(database: Database) -> None:
    """Overwrite remains of deleted rows in the files: index segments, moved rows in pages, the write-ahead log.

    SQLite's secure_delete leaves copies of rows that moved between pages, so the file is rewritten: 12 s per GB.
    """
    failure = None
    for step in (_vacuum_tables,) if database.dialect == "postgresql" else (_merge_index, _rewrite_file, _empty_log):
        try:
            await step(database)
        except StorageError as exc:  # rewriting needs free space of the file's size; the deletion itself is committed
            failure = exc
    if failure:
        left = "Unused parts of the registry's files may still contain deleted text: %s %s"
        logger.warning(left, failure.message, failure.details)


async def _vacuum_tables(database: Database) -> None:
    await database.maintain(_VACUUM)


async def _merge_index(database: Database) -> None:
    await database.write(lambda tx: tx.exec_driver_sql("INSERT INTO message_index(message_index) VALUES ('optimize')"))


async def _rewrite_file(database: Database) -> None:
    await database.maintain(("VACUUM",))


async def _empty_log(database: Database) -> None:
    for _ in range(5):
        [(busy, *_rest)] = await database.maintain(("PRAGMA wal_checkpoint(TRUNCATE)",))
        if not busy:
            return


_VACUUM = tuple(f"VACUUM {name}" for name in (*metadata.tables, "message_index"))


@dataclass(frozen=True, slots=True)
class Tombstones:
    """The records of everything forgotten in a registry: digests with their key, message ids, and edits for others."""

    key: bytes
    digests: Sequence[tuple[bytes, str, str, datetime]]
    messages: Sequence[str]
    told: Sequence[ForgottenEdit]


def tombstones_of(tx: WriteTransaction) -> Tombstones:
    """Return the records of everything that was forgotten so far."""
    columns = forgotten.c.digest, forgotten.c.what, forgotten.c.receipt, forgotten.c.forgotten_at
    digests = [(bytes(digest), what, receipt, at) for digest, what, receipt, at in tx.execute(select(*columns))]
    ids = tx.execute(select(conversation.c.id).where(conversation.c.forgotten)).scalars().all()
    return Tombstones(key_of(tx), digests, ids, forgotten_edits(tx))


def forget_again(tx: WriteTransaction, tombstones: Tombstones) -> int:
    """Forget what a backup restored; return the number of messages. Digests with another registry's key are dropped."""
    forget_key(tx)  # the restored registry has its own
    tell_again(tx, tombstones.told)
    existing = set(tx.execute(select(conversation.c.id)).scalars()) if tombstones.messages else set()
    absent = [id_ for id_ in tombstones.messages if id_ not in existing]
    ids = [*existing.intersection(tombstones.messages), *_noted_messages(tx, tombstones)]
    there = is_one_of(conversation.c.id, ids), conversation.c.forgotten.is_(False)
    messages = tx.execute(select(conversation).where(*there)).all()
    restored = list(_restored_channels(tx, tombstones))
    by_request = Affected([row for row, receipt in restored if not receipt.startswith(BY_POLICY)], messages)
    by_policy = Affected([row for row, receipt in restored if receipt.startswith(BY_POLICY)], [])
    count = forget(tx, by_request).messages if by_request.channels or by_request.messages else 0
    count += forget(tx, by_policy, is_exact=True, receipt=new_id(BY_POLICY)).messages if by_policy.channels else 0
    if derived := {digest for digest, what, _, _ in tombstones.digests if what == DERIVED}:
        shorten_newest(tx)  # texts that shortening had removed before the forgetting have no digests
        forget_derived_again(tx, tombstones.key, derived)
    if key_of(tx) == tombstones.key:
        for digest, what, receipt, at in tombstones.digests:
            note_forgotten(tx, [(digest, what)], receipt, at)
        marks = [(keyed_digest(tombstones.key, MESSAGE, id_.encode()), MESSAGE) for id_ in absent]
        note_forgotten(tx, marks, new_id("fgt"), now())
    return count


def _noted_messages(tx: WriteTransaction, tombstones: Tombstones) -> list[str]:
    """Return the ids of restored messages that are recorded as forgotten but were missing in an earlier backup."""
    known = {digest for digest, what, _, _ in tombstones.digests if what == MESSAGE}
    if not known:
        return []
    ids = tx.execute(select(conversation.c.id)).scalars()
    return [id_ for id_ in ids if keyed_digest(tombstones.key, MESSAGE, id_.encode()) in known]


def _restored_channels(tx: WriteTransaction, tombstones: Tombstones) -> Iterator[tuple[ChannelRow, str]]:
    """Yield the forgotten channels that were restored, each with the receipt of its forgetting."""
    known = {(digest, what): receipt for digest, what, receipt, _ in tombstones.digests}
    if not known:
        return
    for row in tx.execute(select(channel)).all():
        names = row.name, *aliases_of(tx, row.number)
        marks = channel_digests_to_check(tombstones.key, names, row.session_id, row.owner)
        if receipt := next((known[mark] for mark in marks if mark in known), None):
            yield row, receipt
