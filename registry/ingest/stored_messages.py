"""Read those stored messages of a channel that are needed to recognise the sent ones."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple, Self

from sqlalchemy import ColumnElement, and_, func, or_, select

from registry.domain import Message, Role, instant_of
from registry.ingest.alignment import Utterance, latest_positions
from registry.storage.conversations.channels import ChannelRow
from registry.storage.conversations.messages import MessageRow
from registry.storage.database import ReadTransaction
from registry.storage.tables import conversation

STORED_ID = "stored_id"
MAX_LOOKUP = 1000  # messages looked up in one statement; if more are sent, the whole channel is read
POSITION = "#"  # begins the ids that readers give to messages of versions that stored none: their positions
MIN_TAIL = 64  # messages read first from the end of a channel: enough for some turns of several clients

_COLUMNS = conversation.c[
    "number", "channel_number", "id", "seq", "turn", "place",
    "role", "digest", "timestamp", "native_id", "received_at", "forgotten",
]  # fmt: skip
_LATEST_PLACE_FIRST = (conversation.c.place.desc(), conversation.c.number.desc())


class Sent(NamedTuple):
    """A sent message, with the digest of its words."""

    message: Message
    digest: bytes
    stored_id: str | None = None  # its id in this registry, if another machine sends it back

    @classmethod
    def of(cls, message: Message) -> Self:
        if STORED_ID not in message.more:
            return cls(message, message.digest)
        more = {key: value for key, value in message.more.items() if key != STORED_ID}
        return cls(replace(message, more=more), message.digest, str(message.more[STORED_ID]))


class StoredMessages:
    """The stored messages of a channel, read on demand."""

    def __init__(
        self, tx: ReadTransaction, into: ChannelRow, sent: Sequence[Sent], only: ColumnElement[bool] | None = None
    ) -> None:
        self.tx = tx
        self.sent = sent
        self.is_session = into.session_id is not None
        is_in_channel = conversation.c.channel_number == into.number
        self._is_within = is_in_channel if only is None else and_(is_in_channel, only)

    @cached_property
    def rows(self) -> Sequence[MessageRow]:
        return self.last(None)

    def last(self, count: int | None, *conditions: ColumnElement[bool]) -> Sequence[MessageRow]:
        query = select(*_COLUMNS).where(self._is_within, *conditions)
        return self.tx.execute(query.order_by(*_LATEST_PLACE_FIRST).limit(count)).all()[::-1]

    def with_words_and_time(self) -> Sequence[MessageRow]:
        """Return the messages with the words and the time of a sent one; none if too many were sent."""
        moments = {one.message.timestamp for one in self.sent if one.message.timestamp}
        if not moments or len(self.sent) > MAX_LOOKUP:
            return []
        has_words = conversation.c.digest.in_({one.digest for one in self.sent})
        return self.last(None, has_words, conversation.c.timestamp.in_(moments))

    def next_to(self, row: MessageRow) -> Sequence[MessageRow]:
        query = select(*_COLUMNS).where(self._is_within, conversation.c.place > row.place)
        return self.tx.execute(query.order_by(conversation.c.place, conversation.c.number).limit(1)).all()

    @cached_property
    def tail(self) -> Sequence[MessageRow] | None:
        """Return the end of the channel if it is enough to recognise `sent`; None if all messages are needed.

        It is enough if it has, in order, every sent message whose words are stored, the newest message, and all
        messages with the words and time, or the id, of a sent one. The first row is only the one before these. A call
        with the first words of the channel may be the whole conversation with another end: it needs all messages.
        """
        if len(self.sent) > MAX_LOOKUP or self.sent[0].digest == self._first_digest():
            return None
        has_words = conversation.c.digest.in_({one.digest for one in self.sent})
        digests = set(map(bytes, self._distinct(conversation.c.digest, has_words)))
        known = [utterance_of_sent(one) for one in self.sent if one.digest in digests]
        moments = {one.message.timestamp for one in self.sent if one.message.timestamp}
        is_named = conversation.c.id.in_([one.stored_id for one in self.sent if one.stored_id])
        is_required = or_(is_named, and_(has_words, conversation.c.timestamp.in_(moments)))
        first = self._scalar(func.min(conversation.c.place), is_required)
        newest = self._scalar(func.max(conversation.c.timestamp))
        count = max(MIN_TAIL, len(self.sent))
        while len(rows := self.last(count)) == count:
            tail = [utterance_of_row(row) for row in rows[1:]]
            has_required = first is None or rows[0].place < first
            has_newest = any(row.timestamp == newest for row in rows[1:])
            if has_required and has_newest and latest_positions(tail, known) is not None:
                return rows
            count *= 4
        return None

    def _first_digest(self) -> bytes | None:
        query = select(conversation.c.digest).where(self._is_within)
        first = self.tx.execute(query.order_by(conversation.c.place, conversation.c.number).limit(1)).scalar()
        return None if first is None else bytes(first)

    def tail_by_id(self) -> Sequence[MessageRow]:
        """Return the rows from the one before the first sent id on, at least one; all if some rows have no id."""
        ids = {one.message.native_id for one in self.sent}
        has_no_id = or_(conversation.c.native_id.is_(None), conversation.c.native_id.startswith(POSITION))
        if len(ids) > MAX_LOOKUP or self._scalar(conversation.c.number, has_no_id) is not None:
            return self.rows
        first = self._scalar(func.min(conversation.c.place), conversation.c.native_id.in_(ids))
        if first is None:
            return self.last(1)
        before = self._scalar(func.max(conversation.c.place), conversation.c.place < first)
        return self.last(None, conversation.c.place >= (first if before is None else before))

    def has_any(self, digests: Sequence[bytes]) -> bool:
        """Return whether a message with one of these digests is stored; True if there are too many to look up."""
        if len(digests) > MAX_LOOKUP:
            return True
        is_one = conversation.c.digest.in_(set(digests))
        return bool(digests) and self._scalar(conversation.c.number, is_one) is not None

    def begins_with(self, questions: Sequence[bytes]) -> bool:
        """Return whether the channel begins with these questions; False if it has none."""
        query = select(conversation.c.digest).where(self._is_within, conversation.c.role == Role.USER)
        query = query.order_by(conversation.c.place, conversation.c.number).limit(len(questions))
        first = self.tx.execute(query).scalars().all()
        return bool(first) and all(bytes(old) == new for old, new in zip(first, questions, strict=False))

    def _distinct(self, column: ColumnElement[Any], *conditions: ColumnElement[bool]) -> Iterable[Any]:
        return self.tx.execute(select(column).where(self._is_within, *conditions).distinct()).scalars()

    def _scalar(self, column: ColumnElement[Any], *conditions: ColumnElement[bool]) -> Any:
        return self.tx.execute(select(column).where(self._is_within, *conditions).limit(1)).scalar()


def client_id(native_id: str | None) -> str | None:
    """Return the id if the client gave it, None if it is a position."""
    return None if native_id is None or native_id.startswith(POSITION) else native_id


def utterance_of_row(row: MessageRow) -> Utterance:
    return Utterance(row.role, bytes(row.digest), client_id(row.native_id), instant_of(row.timestamp))


def utterance_of_sent(one: Sent) -> Utterance:
    is_long = len(one.message.text) >= 40  # characters; equal words are hardly chance then
    native_id = client_id(one.message.native_id)
    return Utterance(one.message.role, one.digest, native_id, instant_of(one.message.timestamp), is_long)
