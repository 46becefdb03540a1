"""Messages: stored once, however often they are sent; read in order; deleted softly."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import eq, ge, le
from typing import Any

from sqlalchemy import ColumnElement, Row, delete, insert, select, text, update

from registry.alignment import Positions, Utterance, is_new_turn, overlap, recognise
from registry.channels import ChannelRow, open_channel, recount_channel
from registry.conditions import given_conditions, is_in
from registry.database import ReadTransaction, WriteTransaction
from registry.domain import Message, Role, digest_of, format_time, new_id, preview_of, storable
from registry.errors import NotFound
from registry.paging import Page, is_past, read_page
from registry.search.analyzer import ANALYZER_VERSION, analyze
from registry.search.engines import index_of
from registry.search.index import Entry, channel_token
from registry.tables import channel, conversation

MessageRow = Row[*tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Saved:
    """What became of one call: `ids` one per message sent, in order; `new` of them were not stored before."""

    ids: list[str]
    new: int
    received_at: datetime


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """Which messages to list; None means any. `numbers` limits to messages found by content."""

    channel: str | None = None
    source: str | None = None
    roles: Sequence[str] | None = None
    from_: datetime | None = None
    to: datetime | None = None
    include_deleted: bool = False
    numbers: Sequence[int] | None = None


def save_messages(
    tx: WriteTransaction,
    channel_name: str,
    messages: Sequence[Message],
    *,
    source: str,
    metadata: Mapping[str, Any],
    actor: str,
    received_at: datetime,
) -> Saved:
    """Store those of the messages that are not stored yet; all of them or, if the transaction fails, none."""
    into = open_channel(tx, channel_name, source, metadata, received_at)
    digests = [digest_of(message.role, storable(message.text)) for message in messages]
    old = _recognised(tx, into, messages, digests)
    meta = storable({key: metadata[key] for key in _PER_MESSAGE if key in metadata})
    rows = _new_rows(tx, into, messages, digests, old, meta)
    for row in rows:
        row |= {"source": source, "actor": actor, "received_at": received_at}
        row["timestamp"] = row["timestamp"] or received_at
    if rows:
        tokens = [analyze(row["text"]) for row in rows]
        for row, found in zip(rows, tokens, strict=True):
            row["length"] = len(found)
        _insert(tx, rows, tokens)
        _grow(tx, into, rows)
    new_ids = iter(row["id"] for row in rows)
    ids = [row.id if row else next(new_ids) for row in old]
    return Saved(ids, len(rows), received_at)


_PER_MESSAGE = ("file", "language", "model", "additional_context")
"""What `meta` says of the moment rather than of the channel: kept with the messages new at that moment."""

_RECOGNISABLE = (
    conversation.c.number,
    conversation.c.id,
    conversation.c.seq,
    conversation.c.turn,
    conversation.c.role,
    conversation.c.digest,
    conversation.c.timestamp,
)
_LATEST_FIRST = (conversation.c.timestamp.desc(), conversation.c.number.desc())


def _recognised(
    tx: ReadTransaction, into: ChannelRow, messages: Sequence[Message], digests: Sequence[bytes]
) -> list[MessageRow | None]:
    """For each message the stored one it repeats. Deleted ones count: what a user deleted does not come back."""
    everything = select(*_RECOGNISABLE).where(conversation.c.channel_number == into.number).order_by(*_LATEST_FIRST)
    tail = tx.execute(everything.limit(len(messages))).all()[::-1]
    sent = [_sent(message, digest) for message, digest in zip(messages, digests, strict=True)]
    known = overlap([row.digest for row in tail], digests)
    # The usual call: the last turns, then new ones. Only where an old message may stand among the new
    # ones is the whole channel looked at.
    if not _any_stored(tx, into, digests[known:]):
        found: Positions = [*range(len(tail) - known, len(tail)), *[None] * (len(digests) - known)]
        is_new = is_new_turn([_stored(row) for row in tail], sent, found)
        return [None if is_new or place is None else tail[place] for place in found]
    by_time = tx.execute(everything).all()[::-1]
    return _best_of([by_time, sorted(by_time, key=lambda row: row.seq)], sent)


def _best_of(orders: Iterable[Sequence[MessageRow]], sent: Sequence[Utterance]) -> list[MessageRow | None]:
    """Clients resend in the order of time or in the order they sent before: the one that explains more."""
    readings = []
    for rows in orders:
        found = recognise([_stored(row) for row in rows], sent)
        readings.append([None if place is None else rows[place] for place in found])
    return min(readings, key=lambda reading: reading.count(None))


def _any_stored(tx: ReadTransaction, into: ChannelRow, digests: Sequence[bytes]) -> bool:
    query = select(conversation.c.number).where(
        conversation.c.channel_number == into.number, conversation.c.digest.in_(set(digests))
    )
    return bool(digests) and into.seq_count > 0 and tx.execute(query.limit(1)).first() is not None


def _stored(row: MessageRow) -> Utterance:
    return Utterance(bytes(row.digest), _instant(row.timestamp), row.role == Role.USER)


def _sent(message: Message, digest: bytes) -> Utterance:
    return Utterance(digest, _instant(message.timestamp), message.role == Role.USER)


def _instant(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)


def _new_rows(
    tx: ReadTransaction,
    into: ChannelRow,
    messages: Sequence[Message],
    digests: Sequence[bytes],
    old: Sequence[MessageRow | None],
    meta: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """The rows to insert, without what is the same for all. A user message opens a turn, the rest belong to it."""
    rows: list[dict[str, Any]] = []
    turn = None if old and old[0] else _last_turn(tx, into)
    for message, digest, known in zip(messages, digests, old, strict=True):
        if known:
            turn = known.turn
            continue
        seq = into.seq_count + len(rows)
        if message.role == Role.USER or turn is None:
            turn = seq
        carried = {**message.more, **({"context": message.context} if message.context else {})}
        rows.append(
            {
                "id": new_id("conv"),
                "record_type": "conversation",
                "channel": into.name,
                "channel_number": into.number,
                "payload": {**storable(carried), **({"meta": meta} if meta else {})},
                "timestamp": message.timestamp,
                "deleted": False,
                "seq": seq,
                "turn": turn,
                "role": message.role.value,
                "text": storable(message.text),
                "digest": digest,
                "analyzer_version": ANALYZER_VERSION,
            }
        )
    return rows


def _last_turn(tx: ReadTransaction, into: ChannelRow) -> int | None:
    query = select(conversation.c.turn).where(conversation.c.channel_number == into.number)
    return tx.execute(query.order_by(*_LATEST_FIRST).limit(1)).scalar()


def _insert(tx: WriteTransaction, rows: Sequence[dict[str, Any]], tokens: Sequence[Sequence[str]]) -> None:
    for number, row in zip(_next_numbers(tx, len(rows)), rows, strict=True):
        row["number"] = number
    tx.execute(insert(conversation), rows)
    scope = channel_token(rows[0]["channel_number"])
    index_of(tx).add(tx, [Entry(row["number"], [scope, *found]) for row, found in zip(rows, tokens, strict=True)])


def _next_numbers(tx: WriteTransaction, count: int) -> Iterable[int]:
    """Numbers in order of arrival, never used again. SQLite has one writer, so the next one is free."""
    if tx.dialect.name == "sqlite":
        last = tx.execute(text("SELECT seq FROM sqlite_sequence WHERE name = 'conversation'")).scalar() or 0
        return range(last + 1, last + 1 + count)
    query = text("SELECT nextval('conversation_number_seq') FROM generate_series(1, :count)")
    return sorted(tx.execute(query, {"count": count}).scalars())


def _grow(tx: WriteTransaction, into: ChannelRow, rows: Sequence[Mapping[str, Any]]) -> None:
    """Tell the channel what it gained."""
    moments = [row["timestamp"] for row in rows]
    was_empty = into.seq_count == 0
    asked = next((row["text"] for row in rows if row["role"] == Role.USER), None)
    tx.execute(
        update(channel)
        .where(channel.c.number == into.number)
        .values(
            message_count=into.message_count + len(rows),
            seq_count=into.seq_count + len(rows),
            token_count=into.token_count + sum(row["length"] for row in rows),
            created_at=min(moments) if was_empty else min(into.created_at, *moments),
            updated_at=max(moments) if was_empty else max(into.updated_at, *moments),
            first_message_preview=into.first_message_preview or (preview_of(asked) if asked else None),
            deleted=False,
        )
    )


def messages_of(
    tx: ReadTransaction,
    channel_number: int,
    *,
    limit: int,
    roles: Sequence[str] | None = None,
    from_: datetime | None = None,
    to: datetime | None = None,
    before: tuple[datetime, int] | None = None,
    include_deleted: bool = False,
) -> list[MessageRow]:
    """The last `limit` messages of a channel, oldest first; `before` a place (timestamp, number)."""
    conditions = _conditions(MessageFilter(None, None, roles, from_, to, include_deleted))
    if before:
        conditions.append(is_past(conversation, conversation.c.timestamp, before, "desc"))
    query = select(conversation).where(conversation.c.channel_number == channel_number, *conditions)
    return list(tx.execute(query.order_by(*_LATEST_FIRST).limit(limit)).all()[::-1])


Turn = tuple[int, int]
"""A turn's identity: channel number, and the seq of the message that opens it."""


def turns_of(tx: ReadTransaction, turns: Iterable[Turn]) -> list[MessageRow]:
    """All messages of some turns, in conversation order."""
    by_channel: dict[int, list[int]] = defaultdict(list)
    for channel_number, turn in turns:
        by_channel[channel_number].append(turn)
    rows: list[MessageRow] = []
    for number, of_channel in by_channel.items():
        query = select(conversation).where(
            conversation.c.channel_number == number,
            conversation.c.turn.in_(of_channel),
            conversation.c.deleted.is_(False),
        )
        rows += tx.execute(query).all()
    return _in_order(rows)


def _in_order(rows: Sequence[MessageRow]) -> list[MessageRow]:
    """Asked to sort a few rows, SQLite would rather walk all messages in order of time; so we do it."""
    return sorted(rows, key=lambda row: (row.timestamp, row.number))


def by_numbers(tx: ReadTransaction, numbers: Sequence[int]) -> list[MessageRow]:
    """The messages with these numbers that are not deleted, in conversation order."""
    query = select(conversation).where(conversation.c.number.in_(numbers), conversation.c.deleted.is_(False))
    return _in_order(tx.execute(query).all())


def list_messages(tx: ReadTransaction, wanted: MessageFilter, page: Page) -> dict[str, Any]:
    """A page of messages by time."""
    paged = read_page(tx, conversation, conversation.c.timestamp, _conditions(wanted), page)
    return paged.answer([message_item(row) for row in paged.rows])


def _conditions(wanted: MessageFilter) -> list[ColumnElement[bool]]:
    return given_conditions(
        (eq, conversation.c.channel, wanted.channel),
        (eq, conversation.c.source, wanted.source),
        (is_in, conversation.c.role, wanted.roles),
        (ge, conversation.c.timestamp, wanted.from_),
        (le, conversation.c.timestamp, wanted.to),
        (is_in, conversation.c.number, wanted.numbers),
        (eq, conversation.c.deleted, None if wanted.include_deleted else False),
    )


def get_message(tx: ReadTransaction, message_id: str, *, include_deleted: bool = False) -> MessageRow:
    """The message with that id; NotFound if there is none, or it was deleted."""
    row = tx.execute(select(conversation).where(conversation.c.id == message_id)).first()
    if row is None or (row.deleted and not include_deleted):
        raise NotFound("No such message", f"No message {message_id!r} in the registry")
    return row


def delete_message(tx: WriteTransaction, message_id: str, *, soft: bool) -> dict[str, Any]:
    """Delete a message so that nothing finds it; softly it can be restored. Returns it as it now is."""
    row = get_message(tx, message_id, include_deleted=True)
    _unindex(tx, [row])
    if soft:
        tx.execute(update(conversation).where(conversation.c.number == row.number).values(deleted=True))
    else:
        tx.execute(delete(conversation).where(conversation.c.number == row.number))
    recount_channel(tx, row.channel_number)
    return {**message_item(row), "deleted": True}


def restore_message(tx: WriteTransaction, message_id: str) -> dict[str, Any]:
    """Take a soft deletion back. Returns the message as it now is; NotFound if it is gone for good."""
    row = get_message(tx, message_id, include_deleted=True)
    if row.deleted:
        found = analyze(row.text)
        changes = {"deleted": False, "length": len(found), "analyzer_version": ANALYZER_VERSION}
        tx.execute(update(conversation).where(conversation.c.number == row.number).values(**changes))
        index_of(tx).add(tx, [Entry(row.number, [channel_token(row.channel_number), *found])])
        recount_channel(tx, row.channel_number)
    return {**message_item(row), "deleted": False}


def delete_channel(tx: WriteTransaction, row: ChannelRow, *, soft: bool) -> None:
    """Delete a channel and all it holds; softly, its messages can be restored one by one."""
    within = conversation.c.channel_number == row.number
    _unindex(tx, tx.execute(select(conversation).where(within)).all())
    if soft:
        tx.execute(update(conversation).where(within).values(deleted=True))
        recount_channel(tx, row.number)
        tx.execute(update(channel).where(channel.c.number == row.number).values(deleted=True))
    else:
        tx.execute(delete(conversation).where(within))
        tx.execute(delete(channel).where(channel.c.number == row.number))


def _unindex(tx: WriteTransaction, rows: Sequence[MessageRow]) -> None:
    entries = [
        Entry(row.number, [channel_token(row.channel_number), *analyze(row.text)]) for row in rows if not row.deleted
    ]
    if entries:
        index_of(tx).remove(tx, entries)


def message_item(row: MessageRow) -> dict[str, Any]:
    """A message as the outside sees it (contract 5, a conversation item)."""
    return {
        "id": row.id,
        "channel": row.channel,
        "source": row.source,
        "role": row.role,
        "text": row.text,
        "timestamp": format_time(row.timestamp),
        "context": row.payload.get("context"),
        "actor": row.actor,
        "deleted": row.deleted,
        "payload": row.payload,
        "record_type": row.record_type,
        "received_at": format_time(row.received_at),
    }
