"""What a client keeps twice: whole in one place, and in another without results, or as another client keeps it.

The whole is what counts. Of the other only those turns are taken whose questions nothing else has told; when the whole
tells of them, too, its messages take their place (formats/cursor-agent.md, 4).
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, not_, or_, select, update

from registry.domain import Message, Role, digest_of, storable
from registry.ingest.hook_messages import PREFIX as HEARD
from registry.storage.channels import ChannelRow, recount_channel
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.messages import revise, unindex
from registry.storage.tables import channel, conversation

ORIGIN, READER = "copy", "reader"
"""The actors of messages out of a copy, and out of the client's own store."""
PREFIX = "copy:"
"""Of the names of messages that only a copy has told so far."""

_IS_COPIED = conversation.c.native_id.startswith(PREFIX)
_IS_HEARD = conversation.c.native_id.startswith(HEARD)
_IS_WHOLE = or_(conversation.c.native_id.is_(None), and_(not_(_IS_COPIED), not_(_IS_HEARD)))


def untold(tx: ReadTransaction, channel_number: int, messages: Iterable[Message]) -> list[Message]:
    """What only a copy tells: of the turns that no store has told, what no hook has."""
    turns = _turns_besides(_questions(tx, channel_number, _IS_WHOLE), messages)
    heard = _digests(tx, channel_number, _IS_HEARD)
    return [message for message in turns if not _take(heard, message)]


def unread(tx: ReadTransaction, into: ChannelRow, messages: Sequence[Message], source: str) -> Sequence[Message]:
    """The turns of a session that have not come out of another client's store; usually all."""
    elsewhere = _questions(tx, into.number, _is_read_by_others(source))
    return _turns_besides(elsewhere, messages) if elsewhere else messages


def give_way(tx: WriteTransaction, into: ChannelRow, messages: Sequence[Message], source: str) -> None:
    """Make room for the whole session, before it is stored: what a copy told of its turns becomes its message or goes.

    A channel that only copies have filled so far becomes one of the whole's source.
    """
    rows = _rows(tx, into.number, _IS_COPIED)
    if not rows:
        return
    offered = _offered(tx, into.number, messages)
    taken = set()
    for row in rows:
        if candidates := offered.get(bytes(row.digest)):
            _become(tx, row, candidates.popleft())
            taken.add(row.number)
    left = {row.seq for row in rows if row.role == Role.USER and row.number not in taken}
    left |= {row.seq for row in _rows(tx, into.number, _IS_HEARD) if bytes(row.digest) not in offered}
    _remove(tx, [row for row in rows if row.number not in taken and row.turn not in left])
    if not _questions(tx, into.number, _is_read_by_others(source)):
        tx.execute(update(channel).where(channel.c.number == into.number).values(source=source))
        for row in _rows(tx, into.number, conversation.c.actor == ORIGIN):
            revise(tx, row, {"source": source})
    recount_channel(tx, into.number)


def _offered(tx: ReadTransaction, channel_number: int, messages: Iterable[Message]) -> dict[bytes, deque[Message]]:
    """The messages of the whole that are not stored yet, in order, by their words."""
    named = select(conversation.c.native_id).where(conversation.c.channel_number == channel_number)
    stored = set(tx.execute(named).scalars())
    offered: dict[bytes, deque[Message]] = defaultdict(deque)
    for message in messages:
        if message.more.get("native_id") not in stored:
            offered[digest_of(message.role, storable(message.text))].append(message)
    return offered


def _become(tx: WriteTransaction, row: Any, message: Message) -> None:
    """The same words with all that the whole knows of them."""
    known = {"native_id": message.more.get("native_id"), "timestamp": message.timestamp or row.timestamp}
    payload = {**row.payload, **storable(message.more)}
    if "time" not in message.more:
        payload.pop("time", None)
    revise(tx, row, {**known, "payload": payload})


def _remove(tx: WriteTransaction, rows: Sequence[Any]) -> None:
    unindex(tx, rows)
    for row in rows:
        tx.execute(delete(conversation).where(conversation.c.number == row.number))


def _rows(tx: ReadTransaction, channel_number: int, told: ColumnElement[bool]) -> Sequence[Any]:
    query = select(conversation).where(conversation.c.channel_number == channel_number, told)
    return tx.execute(query.order_by(conversation.c.number)).all()


def _is_read_by_others(source: str) -> ColumnElement[bool]:
    return (conversation.c.actor == READER) & (conversation.c.source != source)


def _questions(tx: ReadTransaction, channel_number: int, told: ColumnElement[bool]) -> Counter[bytes]:
    return _digests(tx, channel_number, told & (conversation.c.role == Role.USER))


def _digests(tx: ReadTransaction, channel_number: int, told: ColumnElement[bool]) -> Counter[bytes]:
    query = select(conversation.c.digest).where(conversation.c.channel_number == channel_number, told)
    return Counter(bytes(digest) for digest in tx.execute(query).scalars())


def _turns_besides(told: Counter[bytes], messages: Iterable[Message]) -> list[Message]:
    """The turns that begin with a question that is none of the told ones, each of which stands for one."""
    kept: list[Message] = []
    is_new = False
    for message in messages:
        if message.role is Role.USER:
            is_new = not _take(told, message)
        if is_new:
            kept.append(message)
    return kept


def _take(told: Counter[bytes], message: Message) -> bool:
    """Whether the message is among the told ones; if so, one of them is used up."""
    digest = digest_of(message.role, storable(message.text))
    told[digest] -= (is_told := told[digest] > 0)
    return is_told
