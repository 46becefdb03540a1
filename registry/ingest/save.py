"""Messages stored once, however often and by whichever way they are sent (contract 2.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, insert, select, text, update

from registry.domain import Message, Role, digest_of, new_id, preview_of, storable
from registry.ingest.dedup import Recognised, recognise_stored
from registry.ingest.paraphrase_rows import Sent
from registry.storage.channels import ChannelRow, open_channel, recount_channel
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.engines import index_of
from registry.storage.index_entries import message_entry
from registry.storage.messages import LATEST_FIRST, MessageRow, revise
from registry.storage.tables import channel, conversation
from registry.text.analyzer import ANALYZER_VERSION, analyze


@dataclass(frozen=True, slots=True)
class Saved:
    """What became of one call: `ids` one per message sent, in order; `new` of them were not stored before."""

    ids: list[str]
    new: int
    received_at: datetime
    channel_number: int


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
    """Store those of the messages that are not stored yet; all of them or, if the transaction fails, none.

    A message that a client names by a `native_id` is the stored one of that name, whatever became of its text.
    """
    into = open_channel(tx, channel_name, source, metadata, received_at)
    sent = [Sent(message, digest_of(message.role, storable(message.text))) for message in messages]
    recognised = recognise_stored(tx, into, sent)
    old = recognised.old
    meta = storable({key: metadata[key] for key in _PER_MESSAGE if key in metadata})
    rows = _new_rows(tx, into, sent, old, meta)
    for row, place in zip(rows, recognised.new_places(), strict=True):
        row |= {"source": source, "actor": actor, "received_at": received_at, "place": place}
        row["timestamp"] = row["timestamp"] or received_at
    if rows:
        _reorder(tx, recognised)
        tokens = [analyze(row["text"]) for row in rows]
        for row, found in zip(rows, tokens, strict=True):
            row["length"] = len(found)
        _insert(tx, rows, tokens)
        _grow(tx, into, rows)
    _take_over(tx, sent, old)
    new_ids = iter(row["id"] for row in rows)
    ids = [row.id if row else next(new_ids) for row in old]
    return Saved(ids, len(rows), received_at, into.number)


_PER_MESSAGE = ("file", "language", "model", "additional_context")
"""What `meta` says of the moment rather than of the channel: kept with the messages new at that moment."""


def _reorder(tx: WriteTransaction, recognised: Recognised) -> None:
    """What came was told in another order than before: the conversation takes it, so that it is known again."""
    if recognised.is_reordered:
        places = zip(recognised.order, recognised.places(), strict=True)
        moved = [{"row": row.number, "to": place} for row, place in places if row.place != place]
        if moved:
            statement = update(conversation).where(conversation.c.number == bindparam("row"))
            tx.execute(statement.values(place=bindparam("to")), moved)


def _take_over(tx: WriteTransaction, sent: Sequence[Sent], old: Sequence[MessageRow | None]) -> None:
    """Clients write while an answer is still streaming: a named message whose text has changed since is corrected."""
    touched = None
    for one, row in zip(sent, old, strict=True):
        if row is None or one.native_id is None:
            continue
        if row.native_id is None:
            _adopt(tx, row, one)
        elif bytes(row.digest) != one.digest:
            _rewrite(tx, row.number, one)
        else:
            continue
        touched = row.channel_number
    if touched is not None:
        recount_channel(tx, touched)


def _adopt(tx: WriteTransaction, row: MessageRow, news: Sent) -> None:
    """A message that was pushed takes the name its client has for it, its words, and when it was said."""
    held = tx.execute(select(conversation).where(conversation.c.number == row.number)).one()
    changes: dict[str, Any] = {"native_id": news.native_id, "payload": {**held.payload, **storable(news.message.more)}}
    if news.message.timestamp and row.timestamp == row.received_at:  # nobody had said when
        changes["timestamp"] = news.message.timestamp
    if held.text != storable(news.message.text):  # shortened, or its white space changed
        changes |= {"text": storable(news.message.text), "digest": news.digest}
    revise(tx, held, changes)


def _rewrite(tx: WriteTransaction, number: int, news: Sent) -> None:
    row = tx.execute(select(conversation).where(conversation.c.number == number)).one()
    payload = {**row.payload, **storable(news.message.more)}
    revise(tx, row, {"text": storable(news.message.text), "digest": news.digest, "payload": payload})


def _new_rows(
    tx: ReadTransaction,
    into: ChannelRow,
    sent: Sequence[Sent],
    old: Sequence[MessageRow | None],
    meta: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """The rows to insert, without what is the same for all. A user message opens a turn, the rest belong to it."""
    rows: list[dict[str, Any]] = []
    turn = None if any(old) else _last_turn(tx, into)  # what stands before a known message is no part of the last turn
    for one, known in zip(sent, old, strict=True):
        message = one.message
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
                "digest": one.digest,
                "native_id": one.native_id,
                "analyzer_version": ANALYZER_VERSION,
            }
        )
    return rows


def _last_turn(tx: ReadTransaction, into: ChannelRow) -> int | None:
    query = select(conversation.c.turn).where(conversation.c.channel_number == into.number)
    return tx.execute(query.order_by(*LATEST_FIRST).limit(1)).scalar()


def _insert(tx: WriteTransaction, rows: Sequence[dict[str, Any]], tokens: Sequence[Sequence[str]]) -> None:
    for number, row in zip(_next_numbers(tx, len(rows)), rows, strict=True):
        row["number"] = number
    tx.execute(insert(conversation), rows)
    index_of(tx).add(tx, [message_entry(row, found) for row, found in zip(rows, tokens, strict=True)])


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
