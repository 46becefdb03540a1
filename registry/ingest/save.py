"""Store each message once, even if it is sent repeatedly and in several ways (docs/recognition.md)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any, Self

from sqlalchemy import ColumnElement, insert, select, text

from registry.domain import Actor, Message, Role, new_id, now, preview_of, storable
from registry.ingest.dedup import Recognition, RowMatches, recognise_stored
from registry.ingest.intake import CONTINUED
from registry.ingest.own_calls import QUESTION, is_recall, replace_own_call
from registry.ingest.stored_messages import MAX_LOOKUP, Sent, client_id
from registry.storage.conversations.channels import INFERRED, ChannelRow, describe_channel, recount_channel
from registry.storage.conversations.images import store_images
from registry.storage.conversations.messages import LATEST_FIRST, MessageRow, revise
from registry.storage.database import ReadTransaction, WriteTransaction, update_rows
from registry.storage.exchange.counterparts import grown_to
from registry.storage.exchange.edits import record_grown_messages, record_superseded
from registry.storage.index.message_index import UNINDEXED, index_of, message_entry, searched_tokens
from registry.storage.safety.forgetting import forget_known_words
from registry.storage.safety.visibility import ask_all
from registry.storage.tables import channel, conversation
from registry.text.analysis.analyzer import ANALYZER_VERSION

SNAPSHOT = "notion_snapshot"  # record type of a page's snapshot
PAGES = frozenset({"notion"})  # sources whose sessions are pages
# metadata that can change from message to message: stored with the new messages, not with the channel
PER_MESSAGE = ("file", "language", "model", "additional_context")

Row = dict[str, Any]  # the fields of `conversation`


@dataclass(frozen=True, slots=True)
class Saved:
    """The outcome of a call: one id per sent message, in order, and the number of new messages.

    `refusal`: the reason why nothing was stored; then there are no ids, and the channel is 0.
    """

    ids: list[str]
    new: int
    received_at: datetime
    channel_number: int
    refusal: str | None = None

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
    only: ColumnElement[bool] | None = None,
) -> Saved:
    """Store those messages that an open channel does not have yet, and update the changed ones.

    A message with a `native_id` is the stored one with that id, even if its text has changed. `only`: the condition for
    stored messages of the same session; the others are not compared.
    """
    describe_channel(tx, into, metadata)
    sent = [Sent.of(replace_own_call(message)) for message in messages]
    recognised = recognise_stored(tx, into, sent, only)
    # new messages continue the last turn only if no stored message is sent with them, and the session is the channel's
    last_turn = _last_turn(tx, into) if only is None and not any(recognised.matches) else None
    rows = _new_rows(into, sent, recognised, source, metadata, actor, received_at, last_turn)
    if rows:
        places = zip(recognised.order, recognised.places(), strict=True)
        moved = [{"number": row.number, "place": place} for row, place in places if row.place != place]
        update_rows(tx, conversation, moved)
        _insert(tx, rows)
        update_rows(tx, channel, [_channel_totals(into, rows)])
        if into.message_count and min(row["timestamp"] for row in rows) < into.created_at:
            recount_channel(tx, into.number)  # the first question may be another one
    _update_changed(tx, sent, recognised.matches)
    if rows and {**into.meta, **metadata}.get(CONTINUED):
        forget_known_words(tx, into, [row["number"] for row in rows])
    new = iter(rows)
    stored = [(row.id, row.turn) if row else itemgetter("id", "turn")(next(new)) for row in recognised.matches]
    recalls = {turn for one, (_, turn) in zip(sent, stored, strict=True) if is_recall(one.message)}
    unindex_questions(tx, into.number, recalls)
    store_images(tx, ((id_, one.message) for (id_, _), one in zip(stored, sent, strict=True)))
    return Saved([id_ for id_, _ in stored], len(rows), received_at, into.number)


def save_new(
    tx: WriteTransaction,
    new: Sequence[tuple[ChannelRow, Sequence[Message], Mapping[str, Any]]],
    *,
    source: str,
    received_at: datetime,
) -> list[Saved]:
    """Store messages from stores in channels that were just made. None of them may be a call of our own tools."""
    rows_of = []
    for into, messages, metadata in new:
        sent = list(map(Sent.of, messages))
        nothing_known = Recognition([None] * len(sent))
        rows_of.append((into, _new_rows(into, sent, nothing_known, source, metadata, Actor.READER, received_at, None)))
    if rows_of:
        _insert(tx, [row for _, rows in rows_of for row in rows])
        update_rows(tx, channel, [_channel_totals(into, rows) for into, rows in rows_of])
    for (_, messages, _), (_, rows) in zip(new, rows_of, strict=True):
        store_images(tx, zip(map(itemgetter("id"), rows), messages, strict=True))
    return [Saved([row["id"] for row in rows], len(rows), received_at, into.number) for into, rows in rows_of]


def unindex_questions(tx: WriteTransaction, channel_number: int, turns: Collection[int]) -> None:
    """Remove the questions of turns that recalled another conversation from the index.

    Otherwise the words of such a question would find the chat that asked, instead of the recalled conversation.
    """
    if not turns:
        return
    is_question = conversation.c.seq.in_(turns), conversation.c.role == Role.USER, conversation.c.length > 0
    rows = tx.execute(select(conversation).where(conversation.c.channel_number == channel_number, *is_question)).all()
    short = [row for row in rows if len(row.text) <= 300]  # a longer one asks for more than another conversation
    revise(tx, [(row, {"payload": {**row.payload, UNINDEXED: QUESTION}}) for row in short])
    if short:
        recount_channel(tx, channel_number)


def _update_changed(tx: WriteTransaction, sent: Sequence[Sent], matches: RowMatches) -> None:
    """Update stored messages whose text, id, token counts or state changed, and note new texts for other registries.

    A client may store an answer while it is streaming, or a call while it runs; its store or another machine sends the
    complete one later. A turn may be rewound after it was stored.
    """
    known = [(row, one) for row, one in zip(matches, sent, strict=True) if row is not None]
    with_usage = [row.number for row, one in known if one.message.native_id and one.message.more.get("usage")]
    stored_usage = dict(_stored(tx, with_usage, conversation.c.payload["usage"]))
    # only near the end, where states change; messages of another machine may lack the newest state
    recent = [row.number for row, one in known[-MAX_LOOKUP:] if one.message.native_id and one.stored_id is None]
    state = (conversation.c.payload[key] for key in (("tool", "status"), "superseded", "time"))
    stored_states = {number: state for number, *state in _stored(tx, recent, *state)}

    def has_changed(row: MessageRow, one: Sent) -> bool:
        if client_id(one.message.native_id) and client_id(row.native_id) is None:
            return True
        if row.number in stored_usage and stored_usage[row.number] != one.message.more["usage"]:
            return True
        if row.number in stored_states and _has_other_state(one.message, *stored_states[row.number]):
            return True
        if bytes(row.digest) == one.digest:
            return False
        is_named_here = one.stored_id == row.id
        return bool(one.message.native_id) or (is_named_here and grown_to(tx, row.id, one.message.text) is not None)

    changed = {row.number: one for row, one in known if has_changed(row, one)}
    if not changed:
        return
    is_changed = conversation.c.number.in_(changed), conversation.c.forgotten.is_(False)
    rows = tx.execute(select(conversation).where(*is_changed)).all()
    if not rows:
        return
    changes = [(row, _changed_fields(row, changed[row.number])) for row in rows]
    revise(tx, changes)
    recount_channel(tx, rows[0].channel_number)
    record_grown_messages(tx, [row for row, news in changes if "text" in news])
    states = [(row, "superseded" in row.payload, "superseded" in news["payload"]) for row, news in changes]
    for is_superseded in (True, False):
        record_superseded(
            tx, [row for row, *state in states if state == [not is_superseded, is_superseded]], is_superseded
        )


def _has_other_state(message: Message, status: str | None, superseded: Any, time: str | None) -> bool:
    """Return True if a call has another status than the stored one, a message was superseded or is no longer, or its
    time is known now.
    """
    tool = message.more.get("tool")
    new_status = tool.get("status") if isinstance(tool, Mapping) else None
    is_known_now = time == INFERRED and message.timestamp is not None and "time" not in message.more
    return is_known_now or new_status not in (None, status) or message.more.get("superseded") != superseded


def _stored(tx: ReadTransaction, numbers: Sequence[int], *fields: ColumnElement[Any]) -> Sequence[Any]:
    if not numbers:
        return []
    return tx.execute(select(conversation.c.number, *fields).where(conversation.c.number.in_(numbers))).all()


def _changed_fields(row: MessageRow, sent: Sent) -> dict[str, Any]:
    message = sent.message
    payload = {**row.payload, **storable(message.more)}
    if message.native_id and "superseded" not in message.more:
        payload.pop("superseded", None)  # the user went back to the turn
    changes: dict[str, Any] = {"native_id": message.native_id or row.native_id, "payload": payload}
    is_unknown = row.native_id is None and row.timestamp == row.received_at
    is_inferred = "time" not in message.more and payload.pop("time", None) == INFERRED
    if message.timestamp and (is_unknown or is_inferred):
        changes["timestamp"] = message.timestamp
    if row.text != storable(message.text):  # the stored text is shortened, or has other white space
        changes |= {"text": storable(message.text), "digest": sent.digest}
        if Role.USER not in (row.role, message.role):  # a part of an answer: a client may replace one by another kind
            changes["role"] = message.role.value
    return changes


def _new_rows(
    into: ChannelRow,
    sent: Sequence[Sent],
    recognised: Recognition,
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
    for one, known in zip(sent, recognised.matches, strict=True):
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
    """Return ascending numbers that were never used. SQLite has a single writer, so that the next numbers are free."""
    if tx.dialect.name == "sqlite":
        last = ask_all(tx, text("SELECT seq FROM sqlite_sequence WHERE name = 'conversation'")).scalar() or 0
        return range(last + 1, last + 1 + count)
    query = text("SELECT nextval('conversation_number_seq') FROM generate_series(1, :count)")
    return sorted(ask_all(tx, query, {"count": count}).scalars())


def _channel_totals(into: ChannelRow, rows: Sequence[Row]) -> dict[str, Any]:
    times = [row["timestamp"] for row in rows]
    was_empty = into.message_count == 0  # or all are deleted
    first_question = next((row["text"] for row in rows if row["role"] == Role.USER), None)
    return {
        "number": into.number,
        "message_count": into.message_count + len(rows),
        "seq_count": into.seq_count + len(rows),
        "token_count": into.token_count + sum(row["length"] for row in rows),
        "created_at": min(times) if was_empty else min(into.created_at, *times),
        "updated_at": max(times) if was_empty else max(into.updated_at, *times),
        "first_message_preview": into.first_message_preview or (preview_of(first_question) if first_question else None),
        "deleted": False,
    }
