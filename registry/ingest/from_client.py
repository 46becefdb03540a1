"""Store the sessions that a client keeps in its own store: originals, and shortened copies of them.

A copy has no tool results, or is from another client's store. Only its turns with new questions are stored; messages of
the original replace them later.

Sessions that are certainly new are stored together with a few statements. This saves a third of a first import's CPU
(800 sessions of 20 messages: 6.3 s instead of 9.3 s). The others are stored one by one: copies, known ids, sessions
that a tool may have named, and all sessions if anything was ever forgotten.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, and_, not_, or_, select, union_all, update

from registry.domain import Actor, Message, Role, Session, now, storable
from registry.ingest.from_hook import HOOK_PREFIX, adopt_store_ids, is_in_session
from registry.ingest.intake import FORGOTTEN, admit_session, note_if_forgotten
from registry.ingest.own_calls import replace_own_call
from registry.ingest.save import Saved, save_messages, save_new
from registry.ingest.session_channel import (
    IN_SESSION,
    Criteria,
    Resumed,
    find_session,
    merge_or_link,
    metadata_of,
    open_session,
    possible_names,
    serialise_decisions,
    times_note,
    without_named_nearby,
)
from registry.storage.conversations.channels import ChannelRow, make_channels, open_channel, recount_channel
from registry.storage.conversations.messages import MessageRow, remove, revise, rows_where, set_superseded
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.exchange.edits import record_superseded
from registry.storage.safety.forgetting import is_anything_forgotten
from registry.storage.tables import channel, channel_alias, conversation

EMPTY = "it has no messages"
COPY_PREFIX = "copy:"  # begins the ids of messages that only a copy has so far

_IS_COPIED = conversation.c.native_id.startswith(COPY_PREFIX)
_IS_FROM_HOOK = conversation.c.native_id.startswith(HOOK_PREFIX)
_IS_ORIGINAL = or_(conversation.c.native_id.is_(None), and_(not_(_IS_COPIED), not_(_IS_FROM_HOOK)))


def ingest_all(tx: WriteTransaction, source: str, sessions: Sequence[Session]) -> list[Saved]:
    """Store several sessions: first the new ones together, then the others one by one."""
    new = _ingest_new(tx, source, sessions)
    return [new.get(at) or ingest_from_client(tx, source, session) for at, session in enumerate(sessions)]


def ingest_from_client(tx: WriteTransaction, source: str, session: Session) -> Saved:
    """Store the new messages of a session from a client's own store. A message that a tool sent keeps its actor."""
    session, refusal = admit_session(tx, source, session)
    if refusal:
        return Saved.refused(refusal)
    found = find_session(tx, source, session)
    known = found.known
    if known is None and not session.messages:
        return Saved.refused(EMPTY)
    if known is None and note_if_forgotten(tx, session.messages, session_id=session.session_id):
        return Saved.refused(FORGOTTEN)
    if session.is_copy:
        return _ingest_copy(tx, source, session, known)
    messages: Sequence[Message] = session.messages
    if known and found.resumed:
        saved = _ingest_resumed(tx, source, found.resumed.added_since(messages), known, found.resumed)
        _mark_undone(tx, known.number, source, session, found.resumed.session_id)
        return saved
    if known:
        if stored_questions := _question_digests(tx, known.number, _is_from_other_reader(source)):
            messages = _turns_not_in(stored_questions, messages)
        _replace_copies(tx, known, messages, source)
        adopt_store_ids(tx, known.number, messages)
    into = open_session(tx, source, session, known)
    metadata = metadata_of(session) | times_note(session, known)
    saved = save_messages(tx, into, messages, source=source, metadata=metadata, actor=Actor.READER, received_at=now())
    _mark_undone(tx, into.number, source, session, None)
    merge_or_link(tx, Criteria.of(source, into, session), saved, found)
    return saved


def _ingest_resumed(
    tx: WriteTransaction, source: str, messages: Sequence[Message], known: ChannelRow, resumed: Resumed
) -> Saved:
    """Store the messages added to a session since `ctxr resume` wrote it; the channel's metadata does not change."""
    adopt_store_ids(tx, known.number, messages, resumed.session_id)
    into = open_channel(tx, known.name, source, now())
    about: dict[str, Any] = {"source": source, "metadata": {}, "actor": Actor.READER, "received_at": now()}
    return save_messages(tx, into, messages, **about, only=resumed.rows)


def _mark_undone(
    tx: WriteTransaction, channel_number: int, source: str, session: Session, in_session: str | None
) -> None:
    """Mark the stored messages of a session that its user undid and its store no longer has."""
    if not session.undone:
        return
    kept = {message.native_id for message in session.messages}
    times = (and_(conversation.c.timestamp >= since, conversation.c.timestamp < to) for since, to in session.undone)
    is_own = conversation.c.source == source, is_in_session(in_session), conversation.c.forgotten.is_(False)
    rows = rows_where(tx, channel_number, or_(*times), *is_own)
    undone = [row for row in rows if row.native_id not in kept and "superseded" not in row.payload]
    set_superseded(tx, undone, True)
    record_superseded(tx, undone, True)


def _ingest_copy(tx: WriteTransaction, source: str, session: Session, known: ChannelRow | None) -> Saved:
    copied = [
        replace(one, more={**one.more, "native_id": f"{COPY_PREFIX}{one.more['native_id']}"})
        for one in session.messages
    ]
    if known:
        turns = _turns_not_in(_question_digests(tx, known.number, _IS_ORIGINAL), copied)
        others = _digests(tx, known.number, or_(_IS_FROM_HOOK, _IS_COPIED), without={one.native_id for one in copied})
        copied = [message for message in turns if not _take_one(others, message)]
        if not copied:
            return Saved([], 0, now(), known.number)
        # metadata of the original takes precedence
        title = None if known.title else session.title
        session = replace(session, title=title, project=None if known.project_path else session.project)
    into = open_session(tx, source, session, known)
    metadata = metadata_of(session)
    return save_messages(tx, into, copied, source=source, metadata=metadata, actor=Actor.COPY, received_at=now())


def _replace_copies(tx: WriteTransaction, into: ChannelRow, messages: Sequence[Message], source: str) -> None:
    """Turn the messages of a session's copies into those of the original that is about to be stored, or remove them.

    A channel with messages of copies only gets the original's source.
    """
    rows = rows_where(tx, into.number, _IS_COPIED)
    if not rows:
        return
    available = _unstored(tx, into.number, messages)
    replaced = [(row, available[bytes(row.digest)].popleft()) for row in rows if available.get(bytes(row.digest))]
    revise(tx, [(row, _original_fields(row, message)) for row, message in replaced])
    replaced_numbers = {row.number for row, _ in replaced}
    left = [row for row in rows if row.number not in replaced_numbers]
    hook_only = [row for row in rows_where(tx, into.number, _IS_FROM_HOOK) if bytes(row.digest) not in available]
    kept_turns = {row.seq for row in left if row.role == Role.USER} | {row.seq for row in hook_only}
    remove(tx, [row for row in left if row.turn not in kept_turns])
    if not _question_digests(tx, into.number, _is_from_other_reader(source)):
        tx.execute(update(channel).where(channel.c.number == into.number).values(source=source))
        copied = rows_where(tx, into.number, conversation.c.actor == Actor.COPY)
        revise(tx, [(row, {"source": source}) for row in copied])
    recount_channel(tx, into.number)


def _unstored(tx: ReadTransaction, channel_number: int, messages: Iterable[Message]) -> dict[bytes, deque[Message]]:
    """Return the messages whose ids are not stored, by digest."""
    ids = select(conversation.c.native_id).where(conversation.c.channel_number == channel_number)
    stored = set(tx.execute(ids).scalars())
    available: dict[bytes, deque[Message]] = defaultdict(deque)
    for message in messages:
        if message.native_id not in stored:
            available[message.digest].append(message)
    return available


def _original_fields(row: MessageRow, message: Message) -> dict[str, Any]:
    if row.forgotten:
        return {"native_id": message.native_id}
    payload = {**row.payload, **storable(message.more)}
    if "time" not in message.more:
        payload.pop("time", None)
    timestamp = message.timestamp or row.timestamp
    return {"native_id": message.native_id, "timestamp": timestamp, "payload": payload}


def _is_from_other_reader(source: str) -> ColumnElement[bool]:
    in_session = conversation.c.payload[IN_SESSION].as_string()
    return and_(conversation.c.actor == Actor.READER, conversation.c.source != source, in_session.is_(None))


def _question_digests(tx: ReadTransaction, channel_number: int, condition: ColumnElement[bool]) -> Counter[bytes]:
    return _digests(tx, channel_number, condition & (conversation.c.role == Role.USER))


def _digests(
    tx: ReadTransaction, channel_number: int, condition: ColumnElement[bool], without: Container[str | None] = ()
) -> Counter[bytes]:
    """Return how often each digest is stored, except in messages with one of the ids `without`."""
    columns = conversation.c.native_id, conversation.c.digest
    rows = tx.execute(select(*columns).where(conversation.c.channel_number == channel_number, condition))
    return Counter(bytes(digest) for native_id, digest in rows if native_id not in without)


def _turns_not_in(known: Counter[bytes], messages: Iterable[Message]) -> list[Message]:
    """Return the messages of turns whose question is not known; each known question is matched once."""
    new: list[Message] = []
    is_new = False
    for message in messages:
        if message.role is Role.USER:
            is_new = not _take_one(known, message)
        if is_new:
            new.append(message)
    return new


def _take_one(known: Counter[bytes], message: Message) -> bool:
    digest = message.digest
    known[digest] -= (is_known := known[digest] > 0)
    return is_known


def _ingest_new(tx: WriteTransaction, source: str, sessions: Sequence[Session]) -> dict[int, Saved]:
    """Store those sessions together that are certainly new; return their outcomes by position."""
    if is_anything_forgotten(tx):
        return {}
    serialise_decisions(tx, source)
    received_at = now()
    admitted: dict[int, tuple[str, Session]] = {}
    done: dict[int, Saved] = {}
    for at, name in _new_names(tx, source, sessions).items():
        session, refusal = admit_session(tx, source, sessions[at], may_be_forgotten=False)
        if refusal:
            done[at] = Saved.refused(refusal)
        elif session.messages == tuple(map(replace_own_call, session.messages)):
            admitted[at] = name, session
    about = {at: Criteria.of(source, None, session) for at, (_, session) in admitted.items()}
    new = {at: admitted[at] for at in without_named_nearby(tx, source, about)}
    described = {name: metadata_of(session) | times_note(session, None) for name, session in new.values()}
    made = make_channels(tx, described, source, received_at)
    new = {at: (name, session) for at, (name, session) in new.items() if name in made}
    to_save = [(made[name], session.messages, described[name]) for name, session in new.values()]
    saved = save_new(tx, to_save, source=source, received_at=received_at)
    return done | dict(zip(new, saved, strict=True))


def _new_names(tx: ReadTransaction, source: str, sessions: Sequence[Session]) -> dict[int, str]:
    """Return the positions of sessions whose ids no channel has, each with the name of its new channel."""
    counts = Counter(session.session_id for session in sessions)
    unique = {
        at: each
        for at, each in enumerate(sessions)
        if each.messages and not each.is_copy and counts[each.session_id] == 1
    }
    names = {at: possible_names(source, session) for at, session in unique.items()}
    ids = [session.session_id for session in unique.values()]
    lookup_names = [*ids, *(name for some in names.values() for name in some)]
    query = union_all(
        select(channel.c.session_id).where(channel.c.session_id.in_(ids)),
        select(channel.c.name).where(channel.c.name.in_(lookup_names)),
        select(channel_alias.c.name).where(channel_alias.c.name.in_(lookup_names)),
    )
    names_in_use = set(tx.execute(query).scalars())
    free: dict[int, str] = {}
    for at, session in unique.items():
        name = next((name for name in names[at] if name not in names_in_use), None)
        if name and session.session_id not in names_in_use:
            free[at] = name
            names_in_use.add(name)
    return free
