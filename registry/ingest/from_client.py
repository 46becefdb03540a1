"""What a client keeps of its session in its own store: whole, and some of it a second time as a shortened copy.

The whole is what counts. Of a copy (one without results, or as another client keeps it) only those turns are taken
whose questions nothing else has; when the whole has them, too, its messages take their place.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, and_, not_, or_, select, update

from registry.domain import Actor, Message, Role, Session, digest_of, now, storable
from registry.ingest.from_hook import PREFIX as HOOK_PREFIX
from registry.ingest.from_hook import take_store_ids
from registry.ingest.intake import FORGOTTEN, is_forgotten, let_in_session, with_sound_times
from registry.ingest.save import Saved, save_messages
from registry.ingest.session_channel import (
    IN_SESSION,
    Circumstances,
    Resumed,
    bring_together,
    channel_for,
    describing,
    open_for,
    whose_times,
)
from registry.storage.conversations.channels import ChannelRow, open_channel, recount_channel
from registry.storage.conversations.messages import MessageRow, remove, revise, rows_where
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.tables import channel, conversation

PREFIX = "copy:"  # prefix of ids of messages that only a copy has so far

_IS_COPIED = conversation.c.native_id.startswith(PREFIX)
_IS_OF_HOOK = conversation.c.native_id.startswith(HOOK_PREFIX)
_IS_WHOLE = or_(conversation.c.native_id.is_(None), and_(not_(_IS_COPIED), not_(_IS_OF_HOOK)))


def ingest_from_client(tx: WriteTransaction, source: str, session: Session) -> Saved:
    """Store what is new of a session in a client's own store; a message that a tool sent before keeps its actor."""
    session = replace(session, messages=tuple(with_sound_times(session.messages, now())))
    session, kept_out = let_in_session(tx, source, session)
    if kept_out:
        return Saved.refused(kept_out)
    found = channel_for(tx, source, session)
    known = found.known
    if known is None and is_forgotten(tx, session.messages, session_id=session.session_id):
        return Saved.refused(FORGOTTEN)
    if session.is_copy:
        return _ingest_copy(tx, source, session, known)
    messages: Sequence[Message] = session.messages
    if known and found.resumed:
        return _ingest_resumed(tx, source, found.resumed.said_since(messages), known, found.resumed)
    if known:
        messages = _not_read_elsewhere(tx, known, messages, source)
        _replace_copies(tx, known, messages, source)
        take_store_ids(tx, known.number, messages)
    into = open_for(tx, source, session, known)
    metadata = describing(session) | whose_times(session, known)
    saved = save_messages(tx, into, messages, source=source, metadata=metadata, actor=Actor.READER, received_at=now())
    bring_together(tx, Circumstances.of(source, into, session), saved, found)
    return saved


def _ingest_resumed(
    tx: WriteTransaction, source: str, messages: Sequence[Message], known: ChannelRow, resumed: Resumed
) -> Saved:
    """Store what was said in a session that `ctxr resume` wrote, since then; nothing else of the channel changes."""
    take_store_ids(tx, known.number, messages, resumed.session_id)
    into = open_channel(tx, known.name, source, now())
    about: dict[str, Any] = {"source": source, "metadata": {}, "actor": Actor.READER, "received_at": now()}
    return save_messages(tx, into, messages, **about, among=resumed.rows)


def _ingest_copy(tx: WriteTransaction, source: str, session: Session, known: ChannelRow | None) -> Saved:
    messages = _only_in_copy(tx, known.number, session.messages) if known else session.messages
    if known and not messages:
        return Saved([], 0, now(), known.number)
    if known:  # what is known of the conversation, the whole knows better
        title = None if known.title else session.title
        session = replace(session, title=title, project=None if known.project_path else session.project)
    into = open_for(tx, source, session, known)
    metadata = describing(session)
    named = [_as_copied(message) for message in messages]
    return save_messages(tx, into, named, source=source, metadata=metadata, actor=Actor.COPY, received_at=now())


def _as_copied(message: Message) -> Message:
    return replace(message, more={**message.more, "native_id": f"{PREFIX}{message.more['native_id']}"})


def _only_in_copy(tx: ReadTransaction, channel_number: int, messages: Iterable[Message]) -> list[Message]:
    turns = _turns_besides(_questions(tx, channel_number, _IS_WHOLE), messages)
    from_hooks = _digests(tx, channel_number, _IS_OF_HOOK)
    return [message for message in turns if not _take(from_hooks, message)]


def _not_read_elsewhere(
    tx: ReadTransaction, into: ChannelRow, messages: Sequence[Message], source: str
) -> Sequence[Message]:
    """Return the turns of a session that another client's store has not brought in; usually all."""
    elsewhere = _questions(tx, into.number, _is_read_by_others(source))
    return _turns_besides(elsewhere, messages) if elsewhere else messages


def _replace_copies(tx: WriteTransaction, into: ChannelRow, messages: Sequence[Message], source: str) -> None:
    """Make room for the whole session, before it is stored: a copy's message becomes the whole's, or goes.

    A channel that only copies have filled so far becomes one of the whole's source.
    """
    rows = rows_where(tx, into.number, _IS_COPIED)
    if not rows:
        return
    offered = _offered(tx, into.number, messages)
    become = [(row, offered[bytes(row.digest)].popleft()) for row in rows if offered.get(bytes(row.digest))]
    revise(tx, [(row, _as_whole(row, message)) for row, message in become])
    taken = {row.number for row, _ in become}
    left = [row for row in rows if row.number not in taken]
    kept = _turns_kept(
        left, [row for row in rows_where(tx, into.number, _IS_OF_HOOK) if bytes(row.digest) not in offered]
    )
    remove(tx, [row for row in left if row.turn not in kept])
    if not _questions(tx, into.number, _is_read_by_others(source)):
        _change_source(tx, into.number, source)
    recount_channel(tx, into.number)


def _change_source(tx: WriteTransaction, number: int, source: str) -> None:
    tx.execute(update(channel).where(channel.c.number == number).values(source=source))
    revise(tx, [(row, {"source": source}) for row in rows_where(tx, number, conversation.c.actor == Actor.COPY)])


def _turns_kept(copied: Iterable[MessageRow], of_hooks: Iterable[MessageRow]) -> set[int]:
    return {row.seq for row in copied if row.role == Role.USER} | {row.seq for row in of_hooks}


def _offered(tx: ReadTransaction, channel_number: int, messages: Iterable[Message]) -> dict[bytes, deque[Message]]:
    named = select(conversation.c.native_id).where(conversation.c.channel_number == channel_number)
    stored = set(tx.execute(named).scalars())
    offered: dict[bytes, deque[Message]] = defaultdict(deque)
    for message in messages:
        if message.more.get("native_id") not in stored:
            offered[digest_of(message.role, storable(message.text))].append(message)
    return offered


def _as_whole(row: MessageRow, message: Message) -> dict[str, Any]:
    if row.forgotten:
        return {"native_id": message.more.get("native_id")}
    payload = {**row.payload, **storable(message.more)}
    if "time" not in message.more:
        payload.pop("time", None)
    timestamp = message.timestamp or row.timestamp
    return {"native_id": message.more.get("native_id"), "timestamp": timestamp, "payload": payload}


def _is_read_by_others(source: str) -> ColumnElement[bool]:
    in_session = conversation.c.payload[IN_SESSION].as_string()
    return and_(conversation.c.actor == Actor.READER, conversation.c.source != source, in_session.is_(None))


def _questions(tx: ReadTransaction, channel_number: int, condition: ColumnElement[bool]) -> Counter[bytes]:
    return _digests(tx, channel_number, condition & (conversation.c.role == Role.USER))


def _digests(tx: ReadTransaction, channel_number: int, condition: ColumnElement[bool]) -> Counter[bytes]:
    query = select(conversation.c.digest).where(conversation.c.channel_number == channel_number, condition)
    return Counter(bytes(digest) for digest in tx.execute(query).scalars())


def _turns_besides(known: Counter[bytes], messages: Iterable[Message]) -> list[Message]:
    """Return the turns whose question is none of the known ones; each of these stands for one."""
    kept: list[Message] = []
    is_new = False
    for message in messages:
        if message.role is Role.USER:
            is_new = not _take(known, message)
        if is_new:
            kept.append(message)
    return kept


def _take(known: Counter[bytes], message: Message) -> bool:
    digest = digest_of(message.role, storable(message.text))
    known[digest] -= (is_known := known[digest] > 0)
    return is_known
