"""Find out which of the sent messages a channel has stored already, by `STEPS` (docs/recognition.md)."""

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from itertools import pairwise

from sqlalchemy import ColumnElement, select

from registry.domain import Role
from registry.ingest.alignment import Positions, Texts, Transcript, is_new_turn, recognise
from registry.ingest.paraphrase import (
    Accept,
    accept_from_client,
    accept_from_model,
    match_by_turns,
    match_shortened_resend,
)
from registry.ingest.stored_messages import Sent, StoredMessages, client_id, utterance_of_row, utterance_of_sent
from registry.storage.conversations.channels import ChannelRow
from registry.storage.conversations.messages import MessageRow, in_turns
from registry.storage.database import ReadTransaction
from registry.storage.exchange.counterparts import match_by_id_or_time, matching_digests
from registry.storage.tables import conversation
from registry.text.privacy.secrets import is_masked

MAX_LOGGING_DELAY = timedelta(minutes=5)  # a model logs a turn within this time

RowMatches = list[MessageRow | None]  # for each sent message the stored one that it repeats, or None


@dataclass(frozen=True, slots=True)
class Recognition:
    """The stored messages that the sent ones repeat, and the order of the conversation.

    `order`: the stored messages in conversation order, or as much of the channel's end as was needed. `is_reordered`:
    this is not the order of their places, because more sent messages match in another one.
    """

    matches: RowMatches
    order: Sequence[MessageRow] = field(default_factory=tuple)
    is_reordered: bool = False
    last_place: float = 0.0  # last place of the channel, if `order` holds only one of its sessions

    def places(self) -> list[float]:
        """Return the place of each message in `order`; new places if the messages are reordered."""
        if self.is_reordered:
            return [float(at) for at in range(len(self.order))]
        return [row.place for row in self.order]

    def new_places(self) -> list[float]:
        """Return the places of the new messages: each follows the message that was sent before it.

        A resend can then be compared with the stored messages in the order in which they were sent.
        """
        index = {row.number: at for at, row in enumerate(self.order)}
        stored = self.places()
        known = [(at, index[row.number]) for at, row in enumerate(self.matches) if row is not None]
        before_first = (known[0][1] if known else len(stored)) - 1
        places: list[float] = []
        for (start, after), (end, _) in pairwise([(-1, before_first), *known, (len(self.matches), 0)]):
            low = stored[after] if after >= 0 else None
            places += _between(low if stored else self.last_place, stored[after + 1 : after + 2], end - start - 1)
        return places


def _between(low: float | None, next_places: Sequence[float], count: int) -> list[float]:
    if not next_places:
        return [(low or 0.0) + 1 + i for i in range(count)]
    high = next_places[0]
    if low is None:
        return [high - count + i for i in range(count)]
    return [low + (high - low) * (i + 1) / (count + 1) for i in range(count)]


def recognise_stored(
    tx: ReadTransaction, into: ChannelRow, sent: Sequence[Sent], only: ColumnElement[bool] | None = None
) -> Recognition:
    """Match the sent messages with the stored ones. Deleted ones count too, so that a resend does not restore them.

    `only`: limits the stored messages to those of one session, if the channel has several.
    """
    if into.seq_count == 0 or not sent:
        return Recognition([None] * len(sent))
    if only is not None:
        of_session = _match_by_id(StoredMessages(tx, into, sent, only), sent) or Recognition([None] * len(sent))
        last = StoredMessages(tx, into, sent).last(1)
        return replace(of_session, last_place=last[0].place if last else 0.0)
    if any(is_masked(one.message.text) for one in sent):
        digests = matching_digests(tx, into.number, sent)
        sent = [one._replace(digest=digest) for one, digest in zip(sent, digests, strict=True)]
    stored = StoredMessages(tx, into, sent)
    found = next(found for step in STEPS if (found := step(stored, sent)))
    if any(one.stored_id for one in sent):
        rows = max(found.order, stored.tail or stored.rows, key=len)
        matches = match_by_id_or_time(tx, found.matches, rows, sent)
        found = replace(found, matches=matches) if found.is_reordered else Recognition(matches, rows)
    return replace(found, matches=_match_forgotten(found, sent))


def _match_forgotten(found: Recognition, sent: Sequence[Sent]) -> RowMatches:
    known = {row.number for row in found.matches if row is not None}
    forgotten = [row for row in found.order if row.forgotten and row.number not in known]
    matches = list(found.matches)
    turn = None
    for at, one in enumerate(sent if forgotten else ()):
        if (row := matches[at]) is not None:
            turn = row.turn
        elif one.message.role is Role.USER:
            turn = None
        elif one.message.native_id is None:
            matches[at] = next((row for row in forgotten if row.turn == turn and row.role == one.message.role), None)
            forgotten = [row for row in forgotten if row is not matches[at]]
    return matches


def _match_by_id(stored: StoredMessages, sent: Sequence[Sent]) -> Recognition | None:
    """Match by the client's own ids, and messages that were stored without one by their words, turn by turn."""
    if not any(one.message.native_id for one in sent):
        return None
    rows = stored.tail_by_id()
    by_id = defaultdict[str | None, deque[MessageRow]](deque)  # some clients give the parts of an answer the same id
    for row in rows:
        by_id[row.native_id].append(row)
    of_sent = (by_id[one.message.native_id] if one.message.native_id else () for one in sent)
    matches: RowMatches = [same.popleft() if same else None for same in of_sent]
    matched = {row.number for row in matches if row is not None}
    without_id = {row.number for row in rows if client_id(row.native_id) is None} - matched
    if None in matches and without_id:
        by_words = match_rows_by_turns(stored.tx, rows, sent, accept_from_client)
        matched_without_id = [row if row is not None and row.number in without_id else None for row in by_words]
        matches = [of_id or of_words for of_id, of_words in zip(matches, matched_without_id, strict=True)]
    return Recognition(matches, rows)


def _match_by_turns(stored: StoredMessages, sent: Sequence[Sent]) -> Recognition | None:
    if not stored.is_session or not any(row.native_id for row in stored.rows):
        return None
    matches = match_rows_by_turns(stored.tx, stored.rows, sent, accept_from_model)
    if _is_new_turn(stored.rows, sent, matches) and not _is_logged_just_now(stored.rows, sent, matches):
        matches = [None] * len(sent)
    return Recognition(matches, stored.rows)


def _match_by_time(stored: StoredMessages, sent: Sequence[Sent]) -> Recognition | None:
    """Match by words and time: if several clients write one chat, each sends only its own messages.

    If all are stored, their order does not matter. Otherwise return None if a stored message may be among the new ones,
    or if the stored ones are not first and in order.
    """
    by_words_and_time = {(bytes(row.digest), row.timestamp): row for row in stored.with_words_and_time()}
    matches: RowMatches = [by_words_and_time.get((one.digest, one.message.timestamp)) for one in sent]
    known = [row for row in matches if row is not None]
    if len({row.number for row in known}) == len(sent):
        return Recognition(matches, sorted(known, key=lambda row: row.place))
    is_in_order = all(one.place < other.place for one, other in pairwise(known))
    if not known or any(matches[len(known) :]) or not is_in_order:
        return None
    if stored.has_any([one.digest for one in sent[len(known) :]]):
        return None
    return Recognition(matches, [*known, *stored.next_to(known[-1])])


def _match_by_alignment(stored: StoredMessages, sent: Sequence[Sent]) -> Recognition:
    """Align with the channel; if some messages remain new, try to match a resend with shortened answers."""
    found = replace(_align(stored.tail[1:], sent, is_whole=False), order=stored.tail) if stored.tail else None
    if found is None or found.is_reordered:
        found = _align(stored.rows, sent)
    shortened = _match_shortened(stored, sent) if None in found.matches else None
    return min(found, shortened, key=_count_new) if shortened else found


STEPS: tuple[Callable[[StoredMessages, Sequence[Sent]], Recognition | None], ...] = (
    _match_by_id,
    _match_by_turns,
    _match_by_time,
    _match_by_alignment,
)
"""Tried in this order, until one returns a result; the last one always does."""


def match_rows_by_turns(
    tx: ReadTransaction, rows: Sequence[MessageRow], sent: Sequence[Sent], accept: Accept
) -> RowMatches:
    """Match each sent message with the stored one that it repeats in its turn; `accept` decides about other words."""
    return _match_transcripts(tx, in_turns(rows), sent, partial(match_by_turns, accept=accept))


def _match_shortened(stored: StoredMessages, sent: Sequence[Sent]) -> Recognition | None:
    """Match a resend of the conversation from its first question on, with some answers shortened."""
    questions = [one.digest for one in sent if one.message.role is Role.USER]
    if sent[0].message.role is not Role.USER or not stored.begins_with(questions):
        return None
    rows = in_turns(stored.rows)
    if rows[0].role != Role.USER:
        return None
    matches = _match_transcripts(stored.tx, rows, sent, match_shortened_resend)
    return None if _is_new_turn(rows, sent, matches) else Recognition(matches, stored.rows)


def _match_transcripts(
    tx: ReadTransaction,
    rows: Sequence[MessageRow],
    sent: Sequence[Sent],
    match: Callable[[Transcript, Transcript], Positions],
) -> RowMatches:
    ours = Transcript([utterance_of_row(row) for row in rows], stored_texts(tx, rows))
    theirs = Transcript(
        [utterance_of_sent(one) for one in sent], lambda positions: {at: sent[at].message.text for at in positions}
    )
    return [None if at is None else rows[at] for at in match(ours, theirs)]


def stored_texts(tx: ReadTransaction, rows: Sequence[MessageRow]) -> Texts:
    """Return a function that reads the texts of stored messages by their positions in `rows`."""

    def texts(positions: Sequence[int]) -> Mapping[int, str]:
        if not positions:
            return {}
        numbers = {rows[at].number: at for at in positions}
        query = select(conversation.c.number, conversation.c.text).where(conversation.c.number.in_(numbers))
        return {numbers[row.number]: row.text for row in tx.execute(query)}

    return texts


def _align(rows: Sequence[MessageRow], sent: Sequence[Sent], *, is_whole: bool = True) -> Recognition:
    orders = [rows, sorted(rows, key=lambda row: (row.timestamp, row.number))]
    utterances = [utterance_of_sent(one) for one in sent]
    attempts: list[Recognition] = []
    for order in orders:
        found = recognise([utterance_of_row(row) for row in order], utterances, is_whole=is_whole)
        matches = [None if at is None else order[at] for at in found]
        attempts.append(Recognition(matches, order, is_reordered=order is not rows))
        if None not in matches:
            break
    return min(attempts, key=_count_new)


def _count_new(found: Recognition) -> int:
    return found.matches.count(None)


def _is_new_turn(rows: Sequence[MessageRow], sent: Sequence[Sent], matches: RowMatches) -> bool:
    found = [None if row is None else 0 for row in matches]
    return is_new_turn([utterance_of_row(row) for row in rows], [utterance_of_sent(one) for one in sent], found)


def _is_logged_just_now(rows: Sequence[MessageRow], sent: Sequence[Sent], matches: RowMatches) -> bool:
    """Return whether the client sent the last turn just before: a model logs afterwards, with later times."""
    earliest = min(one.message.timestamp for one in sent if one.message.timestamp)
    newest = max(row.timestamp for row in rows)
    is_last_turn = any(row is not None and row.timestamp == newest for row in matches)
    return is_last_turn and earliest - newest <= MAX_LOGGING_DELAY
