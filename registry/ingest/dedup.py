"""Recognise which of the messages that came are stored in a channel already, by `STEPS` (docs/recognition.md)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from itertools import pairwise

from sqlalchemy import ColumnElement, select

from registry.domain import Role
from registry.ingest.alignment import Positions, Texts, Transcript, is_new_turn, overlap, recognise
from registry.ingest.paraphrase import (
    Accept,
    accept_from_client,
    accept_from_model,
    recognise_by_turns,
    recognise_shortened_resend,
)
from registry.ingest.stored import Sent, StoredMessages, utterance_of_row, utterance_of_sent
from registry.storage.conversations.channels import ChannelRow
from registry.storage.conversations.messages import MessageRow, in_turns
from registry.storage.database import ReadTransaction
from registry.storage.exchange.counterparts import digests_here, with_named
from registry.storage.tables import conversation
from registry.text.privacy.secrets import is_masked

JUST_NOW = timedelta(minutes=5)  # a model logs a turn within this time


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
        known = [(at, index[row.number]) for at, row in enumerate(self.old) if row is not None]
        before_first = (known[0][1] if known else len(stored)) - 1
        places: list[float] = []
        for (start, after), (end, _) in pairwise([(-1, before_first), *known, (len(self.old), 0)]):
            low = stored[after] if after >= 0 else None
            places += _between(low if stored else self.end, stored[after + 1 : after + 2], end - start - 1)
        return places


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
        of_session = _by_native_id(StoredMessages(tx, into, sent, among), sent) or Recognised([None] * len(sent))
        return replace(of_session, end=max((row.place for row in StoredMessages(tx, into, sent).last(1)), default=0.0))
    if any(is_masked(one.message.text) for one in sent):
        digests = digests_here(tx, into.number, sent)
        sent = [one._replace(digest=digest) for one, digest in zip(sent, digests, strict=True)]
    stored = StoredMessages(tx, into, sent)
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


def _by_native_id(stored: StoredMessages, sent: Sequence[Sent]) -> Recognised | None:
    """Recognise by the client's own ids; messages stored without one by their words, turn by turn."""
    if not any(one.message.native_id for one in sent):
        return None
    rows = stored.end_by_id()
    by_id = {row.native_id: row for row in rows if row.native_id}
    old: Known = [by_id.get(one.message.native_id) for one in sent]
    if None in old and len(by_id) < len(rows):
        in_words = known_by_turns(stored.tx, rows, sent, accept_from_client)
        nameless = [row if row is not None and row.native_id is None else None for row in in_words]
        old = [of_id or of_words for of_id, of_words in zip(old, nameless, strict=True)]
    return Recognised(old, rows)


def _by_turns(stored: StoredMessages, sent: Sequence[Sent]) -> Recognised | None:
    if not stored.is_session or not any(row.native_id for row in stored.rows):
        return None
    old = known_by_turns(stored.tx, stored.rows, sent, accept_from_model)
    if _is_new_turn(stored.rows, sent, old) and not _is_logged_just_now(stored.rows, sent, old):
        old = [None] * len(sent)
    return Recognised(old, stored.rows)


def _by_overlap(stored: StoredMessages, sent: Sequence[Sent]) -> Recognised | None:
    """Recognise the usual call: the last turns, then new ones. None if an old message may be among the new ones."""
    digests = [one.digest for one in sent]
    tail = stored.last(len(sent))
    known = overlap([row.digest for row in tail], digests)
    if stored.has_among(digests[known:]):
        return None
    old: Known = [*tail[len(tail) - known :], *[None] * (len(sent) - known)]
    return Recognised([None] * len(sent) if _is_new_turn(tail, sent, old) else old, tail)


def _by_time(stored: StoredMessages, sent: Sequence[Sent]) -> Recognised | None:
    """Recognise by words and time those before the new ones: of a chat that several clients write, each sends its own.

    Where all are known their order does not matter. None if an old message may be among the new ones, or the others
    stand in another order.
    """
    said = {(bytes(row.digest), row.timestamp): row for row in stored.said_then()}
    old: Known = [said.get((one.digest, one.message.timestamp)) for one in sent]
    known = [row for row in old if row is not None]
    if len({row.number for row in known}) == len(sent):
        return Recognised(old, sorted(known, key=lambda row: row.place))
    is_in_order = all(one.place < other.place for one, other in pairwise(known))
    if not known or any(old[len(known) :]) or not is_in_order:
        return None
    if stored.has_among([one.digest for one in sent[len(known) :]]):
        return None
    return Recognised(old, [*known, *stored.next_to(known[-1])])


def _by_alignment(stored: StoredMessages, sent: Sequence[Sent]) -> Recognised:
    """Align with the channel; if messages stay new, try a resend with shortened answers."""
    found = replace(_best_order(stored.end[1:], sent, is_whole=False), order=stored.end) if stored.end else None
    if found is None or found.is_reordered:
        found = _best_order(stored.rows, sent)
    shortened = _as_shortened(stored, sent) if None in found.old else None
    return min(found, shortened, key=_new_count) if shortened else found


STEPS: tuple[Callable[[StoredMessages, Sequence[Sent]], Recognised | None], ...] = (
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


def _as_shortened(stored: StoredMessages, sent: Sequence[Sent]) -> Recognised | None:
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
    ours = Transcript([utterance_of_row(row) for row in rows], stored_texts(tx, rows))
    theirs = Transcript(
        [utterance_of_sent(one) for one in sent], lambda places: {at: sent[at].message.text for at in places}
    )
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
    spoken = [utterance_of_sent(one) for one in sent]
    readings: list[Recognised] = []
    for order in orders:
        found = recognise([utterance_of_row(row) for row in order], spoken, is_whole=is_whole)
        old = [None if place is None else order[place] for place in found]
        readings.append(Recognised(old, order, is_reordered=order is not rows))
        if None not in old:
            break
    return min(readings, key=_new_count)


def _new_count(found: Recognised) -> int:
    return found.old.count(None)


def _is_new_turn(rows: Sequence[MessageRow], sent: Sequence[Sent], old: Known) -> bool:
    found = [None if row is None else 0 for row in old]
    return is_new_turn([utterance_of_row(row) for row in rows], [utterance_of_sent(one) for one in sent], found)


def _is_logged_just_now(rows: Sequence[MessageRow], sent: Sequence[Sent], old: Known) -> bool:
    """Return whether the client has just sent the last turn: a model's later times are those of its logging."""
    began = min(one.message.timestamp for one in sent if one.message.timestamp)
    said_last = max(row.timestamp for row in rows)
    is_last_turn = any(row is not None and row.timestamp == said_last for row in old)
    return is_last_turn and began - said_last <= JUST_NOW
