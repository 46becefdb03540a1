"""Store the messages that a client's hooks send, each once, whether the hook or the client's store comes first.

A hook sends a message immediately; the store has all messages, permanently. Until the store is read, a message from a
hook has an id that begins with `hook:`; then it gets the store's id, by which it is recognised from then on.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Self

from sqlalchemy import ColumnElement

from registry.domain import Actor, Message, Role, Session, now, storable
from registry.ingest.intake import FORGOTTEN, admit_session, note_if_forgotten
from registry.ingest.save import Saved, save_messages
from registry.ingest.session_channel import IN_SESSION, Criteria, find_session, merge_or_link, metadata_of, open_session
from registry.storage.conversations.channels import recount_channel
from registry.storage.conversations.messages import MessageRow, replace_messages, revise, rows_where
from registry.storage.database import ReadTransaction, WriteTransaction, update_rows
from registry.storage.tables import conversation

HOOK_PREFIX = "hook:"
HOOK_REQUEST = "heard_in"
"""Payload key of a message that was not stored by the hook: the request in which the hook sent it too."""
MAX_CLOCK_GAP = timedelta(minutes=5)
"""Largest difference between a message's times in hook and store: one may record when an answer ends, the other when it
begins."""
_BLOCK_BREAK = "\n\n"  # between the blocks of an answer, as readers join them
MAX_REPEAT_GAP = timedelta(seconds=5)
"""Within this time, the same text from two hooks without a request is one message: a client was configured twice."""


def ingest_from_hook(tx: WriteTransaction, source: str, session: Session) -> tuple[str, Saved]:
    """Store the new messages of a session that a client's hooks sent; return the channel's name and the outcome."""
    session, refusal = admit_session(tx, source, session)
    if refusal:
        return session.session_id, Saved.refused(refusal)
    session = replace(session, messages=tuple(map(_with_hook_id, session.messages)))
    found = find_session(tx, source, session)
    if found.known is None and note_if_forgotten(tx, session.messages, session_id=session.session_id):
        return session.session_id, Saved.refused(FORGOTTEN)
    resumed = found.resumed
    metadata = {} if resumed else metadata_of(session)
    if found.known and found.known.project_path:
        metadata.pop("project", None)  # a hook knows the current folder only, the store knows the session's
    into = open_session(tx, source, session, found.known)
    messages = resumed.marked(session.messages) if resumed else session.messages
    new = _select_new(tx, into.number, messages, resumed.session_id if resumed else None)
    about: dict[str, Any] = {"source": source, "metadata": metadata, "actor": Actor.HOOK, "received_at": now()}
    saved = save_messages(tx, into, new, **about, only=resumed.rows if resumed else None)
    if not resumed:
        merge_or_link(tx, Criteria.of(source, into, session), saved, found)
    return into.name, saved


def _with_hook_id(message: Message) -> Message:
    if message.native_id:
        return message
    return replace(message, more={**message.more, "native_id": hook_id(message, message.more.get("request_id"))})


def hook_id(message: Message, request: str | None) -> str:
    """Return the id of a message from a hook; it is the same if the event is sent again."""
    sent_at = message.timestamp or now()
    return f"{HOOK_PREFIX}{request or round(sent_at.timestamp() * 1000)}:{message.role}:{message.digest.hex()}"


def adopt_store_ids(
    tx: WriteTransaction, channel_number: int, messages: Sequence[Message], in_session: str | None = None
) -> None:
    """Give the messages from hooks the ids and times that the client's own store has for them.

    `messages`: the whole session from the store; `in_session`: its id, if it resumes the channel. If the store's
    message came first, because it was half written then, the hook's is removed.
    """
    is_from_hook = conversation.c.native_id.startswith(HOOK_PREFIX)
    from_hooks = rows_where(tx, channel_number, is_from_hook, is_in_session(in_session))
    if not from_hooks:
        return
    digests, ends = {bytes(row.digest) for row in from_hooks}, tuple(_BLOCK_BREAK + row.text for row in from_hooks)
    candidates = [
        message
        for message in messages
        if message.native_id and (message.digest in digests or (_is_answer(message) and message.text.endswith(ends)))
    ]
    is_candidate = conversation.c.native_id.in_([message.native_id for message in candidates])
    stored = {row.native_id: row for row in rows_where(tx, channel_number, is_candidate)}
    pairs = _pair_by_time(from_hooks, candidates, stored)
    duplicates = [(row, stored[message.native_id]) for row, message in pairs if message.native_id in stored]
    _note_requests(tx, [(stored_row, row.payload.get("request_id")) for row, stored_row in duplicates])
    replace_messages(tx, [(row, stored_row.number) for row, stored_row in duplicates])
    revise(tx, [(row, _store_fields(row, message)) for row, message in pairs if message.native_id not in stored])
    recount_channel(tx, channel_number)


def _store_fields(row: MessageRow, message: Message) -> dict[str, Any]:
    """Return the fields of a hook's message with the id, time and payload of the store's message.

    The actor does not change. If it is not the hook, the request in which the hook sent the message is noted.
    """
    request = row.payload.get("request_id") if row.actor != Actor.HOOK else None
    noted = {HOOK_REQUEST: request} if request else {}
    return {
        "native_id": message.native_id,
        "timestamp": message.timestamp or row.timestamp,
        "payload": {**noted, **row.payload, **storable(message.more)},
    }


def _pair_by_time(
    from_hooks: Sequence[MessageRow], candidates: Sequence[Message], stored: Mapping[str | None, MessageRow]
) -> list[tuple[MessageRow, Message]]:
    pairs = [
        (abs((message.timestamp or row.timestamp) - row.timestamp), row.number, at)
        for row in from_hooks
        for at, message in enumerate(candidates)
        if _can_match(message, row, stored.get(message.native_id))
    ]
    rows = {row.number: row for row in from_hooks}
    found: dict[int, int] = {}
    for _, number, at in sorted(pairs):
        if number not in found and at not in found.values():
            found[number] = at
    return [(rows[number], candidates[at]) for number, at in found.items()]


def _can_match(message: Message, row: MessageRow, stored: MessageRow | None) -> bool:
    """Return True if the store's message has the hook's words, and is not stored as the message of another hook."""
    if message.digest != bytes(row.digest) and not (_is_answer(message) and _ends_in(message.text, row)):
        return False
    if stored is None:
        return True
    requests = stored.payload.get(HOOK_REQUEST), row.payload.get("request_id")
    return stored.actor != Actor.HOOK and (None in requests or requests[0] == requests[1])


def _is_answer(message: Message | MessageRow) -> bool:
    return message.role == Role.ASSISTANT


def _ends_in(answer: str, from_hook: Message | MessageRow) -> bool:
    """Return whether a hook's text is the last block of an answer: hooks leave out the blocks before it."""
    return _is_answer(from_hook) and answer.endswith(_BLOCK_BREAK + from_hook.text)


class _Event(NamedTuple):
    """A message with its request, if known, and its row, if stored.

    A store's message that a hook sent too has the hook's request: the same words in another request are a new message.
    """

    at: datetime
    request: object
    is_from_hook: bool
    row: MessageRow | None = None

    def is_same_as(self, other: Self) -> bool:
        """Return True if this event, which a hook sent, is the same message as the other one."""
        if self.request and other.request:
            return bool(self.request == other.request)
        return abs(self.at - other.at) <= (MAX_REPEAT_GAP if other.is_from_hook else MAX_CLOCK_GAP)


def is_in_session(session_id: str | None) -> ColumnElement[bool]:
    """Return the condition for messages of a session that resumed the channel; None: of the channel's own session."""
    marked: ColumnElement[str] = conversation.c.payload[IN_SESSION].as_string()
    return marked.is_not_distinct_from(session_id)


def _select_new(
    tx: WriteTransaction, channel_number: int, messages: Sequence[Message], in_session: str | None
) -> list[Message]:
    known = _stored_events(tx, channel_number, messages, in_session)
    new = []
    requests: list[tuple[MessageRow | None, object]] = []
    for message in messages:
        event = _Event(message.timestamp or now(), message.more.get("request_id"), is_from_hook=True)
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


def _stored_events(
    tx: ReadTransaction, channel_number: int, messages: Sequence[Message], in_session: str | None
) -> dict[bytes, list[_Event]]:
    """Return the stored messages that may be the sent ones, by the digest of the sent one."""
    events: dict[bytes, list[_Event]] = defaultdict(list)
    by_digest = {message.digest: message for message in messages}
    may_be_known: ColumnElement[bool] = conversation.c.digest.in_(by_digest)
    if answered_at := [message.timestamp or now() for message in messages if _is_answer(message)]:
        span = min(answered_at) - MAX_CLOCK_GAP, max(answered_at) + MAX_CLOCK_GAP
        may_be_known |= (conversation.c.role == Role.ASSISTANT) & conversation.c.timestamp.between(*span)
    stored = rows_where(
        tx, channel_number, may_be_known, conversation.c.native_id.is_not(None), is_in_session(in_session)
    )
    for row in stored:
        is_from_hook = row.actor == Actor.HOOK or row.native_id.startswith(HOOK_PREFIX)
        request = row.payload.get("request_id" if is_from_hook else HOOK_REQUEST)
        event = _Event(row.timestamp, request, is_from_hook, row)
        same = [bytes(row.digest)] if bytes(row.digest) in by_digest else []
        last_blocks = [digest for digest, sent in by_digest.items() if _is_answer(row) and _ends_in(row.text, sent)]
        for digest in same or last_blocks:
            events[digest].append(event)
    return events


def _note_requests(tx: WriteTransaction, requests: Iterable[tuple[MessageRow | None, object]]) -> None:
    noted = [
        {"number": row.number, "payload": {**row.payload, HOOK_REQUEST: request}}
        for row, request in requests
        if request and row is not None and row.actor != Actor.HOOK and HOOK_REQUEST not in row.payload
    ]
    update_rows(tx, conversation, noted)
