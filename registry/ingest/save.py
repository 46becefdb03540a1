"""Store each message once, however often and by whichever way it comes (docs/recognition.md)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any, Self

from sqlalchemy import ColumnElement, insert, select, text

from registry.domain import Actor, Message, Role, new_id, now, preview_of, storable
from registry.ingest.dedup import Known, Recognised, recognise_stored
from registry.ingest.own_calls import QUESTION, as_kept, is_recall
from registry.ingest.stored import Sent
from registry.storage.conversations.channels import ChannelRow, describe_channel, recount_channel
from registry.storage.conversations.messages import LATEST_FIRST, MessageRow, revise
from registry.storage.database import ReadTransaction, WriteTransaction, update_rows
from registry.storage.exchange.counterparts import grown_to
from registry.storage.exchange.edits import note_grown
from registry.storage.index.message_index import UNINDEXED, index_of, message_entry, searched_tokens
from registry.storage.safety.visibility import ask_all
from registry.storage.tables import channel, conversation
from registry.text.analysis.analyzer import ANALYZER_VERSION

SNAPSHOT = "notion_snapshot"  # record type of a page's snapshot
PAGES = frozenset({"notion"})  # sources whose sessions are pages
# metadata of the moment: stored with the new messages, not with the channel
PER_MESSAGE = ("file", "language", "model", "additional_context")

Row = dict[str, Any]  # the fields of `conversation`


@dataclass(frozen=True, slots=True)
class Saved:
    """The outcome of a call: `ids` one per message sent, in order; `new`: how many were not stored before.

    `kept_out`: why nothing of it was stored; then it has no ids, and its channel is 0.
    """

    ids: list[str]
    new: int
    received_at: datetime
    channel_number: int
    kept_out: str | None = None

    @classmethod
    def refused(cls, why: str) -> Self:
        return cls([], 0, now(), 0, why)


def save_messages(
    tx: WriteTransaction,
    into: ChannelRow,
    messages: Sequence[Message],
    *,
    source: str,
    metadata: Mapping[str, Any],
    actor: Actor,
    received_at: datetime,
    among: ColumnElement[bool] | None = None,
) -> Saved:
    """Store those of the messages that an open channel does not hold yet; all, or none if the transaction fails.

    `among`: compare only with these stored messages, because the others are of other sessions. A message with a
    `native_id` is the stored one with that id, also if its text has changed.
    """
    describe_channel(tx, into, metadata)
    sent = [Sent.of(as_kept(message)) for message in messages]
    recognised = recognise_stored(tx, into, sent, among)
    # What stands before a known message is no part of the last turn, nor is what was said in another session.
    last_turn = _last_turn(tx, into) if among is None and not any(recognised.old) else None
    rows = _new_rows(into, sent, recognised, source, metadata, actor, received_at, last_turn)
    if rows:
        places = zip(recognised.order, recognised.places(), strict=True)
        moved = [{"number": row.number, "place": place} for row, place in places if row.place != place]
        update_rows(tx, conversation, moved)
        _insert(tx, rows)
        update_rows(tx, channel, [_grown(into, rows)])
    _correct(tx, sent, recognised.old)
    new = iter(rows)
    stored = [(row.id, row.turn) if row else itemgetter("id", "turn")(next(new)) for row in recognised.old]
    recalls = {turn for one, (_, turn) in zip(sent, stored, strict=True) if is_recall(one.message)}
    unindex_questions(tx, into.number, recalls)
    return Saved([id_ for id_, _ in stored], len(rows), received_at, into.number)


def save_new(
    tx: WriteTransaction,
    new: Sequence[tuple[ChannelRow, Sequence[Message], Mapping[str, Any]]],
    *,
    source: str,
    actor: Actor,
    received_at: datetime,
) -> list[Saved]:
    """Store messages with their metadata in channels that were just made, none of them a call of our own tools."""
    rows_of = []
    for into, messages, metadata in new:
        sent = list(map(Sent.of, messages))
        nothing_known = Recognised([None] * len(sent))
        rows_of.append((into, _new_rows(into, sent, nothing_known, source, metadata, actor, received_at, None)))
    if rows_of:
        _insert(tx, [row for _, rows in rows_of for row in rows])
        update_rows(tx, channel, [_grown(into, rows) for into, rows in rows_of])
    return [Saved([row["id"] for row in rows], len(rows), received_at, into.number) for into, rows in rows_of]


def unindex_questions(tx: WriteTransaction, channel_number: int, turns: Collection[int]) -> None:
    """Remove the questions of these turns, in which another conversation was recalled, from the index.

    Otherwise a chat that only asked for a conversation would be found instead of it, by the words of the question.
    """
    if not turns:
        return
    is_question = conversation.c.seq.in_(turns), conversation.c.role == Role.USER, conversation.c.length > 0
    rows = tx.execute(select(conversation).where(conversation.c.channel_number == channel_number, *is_question)).all()
    asked = [row for row in rows if len(row.text) <= 300]  # a longer one asks for more than another conversation
    revise(tx, [(row, {"payload": {**row.payload, UNINDEXED: QUESTION}}) for row in asked])
    if asked:
        recount_channel(tx, channel_number)


def _correct(tx: WriteTransaction, sent: Sequence[Sent], old: Known) -> None:
    """Correct messages whose text or token counts changed: a client may store an answer while it is still streaming.

    Its words come from its store on this machine, or by another machine. Other registries are told of the change.
    """
    known = [(row, one) for row, one in zip(old, sent, strict=True) if row is not None]
    counted = _usage_of(
        tx, [row.number for row, one in known if one.message.native_id and one.message.more.get("usage")]
    )

    def is_corrected(row: MessageRow, one: Sent) -> bool:
        if one.message.native_id and row.native_id is None:
            return True
        if row.number in counted and counted[row.number] != one.message.more["usage"]:
            return True
        if bytes(row.digest) == one.digest:
            return False
        is_named_here = one.stored_id == row.id
        return bool(one.message.native_id) or (is_named_here and grown_to(tx, row.id, one.message.text) is not None)

    touched = {row.number: one for row, one in known if is_corrected(row, one)}
    if not touched:
        return
    alive = conversation.c.number.in_(touched), conversation.c.forgotten.is_(False)
    held = tx.execute(select(conversation).where(*alive)).all()
    if not held:
        return
    changes = [(row, _correction(row, touched[row.number])) for row in held]
    revise(tx, changes)
    recount_channel(tx, held[0].channel_number)
    if in_other_words := [row for row, news in changes if "text" in news]:
        note_grown(tx, in_other_words)


def _usage_of(tx: ReadTransaction, numbers: Sequence[int]) -> dict[int, Any]:
    if not numbers:
        return {}
    query = select(conversation.c.number, conversation.c.payload["usage"])
    return {number: usage for number, usage in tx.execute(query.where(conversation.c.number.in_(numbers)))}


def _correction(held: MessageRow, news: Sent) -> dict[str, Any]:
    native_id = news.message.native_id or held.native_id
    changes: dict[str, Any] = {"native_id": native_id, "payload": {**held.payload, **storable(news.message.more)}}
    if held.native_id is None and news.message.timestamp and held.timestamp == held.received_at:  # nobody had said when
        changes["timestamp"] = news.message.timestamp
    if held.text != storable(news.message.text):  # shortened, or its white space changed
        changes |= {"text": storable(news.message.text), "digest": news.digest}
    return changes


def _new_rows(
    into: ChannelRow,
    sent: Sequence[Sent],
    recognised: Recognised,
    source: str,
    metadata: Mapping[str, Any],
    actor: Actor,
    received_at: datetime,
    turn: int | None,
) -> list[Row]:
    meta = {name: metadata[name] for name in PER_MESSAGE if name in metadata}
    record_type = SNAPSHOT if into.source in PAGES else "conversation"
    places = iter(recognised.new_places())
    rows: list[Row] = []
    for one, known in zip(sent, recognised.old, strict=True):
        if known:
            turn = known.turn
            continue
        message, seq = one.message, into.seq_count + len(rows)
        if message.role == Role.USER or turn is None:
            turn = seq
        context = {"context": message.context} if message.context else {}
        rows.append(
            {
                "id": new_id("snap" if record_type == SNAPSHOT else "conv"),
                "record_type": record_type,
                "source": source,
                "channel": into.name,
                "channel_number": into.number,
                "payload": storable({**message.more, **context, **({"meta": meta} if meta else {})}),
                "timestamp": message.timestamp or received_at,
                "received_at": received_at,
                "actor": actor,
                "deleted": False,
                "seq": seq,
                "turn": turn,
                "place": next(places),
                "role": message.role.value,
                "text": storable(message.text),
                "digest": one.digest,
                "native_id": one.message.native_id,
                "analyzer_version": ANALYZER_VERSION,
            }
        )
    return rows


def _last_turn(tx: ReadTransaction, into: ChannelRow) -> int | None:
    if into.seq_count == 0:
        return None
    query = select(conversation.c.turn).where(conversation.c.channel_number == into.number)
    return tx.execute(query.order_by(*LATEST_FIRST).limit(1)).scalar()


def _insert(tx: WriteTransaction, rows: Sequence[Row]) -> None:
    entries = []
    for number, row in zip(_next_numbers(tx, len(rows)), rows, strict=True):
        tokens = searched_tokens(row)
        row |= {"number": number, "length": len(tokens)}
        entries.append(message_entry(row, tokens))
    tx.execute(insert(conversation), rows)
    index_of(tx).add(tx, entries)


def _next_numbers(tx: WriteTransaction, count: int) -> Iterable[int]:
    """Return numbers in order of arrival, never used again. SQLite has one writer, so the next one is free."""
    if tx.dialect.name == "sqlite":
        last = ask_all(tx, text("SELECT seq FROM sqlite_sequence WHERE name = 'conversation'")).scalar() or 0
        return range(last + 1, last + 1 + count)
    query = text("SELECT nextval('conversation_number_seq') FROM generate_series(1, :count)")
    return sorted(ask_all(tx, query, {"count": count}).scalars())


def _grown(into: ChannelRow, rows: Sequence[Row]) -> dict[str, Any]:
    moments = [row["timestamp"] for row in rows]
    was_empty = into.seq_count == 0
    asked = next((row["text"] for row in rows if row["role"] == Role.USER), None)
    return {
        "number": into.number,
        "message_count": into.message_count + len(rows),
        "seq_count": into.seq_count + len(rows),
        "token_count": into.token_count + sum(row["length"] for row in rows),
        "created_at": min(moments) if was_empty else min(into.created_at, *moments),
        "updated_at": max(moments) if was_empty else max(into.updated_at, *moments),
        "first_message_preview": into.first_message_preview or (preview_of(asked) if asked else None),
        "deleted": False,
    }
