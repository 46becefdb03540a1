"""Store the messages that a client's hooks send, each once, whether the hook or the client's store is first.

A hook sends a message at once, the store has all of them and for good. Until the store has been read, a message from a
hook has an id of the hook's (`hook:…`); then it takes the store's id, and is recognised by that from then on.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Self

from sqlalchemy import ColumnElement

from registry.domain import Actor, Message, Role, Session, now, storable
from registry.ingest.intake import FORGOTTEN, is_forgotten, let_in_session
from registry.ingest.save import Saved, save_messages
from registry.ingest.session_channel import IN_SESSION, Circumstances, bring_together, channel_for, describing, open_for
from registry.storage.conversations.channels import recount_channel
from registry.storage.conversations.messages import MessageRow, replace_messages, revise, rows_where
from registry.storage.database import ReadTransaction, WriteTransaction, update_rows
from registry.storage.tables import conversation

PREFIX = "hook:"
ALSO_IN = "heard_in"
"""Payload key of a message that the store had first: the request in which a hook sent it too. The key is stored."""
CLOCKS_APART = timedelta(minutes=5)
"""Largest difference of a message's times by hook and by store, which may note an answer's end and its begin."""
_BLOCK = "\n\n"  # between the blocks of an answer, as readers join them
REPEATED = timedelta(seconds=5)
"""Limit within which two hooks without a request that send the same mean one message: a client configured twice."""


def ingest_from_hook(tx: WriteTransaction, source: str, session: Session) -> tuple[str, Saved]:
    """Store the new messages that a client's hooks sent of a session; return the channel's name and the outcome."""
    session, kept_out = let_in_session(tx, source, session)
    if kept_out:
        return session.session_id, Saved.refused(kept_out)
    session = replace(session, messages=tuple(map(_with_id, session.messages)))
    found = channel_for(tx, source, session)
    if found.known is None and is_forgotten(tx, session.messages, session_id=session.session_id):
        return session.session_id, Saved.refused(FORGOTTEN)
    resumed = found.resumed
    metadata = {} if resumed else describing(session)
    if found.known and found.known.project_path:
        metadata.pop("project", None)  # a hook knows the folder of the moment, the store that of the session
    into = open_for(tx, source, session, found.known)
    said = resumed.said_in(session.messages) if resumed else session.messages
    new = _not_stored(tx, into.number, said, resumed.session_id if resumed else None)
    about: dict[str, Any] = {"source": source, "metadata": metadata, "actor": Actor.HOOK, "received_at": now()}
    saved = save_messages(tx, into, new, **about, among=resumed.rows if resumed else None)
    if not resumed:
        bring_together(tx, Circumstances.of(source, into, session), saved, found)
    return into.name, saved


def _with_id(message: Message) -> Message:
    if message.native_id:
        return message
    return replace(message, more={**message.more, "native_id": hook_id(message, message.more.get("request_id"))})


def hook_id(message: Message, request: str | None) -> str:
    """Return the id of a message from a hook: the same for the same event, however often it comes."""
    sent_at = message.timestamp or now()
    return f"{PREFIX}{request or round(sent_at.timestamp() * 1000)}:{message.role}:{message.digest.hex()}"


def take_store_ids(
    tx: WriteTransaction, channel_number: int, messages: Sequence[Message], in_session: str | None = None
) -> None:
    """Give the messages from hooks the ids and times that the client's own store has for them.

    `messages`: the whole session as the store has it; `in_session`: its id, if it is one that the channel was resumed
    in. Where the store's own copy came first, half written, the one from the hook goes.
    """
    from_hooks = rows_where(tx, channel_number, conversation.c.native_id.startswith(PREFIX) & _is_said_in(in_session))
    if not from_hooks:
        return
    digests, ends = {bytes(row.digest) for row in from_hooks}, tuple(_BLOCK + row.text for row in from_hooks)
    offered = [
        message
        for message in messages
        if message.native_id and (message.digest in digests or (_is_answer(message) and message.text.endswith(ends)))
    ]
    is_offered = conversation.c.native_id.in_([message.native_id for message in offered])
    stored = {row.native_id: row for row in rows_where(tx, channel_number, is_offered)}
    pairs = _nearest_first(from_hooks, offered, stored)
    doubled = [(row, stored[message.native_id]) for row, message in pairs if message.native_id in stored]
    _note_requests(tx, [(kept, row.payload.get("request_id")) for row, kept in doubled])
    replace_messages(tx, [(row, kept.number) for row, kept in doubled])
    revise(tx, [(row, _as_in_store(row, message)) for row, message in pairs if message.native_id not in stored])
    recount_channel(tx, channel_number)


def _as_in_store(row: MessageRow, message: Message) -> dict[str, Any]:
    """Merge the store's knowledge into a hook's message: id, time, model, attachments.

    Its actor stays. If that is another one than the hook, the request in which the hook sent it is kept.
    """
    request = row.payload.get("request_id") if row.actor != Actor.HOOK else None
    noted = {ALSO_IN: request} if request else {}
    return {
        "native_id": message.native_id,
        "timestamp": message.timestamp or row.timestamp,
        "payload": {**noted, **row.payload, **storable(message.more)},
    }


def _nearest_first(
    from_hooks: Sequence[MessageRow], offered: Sequence[Message], stored: Mapping[str | None, MessageRow]
) -> list[tuple[MessageRow, Message]]:
    pairs = [
        (abs((message.timestamp or row.timestamp) - row.timestamp), row.number, place)
        for row in from_hooks
        for place, message in enumerate(offered)
        if _may_be(message, row, stored.get(message.native_id))
    ]
    rows = {row.number: row for row in from_hooks}
    found: dict[int, int] = {}
    for _, number, place in sorted(pairs):
        if number not in found and place not in found.values():
            found[number] = place
    return [(rows[number], offered[place]) for number, place in found.items()]


def _may_be(message: Message, row: MessageRow, stored: MessageRow | None) -> bool:
    """Return True if the store's message may be the hook's: not another hook's, and not stored as something else."""
    if message.digest != bytes(row.digest) and not (_is_answer(message) and _ends_in(message.text, row)):
        return False
    if stored is None:
        return True
    requests = stored.payload.get(ALSO_IN), row.payload.get("request_id")
    return stored.actor != Actor.HOOK and (None in requests or requests[0] == requests[1])


def _is_answer(message: Message | MessageRow) -> bool:
    return message.role == Role.ASSISTANT


def _ends_in(answer: str, told: Message | MessageRow) -> bool:
    """Return whether a hook's text is the last block of an answer: hooks leave out those before it."""
    return _is_answer(told) and answer.endswith(_BLOCK + told.text)


class _Event(NamedTuple):
    """A message with its request, if known, and its row, if stored.

    A message of the store that a hook sent too keeps that request, so that the next hook with its words is new.
    """

    at: datetime
    request: object
    is_of_hook: bool
    row: MessageRow | None = None

    def is_same_as(self, other: Self) -> bool:
        """Return True if this event of a hook is the other one, of a hook or a store."""
        if self.request and other.request:
            return bool(self.request == other.request)
        return abs(self.at - other.at) <= (REPEATED if other.is_of_hook else CLOCKS_APART)


def _is_said_in(session_id: str | None) -> ColumnElement[bool]:
    """Return the condition for messages of a session that the channel was resumed in; None: of its own session."""
    said_in: ColumnElement[str] = conversation.c.payload[IN_SESSION].as_string()
    return said_in.is_not_distinct_from(session_id)


def _not_stored(
    tx: WriteTransaction, channel_number: int, messages: Sequence[Message], in_session: str | None
) -> list[Message]:
    known = _events(tx, channel_number, messages, in_session)
    new = []
    requests: list[tuple[MessageRow | None, object]] = []
    for message in messages:
        event = _Event(message.timestamp or now(), message.more.get("request_id"), is_of_hook=True)
        events = known[message.digest]
        same = next((at for at, other in enumerate(events) if event.is_same_as(other)), None)
        if same is None:
            events.append(event)
            new.append(message)
        elif event.request and not events[same].request:
            requests.append((events[same].row, event.request))
            events[same] = events[same]._replace(request=event.request)
    _note_requests(tx, requests)
    return new


def _events(
    tx: ReadTransaction, channel_number: int, messages: Sequence[Message], in_session: str | None
) -> dict[bytes, list[_Event]]:
    """Return what is stored already, by the digest of the message that it may be."""
    events: dict[bytes, list[_Event]] = defaultdict(list)
    told = {message.digest: message for message in messages}
    may_be_known: ColumnElement[bool] = conversation.c.digest.in_(told)
    if answered_at := [message.timestamp or now() for message in messages if _is_answer(message)]:
        span = min(answered_at) - CLOCKS_APART, max(answered_at) + CLOCKS_APART
        may_be_known |= (conversation.c.role == Role.ASSISTANT) & conversation.c.timestamp.between(*span)
    stored = rows_where(
        tx, channel_number, may_be_known, conversation.c.native_id.is_not(None), _is_said_in(in_session)
    )
    for row in stored:
        is_of_hook = row.actor == Actor.HOOK or row.native_id.startswith(PREFIX)
        event = _Event(row.timestamp, row.payload.get("request_id" if is_of_hook else ALSO_IN), is_of_hook, row)
        same = [bytes(row.digest)] if bytes(row.digest) in told else []
        last_blocks = [digest for digest, message in told.items() if _is_answer(row) and _ends_in(row.text, message)]
        for digest in same or last_blocks:
            events[digest].append(event)
    return events


def _note_requests(tx: WriteTransaction, requests: Iterable[tuple[MessageRow | None, object]]) -> None:
    noted = [
        {"number": row.number, "payload": {**row.payload, ALSO_IN: request}}
        for row, request in requests
        if request and row is not None and row.actor != Actor.HOOK and ALSO_IN not in row.payload
    ]
    update_rows(tx, conversation, noted)
