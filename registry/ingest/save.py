"""Messages stored once, however often and by whichever way they come (docs/recognition.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any

from sqlalchemy import bindparam, select, text, update

from registry.domain import Message, Role, new_id, preview_of, storable
from registry.ingest.dedup import Known, Recognised, Sent, all_new, recognise_stored
from registry.ingest.let_in import LONGEST_QUESTION, QUESTION, as_kept, is_recall
from registry.storage.conversations.channels import ChannelRow, describe_channel, recount_channel
from registry.storage.conversations.messages import LATEST_FIRST, MessageRow, revise
from registry.storage.database import ReadTransaction, WriteTransaction, insert_many
from registry.storage.index.engines import index_of
from registry.storage.index.index_entries import UNINDEXED, message_entry, searched_tokens
from registry.storage.tables import channel, conversation
from registry.text.analysis.analyzer import ANALYZER_VERSION


@dataclass(frozen=True, slots=True)
class Saved:
    """What became of one call: `ids` one per message sent, in order; `new` of them were not stored before.

    `kept_out`: why nothing of it was stored; then it has no ids, and its channel is 0.
    """

    ids: list[str]
    new: int
    received_at: datetime
    channel_number: int
    kept_out: str | None = None


SNAPSHOT = "notion_snapshot"
"""The type of a record that holds a page as it was, and nothing that was said."""
PAGES = frozenset({"notion"})
"""The sources of pages."""
TOOL, HOOK, READER, COPY = "ao", "hook", "reader", "copy"
"""The actors: who stored a message. A model through a tool (by the name of the orchestrator, for it is its caller), a
client's hook, the reader of a client's own store, and that of a shortened copy beside it."""


def save_messages(
    tx: WriteTransaction,
    into: ChannelRow,
    messages: Sequence[Message],
    *,
    source: str,
    metadata: Mapping[str, Any],
    actor: str,
    received_at: datetime,
    is_end: bool = False,
) -> Saved:
    """Store those of the messages that an open channel does not hold yet; all, or none if the transaction fails.

    `is_end`: they are known to come behind all that is stored.
    A message that a client names by a `native_id` is the stored one of that name, whatever became of its text.
    """
    describe_channel(tx, into, metadata)
    sent = [Sent.of(as_kept(message)) for message in messages]
    recognised = all_new(tx, into, sent) if is_end else recognise_stored(tx, into, sent)
    common = {"source": source, "actor": actor, "received_at": received_at}
    rows = [{**row, **common} for row in _new_rows(tx, into, sent, recognised, metadata, received_at)]
    if rows:
        _reorder(tx, recognised)
        _insert(tx, rows)
        tx.execute(_GROW, _grown(into, rows))
    _correct(tx, sent, recognised.old)
    new = iter(rows)
    stored = [(row.id, row.turn) if row else itemgetter("id", "turn")(next(new)) for row in recognised.old]
    recalls = {turn for one, (_, turn) in zip(sent, stored, strict=True) if is_recall(one.message)}
    unindex_questions(tx, into.number, recalls)
    return Saved([id_ for id_, _ in stored], len(rows), received_at, into.number)


def save_new(
    tx: WriteTransaction,
    sent: Sequence[tuple[ChannelRow, Sequence[Message], Mapping[str, Any]]],
    *,
    source: str,
    actor: str,
    received_at: datetime,
) -> list[Saved]:
    """Store all messages of channels that were just made, none of them a mark of a recall; with what `meta` says."""
    common = {"source": source, "actor": actor, "received_at": received_at}
    rows = []
    for into, messages, metadata in sent:
        came = [Sent.of(as_kept(message)) for message in messages]
        nothing = Recognised([None] * len(came))
        rows.append([{**row, **common} for row in _new_rows(tx, into, came, nothing, metadata, received_at)])
    if rows:
        _insert(tx, [row for of_channel in rows for row in of_channel])
        tx.execute(_GROW, [_grown(into, of_channel) for (into, _, _), of_channel in zip(sent, rows, strict=True)])
    return [
        Saved([row["id"] for row in of_channel], len(of_channel), received_at, into.number)
        for (into, _, _), of_channel in zip(sent, rows, strict=True)
    ]


def unindex_questions(tx: WriteTransaction, channel_number: int, turns: Collection[int]) -> None:
    """Keep the questions of these turns, in which another conversation was recalled, but let nothing find them.

    Who only asks for another conversation would else be found in its place: in the very words that it is asked for.
    """
    if not turns:
        return
    is_question = conversation.c.seq.in_(turns), conversation.c.role == Role.USER, conversation.c.length > 0
    rows = tx.execute(select(conversation).where(conversation.c.channel_number == channel_number, *is_question)).all()
    asked = [row for row in rows if len(row.text) <= LONGEST_QUESTION]
    revise(tx, [(row, {"payload": {**row.payload, UNINDEXED: QUESTION}}) for row in asked])
    if asked:
        recount_channel(tx, channel_number)


_PER_MESSAGE = ("file", "language", "model", "additional_context")
"""What `meta` says of the moment rather than of the channel: kept with the messages new at that moment."""


def _reorder(tx: WriteTransaction, recognised: Recognised) -> None:
    """What came was in another order than before: the conversation takes it, so that it is recognised again."""
    places = zip(recognised.order, recognised.places(), strict=True)
    moved = [{"row": row.number, "to": place} for row, place in places if row.place != place]
    if moved:
        statement = update(conversation).where(conversation.c.number == bindparam("row"))
        tx.execute(statement.values(place=bindparam("to")), moved)


def _correct(tx: WriteTransaction, sent: Sequence[Sent], old: Known) -> None:
    """Clients write while an answer is still streaming: a message of theirs whose text has changed is corrected."""
    touched = {
        row.number: (row, one)
        for one, row in zip(sent, old, strict=True)
        if row is not None and one.native_id and (row.native_id is None or bytes(row.digest) != one.digest)
    }
    if not touched:
        return
    alive = conversation.c.number.in_(touched), conversation.c.forgotten.is_(False)
    held = tx.execute(select(conversation).where(*alive)).all()
    if not held:
        return
    revise(tx, [(row, _correction(row, touched[row.number][1])) for row in held])
    recount_channel(tx, held[0].channel_number)


def _correction(held: MessageRow, news: Sent) -> dict[str, Any]:
    """What changes in a message that its client has in other words, or that was stored without its client's id."""
    changes: dict[str, Any] = {"native_id": news.native_id, "payload": {**held.payload, **storable(news.message.more)}}
    if held.native_id is None and news.message.timestamp and held.timestamp == held.received_at:  # nobody had said when
        changes["timestamp"] = news.message.timestamp
    if held.text != storable(news.message.text):  # shortened, or its white space changed
        changes |= {"text": storable(news.message.text), "digest": news.digest}
    return changes


def _new_rows(
    tx: ReadTransaction,
    into: ChannelRow,
    sent: Sequence[Sent],
    recognised: Recognised,
    metadata: Mapping[str, Any],
    received_at: datetime,
) -> list[dict[str, Any]]:
    """The rows to insert, without what is the same for all. A user message opens a turn, the rest belong to it."""
    old = recognised.old
    meta = storable({key: metadata[key] for key in _PER_MESSAGE if key in metadata})
    places = iter(recognised.new_places())
    rows: list[dict[str, Any]] = []
    turn = None if any(old) else _last_turn(tx, into)  # what stands before a known message is no part of the last turn
    for one, known in zip(sent, old, strict=True):
        if known:
            turn = known.turn
            continue
        seq = into.seq_count + len(rows)
        if one.message.role == Role.USER or turn is None:
            turn = seq
        payload = {**_payload(one.message), **({"meta": meta} if meta else {})}
        timestamp = one.message.timestamp or received_at
        where = {"seq": seq, "turn": turn, "place": next(places), "timestamp": timestamp}
        rows.append({**_row(into, one), **where, "payload": payload})
    return rows


def _payload(message: Message) -> dict[str, Any]:
    carried: dict[str, Any] = storable({**message.more, **({"context": message.context} if message.context else {})})
    return carried


def _row(into: ChannelRow, one: Sent) -> dict[str, Any]:
    is_snapshot = into.source in PAGES
    return {
        "id": new_id("snap" if is_snapshot else "conv"),
        "record_type": SNAPSHOT if is_snapshot else "conversation",
        "channel": into.name,
        "channel_number": into.number,
        "deleted": False,
        "role": one.message.role.value,
        "text": storable(one.message.text),
        "digest": one.digest,
        "native_id": one.native_id,
        "analyzer_version": ANALYZER_VERSION,
    }


def _last_turn(tx: ReadTransaction, into: ChannelRow) -> int | None:
    if into.seq_count == 0:
        return None
    query = select(conversation.c.turn).where(conversation.c.channel_number == into.number)
    return tx.execute(query.order_by(*LATEST_FIRST).limit(1)).scalar()


def _insert(tx: WriteTransaction, rows: Sequence[dict[str, Any]]) -> None:
    tokens = [searched_tokens(row) for row in rows]
    for number, row, found in zip(_next_numbers(tx, len(rows)), rows, tokens, strict=True):
        row |= {"number": number, "length": len(found)}
    insert_many(tx, conversation, rows)
    index_of(tx).add(tx, [message_entry(row, found) for row, found in zip(rows, tokens, strict=True)])


def _next_numbers(tx: WriteTransaction, count: int) -> Iterable[int]:
    """Numbers in order of arrival, never used again. SQLite has one writer, so the next one is free."""
    if tx.dialect.name == "sqlite":
        last = tx.execute(text("SELECT seq FROM sqlite_sequence WHERE name = 'conversation'")).scalar() or 0
        return range(last + 1, last + 1 + count)
    query = text("SELECT nextval('conversation_number_seq') FROM generate_series(1, :count)")
    return sorted(tx.execute(query, {"count": count}).scalars())


def _grown(into: ChannelRow, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The channel's counts and span with what is new."""
    moments = [row["timestamp"] for row in rows]
    was_empty = into.seq_count == 0
    asked = next((row["text"] for row in rows if row["role"] == Role.USER), None)
    return {
        "grown": into.number,
        "message_count": into.message_count + len(rows),
        "seq_count": into.seq_count + len(rows),
        "token_count": into.token_count + sum(row["length"] for row in rows),
        "created_at": min(moments) if was_empty else min(into.created_at, *moments),
        "updated_at": max(moments) if was_empty else max(into.updated_at, *moments),
        "first_message_preview": into.first_message_preview or (preview_of(asked) if asked else None),
        "deleted": False,
    }


_GROW = update(channel).where(channel.c.number == bindparam("grown"))
