"""Recognise which of the messages that came are stored in a channel already, by `STEPS` (docs/recognition.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, func, or_, select

from registry.domain import Message, Role, instant_of
from registry.ingest.alignment import (
    Positions,
    Texts,
    Transcript,
    Utterance,
    is_new_turn,
    latest_places,
    overlap,
    recognise,
)
from registry.ingest.paraphrase import (
    Accept,
    accept_from_client,
    accept_from_model,
    recognise_by_turns,
    recognise_shortened_resend,
)
from registry.storage.conversations.channels import ChannelRow
from registry.storage.conversations.messages import MessageRow, in_turns
from registry.storage.database import ReadTransaction
from registry.storage.exchange.counterparts import digests_here, with_named
from registry.storage.tables import conversation
from registry.text.privacy.secrets import is_masked

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
    conversation.c.forgotten,
)
STORED_ID = "stored_id"
JUST_NOW = timedelta(minutes=5)  # a model logs a turn within this time


class Sent(NamedTuple):
    """A message as it came, with the digest of its words."""

    message: Message
    digest: bytes
    stored_id: str | None = None  # its id here, as told to another machine

    @classmethod
    def of(cls, message: Message) -> Sent:
        if STORED_ID not in message.more:
            return cls(message, message.digest)
        more = {key: value for key, value in message.more.items() if key != STORED_ID}
        return cls(replace(message, more=more), message.digest, str(message.more[STORED_ID]))


Known = list[MessageRow | None]  # for each message sent the stored one it repeats, or None


@dataclass(frozen=True, slots=True)
class Recognised:
    """The result of recognition: for each message that came the stored one it repeats, or None.

    `order`: the stored messages in conversation order, or as much of the channel's end as was needed. `is_reordered`:
    another order than that of their places explains more of what came.
    """

    old: Known
    order: Sequence[MessageRow] = field(default_factory=tuple)
    is_reordered: bool = False
    end: float = 0.0  # last place of the channel, if `order` holds only one of its sessions

    def places(self) -> list[float]:
        """Return the place of each message in `order`, counted anew where they are reordered."""
        if self.is_reordered:
            return [float(at) for at in range(len(self.order))]
        return [row.place for row in self.order]

    def new_places(self) -> list[float]:
        """Return the places of the new messages: just after the message that each was sent after.

        So a resend finds the messages in the order in which they were sent.
        """
        index = {row.number: at for at, row in enumerate(self.order)}
        stored = self.places()
        places: list[float] = []
        for run in _runs_of_new(self.old):
            if run.after is not None:
                behind = index[run.after.number] + 1
            else:
                behind = index[run.before.number] if run.before is not None else len(stored)
            low = stored[behind - 1] if behind else None
            places += _between(low if stored else self.end, stored[behind : behind + 1], run.length)
        return places


class _Run(NamedTuple):
    """Some new messages in a row, and the stored ones that they were sent after and before."""

    length: int
    after: MessageRow | None
    before: MessageRow | None


def _runs_of_new(old: Known) -> list[_Run]:
    known = [-1, *(at for at, row in enumerate(old) if row is not None), len(old)]
    return [
        _Run(end - start - 1, old[start] if start >= 0 else None, old[end] if end < len(old) else None)
        for start, end in pairwise(known)
    ]


def _between(low: float | None, next_places: Sequence[float], count: int) -> list[float]:
    if not next_places:
        return [(low or 0.0) + 1 + i for i in range(count)]
    high = next_places[0]
    if low is None:
        return [high - count + i for i in range(count)]
    return [low + (high - low) * (i + 1) / (count + 1) for i in range(count)]


def recognise_stored(
    tx: ReadTransaction, into: ChannelRow, sent: Sequence[Sent], among: ColumnElement[bool] | None = None
) -> Recognised:
    """Recognise what is stored already; deleted messages count as stored, so that they do not come back.

    `among`: limits the stored messages to those of one session, if the channel holds several.
    """
    if into.seq_count == 0 or not sent:
        return Recognised([None] * len(sent))
    if among is not None:
        of_session = _by_native_id(_Stored(tx, into, sent, among), sent) or Recognised([None] * len(sent))
        return replace(of_session, end=max((row.place for row in _Stored(tx, into, sent).last(1)), default=0.0))
    if any(is_masked(one.message.text) for one in sent):
        digests = digests_here(tx, into.number, sent)
        sent = [one._replace(digest=digest) for one, digest in zip(sent, digests, strict=True)]
    stored = _Stored(tx, into, sent)
    found = next(found for step in STEPS if (found := step(stored, sent)))
    if any(one.stored_id for one in sent):
        rows = max(found.order, stored.end or stored.rows, key=len)
        old = with_named(tx, found.old, rows, sent)
        found = replace(found, old=old) if found.is_reordered else Recognised(old, rows)
    return replace(found, old=_with_forgotten(found, sent))


def _with_forgotten(found: Recognised, sent: Sequence[Sent]) -> Known:
    known = {row.number for row in found.old if row is not None}
    gone = [row for row in found.order if row.forgotten and row.number not in known]
    old = list(found.old)
    turn = None
    for at, one in enumerate(sent if gone else ()):
        if (row := old[at]) is not None:
            turn = row.turn
        elif one.message.role is Role.USER:
            turn = None
        elif one.message.native_id is None:
            old[at] = next((row for row in gone if row.turn == turn and row.role == one.message.role), None)
            gone = [row for row in gone if row is not old[at]]
    return old


MOST_ASKED = 1000  # messages looked up in one statement; for a call with more the whole channel is read
SHORTEST_END = 64  # messages read at once from the end of a channel: a turn and some before it, of several clients


class _Stored:
    """The stored messages of a channel, read when a step needs them."""

    def __init__(
        self, tx: ReadTransaction, into: ChannelRow, sent: Sequence[Sent], among: ColumnElement[bool] | None = None
    ) -> None:
        self.tx = tx
        self.sent = sent
        self.is_session = into.session_id is not None
        is_in_channel = conversation.c.channel_number == into.number
        self._is_within = is_in_channel if among is None else and_(is_in_channel, among)

    @cached_property
    def rows(self) -> Sequence[MessageRow]:
        return self.last(None)

    def last(self, count: int | None, *conditions: ColumnElement[bool]) -> Sequence[MessageRow]:
        query = select(*_COLUMNS).where(self._is_within, *conditions)
        return self.tx.execute(query.order_by(*_LATEST_PLACE_FIRST).limit(count)).all()[::-1]

    def said_then(self) -> Sequence[MessageRow]:
        """Return the messages with the words and the time of one sent; none if too many were sent."""
        moments = {one.message.timestamp for one in self.sent if one.message.timestamp}
        if not moments or len(self.sent) > MOST_ASKED:
            return []
        has_words = conversation.c.digest.in_({one.digest for one in self.sent})
        return self.last(None, has_words, conversation.c.timestamp.in_(moments))

    def next_to(self, row: MessageRow) -> Sequence[MessageRow]:
        query = select(*_COLUMNS).where(self._is_within, conversation.c.place > row.place)
        return self.tx.execute(query.order_by(conversation.c.place, conversation.c.number).limit(1)).all()

    @cached_property
    def end(self) -> Sequence[MessageRow] | None:
        """Return the end of the channel, if it is enough to recognise all of `sent`; None if the rest is needed.

        It is enough if it holds, in order, every message sent whose words are stored, the newest message, and those
        with the words and the time, or the id, of one sent. The first row only stands before the others. A call that
        begins as the channel does may be the whole conversation with another end, so it is compared with all.
        """
        if len(self.sent) > MOST_ASKED or self.sent[0].digest == self._first_words():
            return None
        has_words = conversation.c.digest.in_({one.digest for one in self.sent})
        digests = set(map(bytes, self._all(conversation.c.digest, has_words)))
        held = [_of_sent(one) for one in self.sent if one.digest in digests]
        moments = {one.message.timestamp for one in self.sent if one.message.timestamp}
        is_named = conversation.c.id.in_([one.stored_id for one in self.sent if one.stored_id])
        is_meant = or_(is_named, and_(has_words, conversation.c.timestamp.in_(moments)))
        first = self._value(func.min(conversation.c.place), is_meant)
        newest = self._value(func.max(conversation.c.timestamp))
        count = max(SHORTEST_END, len(self.sent))
        while len(rows := self.last(count)) == count:
            end = [_of_row(row) for row in rows[1:]]
            has_meant = first is None or rows[0].place < first
            has_newest = any(row.timestamp == newest for row in rows[1:])
            if has_meant and has_newest and latest_places(end, held) is not None:
                return rows
            count *= 4
        return None

    def _first_words(self) -> bytes | None:
        query = select(conversation.c.digest).where(self._is_within)
        first = self.tx.execute(query.order_by(conversation.c.place, conversation.c.number).limit(1)).scalar()
        return None if first is None else bytes(first)

    def end_by_id(self) -> Sequence[MessageRow]:
        """Return the end of the channel in which the ids sent can be, and at least one row; all if words count too."""
        ids = {one.message.native_id for one in self.sent}
        if len(ids) > MOST_ASKED or self._value(conversation.c.number, conversation.c.native_id.is_(None)) is not None:
            return self.rows
        first = self._value(func.min(conversation.c.place), conversation.c.native_id.in_(ids))
        if first is None:
            return self.last(1)
        before = self._value(func.max(conversation.c.place), conversation.c.place < first)
        return self.last(None, conversation.c.place >= (first if before is None else before))

    def has_among(self, digests: Sequence[bytes]) -> bool:
        """Return whether some of these words are stored; of too many they may be."""
        if len(digests) > MOST_ASKED:
            return True
        return bool(digests) and self._value(conversation.c.number, conversation.c.digest.in_(set(digests))) is not None

    def begins_with(self, questions: Sequence[bytes]) -> bool:
        """Return whether the first questions of the channel are these."""
        query = select(conversation.c.digest).where(self._is_within, conversation.c.role == Role.USER)
        first = query.order_by(conversation.c.place, conversation.c.number).limit(len(questions))
        return all(bytes(old) == new for old, new in zip(self.tx.execute(first).scalars(), questions, strict=False))

    def _all(self, what: ColumnElement[Any], *conditions: ColumnElement[bool]) -> Iterable[Any]:
        return self.tx.execute(select(what).where(self._is_within, *conditions).distinct()).scalars()

    def _value(self, what: ColumnElement[Any], *conditions: ColumnElement[bool]) -> Any:
        return self.tx.execute(select(what).where(self._is_within, *conditions).limit(1)).scalar()


_LATEST_PLACE_FIRST = (conversation.c.place.desc(), conversation.c.number.desc())


def _by_native_id(stored: _Stored, sent: Sequence[Sent]) -> Recognised | None:
    """Recognise by the client's own ids; messages stored without one by their words, turn by turn."""
    if not any(one.message.native_id for one in sent):
        return None
    rows = stored.end_by_id()
    by_id = {row.native_id: row for row in rows if row.native_id}
    old: Known = [by_id.get(one.message.native_id) for one in sent]
    if None in old and len(by_id) < len(rows):
        old = [of_id or nameless for of_id, nameless in zip(old, _nameless(stored.tx, rows, sent), strict=True)]
    return Recognised(old, rows)


def _nameless(tx: ReadTransaction, rows: Sequence[MessageRow], sent: Sequence[Sent]) -> Known:
    in_words = known_by_turns(tx, rows, sent, accept_from_client)
    return [row if row is not None and row.native_id is None else None for row in in_words]


def _by_turns(stored: _Stored, sent: Sequence[Sent]) -> Recognised | None:
    if not stored.is_session or not any(row.native_id for row in stored.rows):
        return None
    old = known_by_turns(stored.tx, stored.rows, sent, accept_from_model)
    if _is_new_turn(stored.rows, sent, old) and not _is_logged_just_now(stored.rows, sent, old):
        old = [None] * len(sent)
    return Recognised(old, stored.rows)


def _by_overlap(stored: _Stored, sent: Sequence[Sent]) -> Recognised | None:
    """Recognise the usual call: the last turns, then new ones. None if an old message may be among the new ones."""
    digests = [one.digest for one in sent]
    tail = stored.last(len(sent))
    known = overlap([row.digest for row in tail], digests)
    if stored.has_among(digests[known:]):
        return None
    old: Known = [*tail[len(tail) - known :], *[None] * (len(sent) - known)]
    return Recognised([None] * len(sent) if _is_new_turn(tail, sent, old) else old, tail)


def _by_time(stored: _Stored, sent: Sequence[Sent]) -> Recognised | None:
    """Recognise by words and time those before the new ones: of a chat that several clients write, each sends its own.

    None if an old message may be among the new ones, or the others stand in another order.
    """
    said = {(bytes(row.digest), row.timestamp): row for row in stored.said_then()}
    old: Known = [said.get((one.digest, one.message.timestamp)) for one in sent]
    known = [row for row in old if row is not None]
    is_in_order = all(one.place < other.place for one, other in pairwise(known))
    if not known or any(old[len(known) :]) or not is_in_order:
        return None
    if stored.has_among([one.digest for one in sent[len(known) :]]):
        return None
    return Recognised(old, [*known, *stored.next_to(known[-1])])


def _by_alignment(stored: _Stored, sent: Sequence[Sent]) -> Recognised:
    """Align with the channel; if messages stay new, try a resend with shortened answers."""
    found = replace(_best_order(stored.end[1:], sent, is_whole=False), order=stored.end) if stored.end else None
    if found is None or found.is_reordered:
        found = _best_order(stored.rows, sent)
    shortened = _as_shortened(stored, sent) if None in found.old else None
    return min(found, shortened, key=_new_count) if shortened else found


STEPS: tuple[Callable[[_Stored, Sequence[Sent]], Recognised | None], ...] = (
    _by_native_id,
    _by_turns,
    _by_overlap,
    _by_time,
    _by_alignment,
)
"""The first that has an answer gives it; the last one always has."""


def known_by_turns(tx: ReadTransaction, rows: Sequence[MessageRow], sent: Sequence[Sent], accept: Accept) -> Known:
    """Return for each message the stored one that it repeats in its turn, also in other words that `accept` accepts."""
    return _known_in_words(tx, in_turns(rows), sent, partial(recognise_by_turns, accept=accept))


def _as_shortened(stored: _Stored, sent: Sequence[Sent]) -> Recognised | None:
    """Recognise the conversation sent again from its first question on, with some answers shortened."""
    questions = [one.digest for one in sent if one.message.role is Role.USER]
    if sent[0].message.role is not Role.USER or not stored.begins_with(questions):
        return None
    rows = in_turns(stored.rows)
    if rows[0].role != Role.USER:
        return None
    old = _known_in_words(stored.tx, rows, sent, recognise_shortened_resend)
    return None if _is_new_turn(rows, sent, old) else Recognised(old, stored.rows)


def _known_in_words(
    tx: ReadTransaction,
    rows: Sequence[MessageRow],
    sent: Sequence[Sent],
    read: Callable[[Transcript, Transcript], Positions],
) -> Known:
    ours = Transcript([_of_row(row) for row in rows], stored_texts(tx, rows))
    theirs = Transcript([_of_sent(one) for one in sent], lambda places: {at: sent[at].message.text for at in places})
    return [None if place is None else rows[place] for place in read(ours, theirs)]


def stored_texts(tx: ReadTransaction, rows: Sequence[MessageRow]) -> Texts:
    """Return the texts of stored messages, by their position among them, read when they are needed."""

    def texts(places: Sequence[int]) -> Mapping[int, str]:
        if not places:
            return {}
        numbers = {rows[place].number: place for place in places}
        query = select(conversation.c.number, conversation.c.text).where(conversation.c.number.in_(numbers))
        return {numbers[row.number]: row.text for row in tx.execute(query)}

    return texts


def _best_order(rows: Sequence[MessageRow], sent: Sequence[Sent], *, is_whole: bool = True) -> Recognised:
    orders = [rows, sorted(rows, key=lambda row: (row.timestamp, row.number))]
    spoken = [_of_sent(one) for one in sent]
    readings: list[Recognised] = []
    for order in orders:
        found = recognise([_of_row(row) for row in order], spoken, is_whole=is_whole)
        old = [None if place is None else order[place] for place in found]
        readings.append(Recognised(old, order, is_reordered=order is not rows))
        if None not in old:
            break
    return min(readings, key=_new_count)


def _new_count(found: Recognised) -> int:
    return found.old.count(None)


def _is_new_turn(rows: Sequence[MessageRow], sent: Sequence[Sent], old: Known) -> bool:
    found = [None if row is None else 0 for row in old]
    return is_new_turn([_of_row(row) for row in rows], [_of_sent(one) for one in sent], found)


def _is_logged_just_now(rows: Sequence[MessageRow], sent: Sequence[Sent], old: Known) -> bool:
    """Return whether the client has just sent the last turn: a model's later times are those of its logging."""
    began = min(one.message.timestamp for one in sent if one.message.timestamp)
    said_last = max(row.timestamp for row in rows)
    is_last_turn = any(row is not None and row.timestamp == said_last for row in old)
    return is_last_turn and began - said_last <= JUST_NOW


def _of_row(row: MessageRow) -> Utterance:
    return Utterance(row.role, bytes(row.digest), row.native_id, instant_of(row.timestamp))


def _of_sent(one: Sent) -> Utterance:
    is_long = len(one.message.text) >= 40  # characters; equal words are hardly chance then
    return Utterance(one.message.role, one.digest, one.message.native_id, instant_of(one.message.timestamp), is_long)
