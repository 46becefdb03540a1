"""Which of the messages that came are stored already (contract 2.1): `alignment`, asked of a channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import select

from registry.domain import Role
from registry.ingest.message_alignment import Positions, Utterance, is_new_turn, overlap, recognise
from registry.ingest.paraphrase import by_store
from registry.ingest.paraphrase_rows import Sent, as_a_whole, retold_rows, told_by_model
from registry.storage.channels import ChannelRow
from registry.storage.database import ReadTransaction
from registry.storage.messages import MessageRow
from registry.storage.tables import conversation

_COLUMNS = (
    conversation.c.number,
    conversation.c.channel_number,
    conversation.c.id,
    conversation.c.seq,
    conversation.c.turn,
    conversation.c.place,
    conversation.c.role,
    conversation.c.digest,
    conversation.c.timestamp,
    conversation.c.native_id,
    conversation.c.received_at,
)
_FEW = 1000
"""More values than this are not put into one statement: the whole channel is read instead."""
_TELLING = 40
"""Characters from which on equal words are hardly chance."""


@dataclass(frozen=True, slots=True)
class Recognised:
    """For each message that came the stored one it repeats, or None; and the stored ones in conversation order.

    `order` holds as much of the channel's end as recognition had to look at. `is_reordered`: it is not the order
    of their places but another one, that explains more of what came.
    """

    old: list[MessageRow | None]
    order: Sequence[MessageRow] = field(default_factory=tuple)
    is_reordered: bool = False

    def places(self) -> list[float]:
        """The place of each message in `order`, counted anew where they are reordered."""
        if self.is_reordered:
            return [float(at) for at in range(len(self.order))]
        return [row.place for row in self.order]

    def new_places(self) -> list[float]:
        """Where each new message stands in the conversation: just behind the one that it was sent after.

        So what was sent once is found again as it was sent, wherever its new messages stood.
        """
        index = {row.number: at for at, row in enumerate(self.order)}
        held = self.places()
        places: list[float] = []
        at = 0
        while at < len(self.old):
            run = at
            while run < len(self.old) and self.old[run] is None:
                run += 1
            before = self.old[at - 1] if at else None
            after = self.old[run] if run < len(self.old) else None
            if before is not None:
                behind = index[before.number] + 1
            else:
                behind = index[after.number] if after is not None else len(held)
            places += _between(held[behind - 1] if behind else None, held[behind : behind + 1], run - at)
            at = run + 1
        return places


def _between(low: float | None, next_places: Sequence[float], count: int) -> list[float]:
    """That many places behind one and before the next; either may be missing."""
    if not next_places:
        return [(low or 0.0) + 1 + i for i in range(count)]
    high = next_places[0]
    if low is None:
        return [high - count + i for i in range(count)]
    return [low + (high - low) * (i + 1) / (count + 1) for i in range(count)]


def recognise_stored(tx: ReadTransaction, into: ChannelRow, sent: Sequence[Sent]) -> Recognised:
    """Deleted messages count as stored: what a user deleted does not come back with the next resend."""
    if into.seq_count == 0 or not sent:
        return Recognised([None] * len(sent))
    everything = select(*_COLUMNS).where(conversation.c.channel_number == into.number)
    everything = everything.order_by(conversation.c.place.desc(), conversation.c.number.desc())
    if any(one.native_id for one in sent):
        order = tx.execute(everything).all()[::-1]
        return Recognised(_by_name(tx, order, sent), order)
    if into.session_id is not None:
        order = tx.execute(everything).all()[::-1]
        if any(row.native_id for row in order):
            # Its client tells all of it, and better: what a tool tells again of it is in other words at most.
            return Recognised(told_by_model(tx, order, sent), order)
    digests = [one.digest for one in sent]
    tail = tx.execute(everything.limit(len(sent))).all()[::-1]
    known = overlap([row.digest for row in tail], digests)
    # The usual call: the last turns, then new ones. Only where an old message may stand among the new
    # ones is the whole channel looked at.
    if not _any_stored(tx, into, digests[known:]):
        found: Positions = [*range(len(tail) - known, len(tail)), *[None] * (len(digests) - known)]
        is_new = is_new_turn([_stored(row) for row in tail], [_spoken(one) for one in sent], found)
        return Recognised([None if is_new or place is None else tail[place] for place in found], tail)
    order = tx.execute(everything).all()[::-1]
    reading = _by_words(order, sent)
    if None in reading.old:
        reading = min(reading, Recognised(as_a_whole(tx, order, sent), order), key=lambda each: each.old.count(None))
    return reading


def _by_name(tx: ReadTransaction, rows: Sequence[MessageRow], sent: Sequence[Sent]) -> list[MessageRow | None]:
    """By native id; those the registry knows under no such id by what they say, among messages without one."""
    named = {row.native_id: row for row in rows if row.native_id}
    found: list[MessageRow | None] = [named.get(one.native_id) for one in sent]
    if None in found and len(named) < len(rows):
        for place, row in enumerate(retold_rows(tx, rows, sent, by_store)):
            if found[place] is None and row is not None and row.native_id is None:
                found[place] = row
    return found


def _by_words(order: Sequence[MessageRow], sent: Sequence[Sent]) -> Recognised:
    """Clients resend in the order they sent before, of time, or of arrival: the one that explains most."""
    orders = [
        order,
        sorted(order, key=lambda row: (row.timestamp, row.number)),
        sorted(order, key=lambda row: row.seq),
    ]
    readings: list[Recognised] = []
    for rows in orders:
        found = recognise([_stored(row) for row in rows], [_spoken(one) for one in sent])
        old = [None if place is None else rows[place] for place in found]
        readings.append(Recognised(old, rows, is_reordered=rows is not order))
        if None not in old:
            break
    return min(readings, key=lambda reading: reading.old.count(None))


def _any_stored(tx: ReadTransaction, into: ChannelRow, digests: Sequence[bytes]) -> bool:
    if not digests or len(digests) > _FEW:
        return bool(digests)
    query = select(conversation.c.number).where(
        conversation.c.channel_number == into.number, conversation.c.digest.in_(set(digests))
    )
    return tx.execute(query.limit(1)).first() is not None


def _stored(row: MessageRow) -> Utterance:
    return Utterance(bytes(row.digest), _instant(row.timestamp), row.role == Role.USER)


def _spoken(one: Sent) -> Utterance:
    is_telling = len(one.message.text) >= _TELLING
    return Utterance(one.digest, _instant(one.message.timestamp), one.message.role == Role.USER, is_telling)


def _instant(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)
