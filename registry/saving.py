"""Messages stored once, however often and by whichever way they are sent (contract 2.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import insert, select, text, update

from registry.alignment import Positions, Utterance, is_new_turn, overlap, recognise
from registry.channels import ChannelRow, open_channel, recount_channel
from registry.conversations import LATEST_FIRST, MessageRow, unindex
from registry.database import ReadTransaction, WriteTransaction
from registry.domain import Message, Role, digest_of, new_id, preview_of, storable
from registry.search.analyzer import ANALYZER_VERSION, analyze
from registry.search.engines import index_of
from registry.search.index import Entry, channel_token
from registry.tables import channel, conversation


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
    sent = [_Sent(message, digest_of(message.role, storable(message.text))) for message in messages]
    old = _recognised(tx, into, sent)
    meta = storable({key: metadata[key] for key in _PER_MESSAGE if key in metadata})
    rows = _new_rows(tx, into, sent, old, meta)
    for row in rows:
        row |= {"source": source, "actor": actor, "received_at": received_at}
        row["timestamp"] = row["timestamp"] or received_at
    if rows:
        tokens = [analyze(row["text"]) for row in rows]
        for row, found in zip(rows, tokens, strict=True):
            row["length"] = len(found)
        _insert(tx, rows, tokens)
        _grow(tx, into, rows)
    _take_over(tx, sent, old)
    new_ids = iter(row["id"] for row in rows)
    ids = [row.id if row else next(new_ids) for row in old]
    return Saved(ids, len(rows), received_at, into.number)


class _Sent(NamedTuple):
    """A message as it came, with the digest of its words."""

    message: Message
    digest: bytes

    @property
    def native_id(self) -> str | None:
        """The client's own name for it."""
        named = self.message.more.get("native_id")
        return named if isinstance(named, str) else None


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
    conversation.c.native_id,
)
_FEW = 1000
"""More values than this are not put into one statement: the whole channel is read instead."""


def _recognised(tx: ReadTransaction, into: ChannelRow, sent: Sequence[_Sent]) -> list[MessageRow | None]:
    """For each message the stored one it repeats. Deleted ones count: what a user deleted does not come back."""
    if into.seq_count == 0:
        return [None] * len(sent)
    everything = select(*_RECOGNISABLE).where(conversation.c.channel_number == into.number).order_by(*LATEST_FIRST)
    if any(one.native_id for one in sent):
        return _by_name(tx.execute(everything).all()[::-1], sent)
    digests = [one.digest for one in sent]
    tail = tx.execute(everything.limit(len(sent))).all()[::-1]
    known = overlap([row.digest for row in tail], digests)
    # The usual call: the last turns, then new ones. Only where an old message may stand among the new
    # ones is the whole channel looked at.
    if not _any_stored(tx, into, digests[known:]):
        found: Positions = [*range(len(tail) - known, len(tail)), *[None] * (len(digests) - known)]
        is_new = is_new_turn([_stored(row) for row in tail], [_spoken(one) for one in sent], found)
        return [None if is_new or place is None else tail[place] for place in found]
    return _by_words(tx.execute(everything).all()[::-1], sent)


def _by_name(rows: Sequence[MessageRow], sent: Sequence[_Sent]) -> list[MessageRow | None]:
    """By native id; those the registry knows under no such id by their words, among messages without one."""
    named = {row.native_id: row for row in rows if row.native_id}
    found: list[MessageRow | None] = [named.get(one.native_id) for one in sent]
    strangers = [place for place, row in enumerate(found) if row is None]
    nameless = [row for row in rows if row.native_id is None]
    if strangers and nameless:
        for place, row in zip(strangers, _by_words(nameless, [sent[place] for place in strangers]), strict=True):
            found[place] = row
    return found


def _by_words(by_time: Sequence[MessageRow], sent: Sequence[_Sent]) -> list[MessageRow | None]:
    return _best_of([by_time, sorted(by_time, key=lambda row: row.seq)], [_spoken(one) for one in sent])


def _take_over(tx: WriteTransaction, sent: Sequence[_Sent], old: Sequence[MessageRow | None]) -> None:
    """Clients write while an answer is still streaming: a named message whose text has changed since is corrected."""
    for one, row in zip(sent, old, strict=True):
        if row is None or one.native_id is None:
            continue
        if row.native_id is None:
            named = update(conversation).where(conversation.c.number == row.number)
            tx.execute(named.values(native_id=one.native_id))
        elif bytes(row.digest) != one.digest:
            _rewrite(tx, row.number, one)


def _rewrite(tx: WriteTransaction, number: int, news: _Sent) -> None:
    row = tx.execute(select(conversation).where(conversation.c.number == number)).one()
    unindex(tx, [row])
    tokens = analyze(news.message.text)
    changes = {
        "text": storable(news.message.text),
        "digest": news.digest,
        "payload": {**row.payload, **storable(news.message.more)},
        "length": len(tokens),
        "analyzer_version": ANALYZER_VERSION,
    }
    tx.execute(update(conversation).where(conversation.c.number == number).values(**changes))
    if not row.deleted:
        index_of(tx).add(tx, [Entry(number, [channel_token(row.channel_number), *tokens])])
    recount_channel(tx, row.channel_number)


def _best_of(orders: Iterable[Sequence[MessageRow]], sent: Sequence[Utterance]) -> list[MessageRow | None]:
    """Clients resend in the order of time or in the order they sent before: the one that explains more."""
    readings = []
    for rows in orders:
        found = recognise([_stored(row) for row in rows], sent)
        readings.append([None if place is None else rows[place] for place in found])
    return min(readings, key=lambda reading: reading.count(None))


def _any_stored(tx: ReadTransaction, into: ChannelRow, digests: Sequence[bytes]) -> bool:
    if not digests or len(digests) > _FEW:
        return bool(digests)
    query = select(conversation.c.number).where(
        conversation.c.channel_number == into.number, conversation.c.digest.in_(set(digests))
    )
    return tx.execute(query.limit(1)).first() is not None


def _stored(row: MessageRow) -> Utterance:
    return Utterance(bytes(row.digest), _instant(row.timestamp), row.role == Role.USER)


def _spoken(one: _Sent) -> Utterance:
    return Utterance(one.digest, _instant(one.message.timestamp), one.message.role == Role.USER)


def _instant(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)


def _new_rows(
    tx: ReadTransaction,
    into: ChannelRow,
    sent: Sequence[_Sent],
    old: Sequence[MessageRow | None],
    meta: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """The rows to insert, without what is the same for all. A user message opens a turn, the rest belong to it."""
    rows: list[dict[str, Any]] = []
    turn = None if old and old[0] else _last_turn(tx, into)
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
