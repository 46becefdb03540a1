"""What a client's hooks told, and what its own store tells of the same: each message once, whichever came first.

A hook tells of a message at once, the store of all of them and for good. Until the store has told of it, a message
from a hook is named by the hook (`hook:…`); then it takes the store's name for it, and is from then on recognised by
that (`registry.ingest.save`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import and_, select, update

from registry.domain import Message, digest_of, now, storable
from registry.storage.channels import recount_channel
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.messages import replace_message, revise
from registry.storage.tables import conversation

ORIGIN = "hook"
PREFIX = "hook:"
HEARD = "heard_in"
"""Of a message that the store told first: the request in which a hook told it too, in its payload."""
NEAR = timedelta(minutes=5)
"""Between a hook and the client's own clock: a store may note when an answer began, a hook tells when it ended."""
REPEATED = timedelta(seconds=5)
"""Two hooks that tell the same within it, and know no request, tell of one message: a client configured twice."""


def heard_name(message: Message, request: str | None) -> str:
    """The name of a message from a hook: the same for the same event, however often it comes."""
    told_at = message.timestamp or now()
    return f"{PREFIX}{request or round(told_at.timestamp() * 1000)}:{message.role}:{_digest(message).hex()}"


def unheard(tx: WriteTransaction, channel_number: int | None, messages: Iterable[Message]) -> list[Message]:
    """Those messages from hooks that the channel does not have, by whichever way they came."""
    known: dict[bytes, list[_Told]] = {}
    new = []
    for message in messages:
        digest = _digest(message)
        if digest not in known:
            known[digest] = [] if channel_number is None else _stored(tx, channel_number, digest)
        told = _Told(message.timestamp or now(), message.more.get("request_id"), is_heard=True)
        same = next((at for at, other in enumerate(known[digest]) if told.is_same_as(other)), None)
        if same is None:
            known[digest].append(told)
            new.append(message)
        elif told.request and not known[digest][same].request:
            _note_request(tx, known[digest][same].number, told.request)
            known[digest][same] = known[digest][same]._replace(request=told.request)
    return new


def hand_over(tx: WriteTransaction, channel_number: int, messages: Sequence[Message]) -> None:
    """Give the messages from hooks the names and times that the client's own store has for them.

    `messages`: the whole session as the store has it. Where the store's own copy came first, half written, the one
    from the hook goes.
    """
    heard = _rows(tx, channel_number, conversation.c.native_id.startswith(PREFIX))
    if not heard:
        return
    digests = {bytes(row.digest) for row in heard}
    offered = [message for message in messages if _digest(message) in digests and message.more.get("native_id")]
    names = [message.more["native_id"] for message in offered]
    named = {row.native_id: row for row in _rows(tx, channel_number, conversation.c.native_id.in_(names))}
    for row, message in _nearest_first(heard, offered, named):
        name = message.more["native_id"]
        _note_request(tx, named[name].number if name in named else row.number, row.payload.get("request_id"))
        if name in named:
            replace_message(tx, row, named[name].number)
        else:
            revise(tx, row, {"native_id": name, "timestamp": message.timestamp or row.timestamp})
    recount_channel(tx, channel_number)


def _nearest_first(
    heard: Sequence[Any], offered: Sequence[Message], named: Mapping[str, Any]
) -> list[tuple[Any, Message]]:
    """What hooks told with what the store tells of the same, those first that are nearest in time; each once."""
    pairs = [
        (abs((message.timestamp or row.timestamp) - row.timestamp), row.number, place)
        for row in heard
        for place, message in enumerate(offered)
        if _may_be(message, row, named.get(message.more["native_id"]))
    ]
    rows = {row.number: row for row in heard}
    found: dict[int, int] = {}
    for _, number, place in sorted(pairs):
        if number not in found and place not in found.values():
            found[number] = place
    return [(rows[number], offered[place]) for number, place in found.items()]


class _Told(NamedTuple):
    """When something was said, in which request as far as that is known, whether a hook told it; its number, if stored.

    A message of the store's that a hook told too keeps that request, so that the next hook with its words is news.
    """

    at: datetime
    request: object
    is_heard: bool
    number: int | None = None

    def is_same_as(self, other: _Told) -> bool:
        if self.request and other.request:
            return bool(self.request == other.request)
        return abs(self.at - other.at) <= (REPEATED if other.is_heard else NEAR)


def _note_request(tx: WriteTransaction, number: int | None, request: object) -> None:
    """Keep in which request a hook told of a message that is not the hook's own."""
    of_row = conversation.c.number == number, conversation.c.actor != ORIGIN
    payload = tx.execute(select(conversation.c.payload).where(*of_row)).scalar()
    if request and payload is not None and HEARD not in payload:
        tx.execute(update(conversation).where(*of_row).values(payload={**payload, HEARD: request}))


def _stored(tx: ReadTransaction, channel_number: int, digest: bytes) -> list[_Told]:
    """What hooks or the store told; what a tool has pushed is recognised when it is saved (`paraphrase`)."""
    condition = and_(conversation.c.digest == digest, conversation.c.native_id.is_not(None))
    rows = _rows(tx, channel_number, condition)
    return [
        _Told(row.timestamp, row.payload.get("request_id" if _is_heard(row) else HEARD), _is_heard(row), row.number)
        for row in rows
    ]


def _is_heard(row: Any) -> bool:
    return bool(row.actor == ORIGIN or row.native_id.startswith(PREFIX))


def _rows(tx: ReadTransaction, channel_number: int, condition: Any) -> Sequence[Any]:
    query = select(conversation).where(conversation.c.channel_number == channel_number, condition)
    return tx.execute(query.order_by(conversation.c.number)).all()


def _may_be(message: Message, row: Any, stored: Any) -> bool:
    """Whether the store's message is what the hook told, and not told by another hook or stored as something else."""
    if _digest(message) != bytes(row.digest):
        return False
    if stored is None:
        return True
    requests = stored.payload.get(HEARD), row.payload.get("request_id")
    return stored.actor != ORIGIN and (None in requests or requests[0] == requests[1])


def _digest(message: Message) -> bytes:
    return digest_of(message.role, storable(message.text))
