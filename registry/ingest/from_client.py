"""A client's own session on its way into a channel: the one it is known as, the one it was pushed to, or a new one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, count
from typing import Any

from registry.domain import Message, Session, now
from registry.ingest import partial_copies as copies
from registry.ingest.hook_messages import ORIGIN as HOOK
from registry.ingest.hook_messages import hand_over, unheard
from registry.ingest.merge_channels import join, unite_shortened
from registry.ingest.same_conversation_lookup import (
    Agent,
    Circumstances,
    Found,
    channel_of_session,
    decide_alone,
    family_of,
    stored_telling,
    telling_of,
    tellings_of,
)
from registry.ingest.save import Saved, save_messages
from registry.storage.aliases import set_links
from registry.storage.channels import ChannelRow, find_channel
from registry.storage.database import ReadTransaction, WriteTransaction

ORIGIN = copies.READER
"""Who stored a message, as its `actor`: one that was pushed before keeps its own."""


def import_session(tx: WriteTransaction, source: str, session: Session) -> Saved:
    """Store what is new of a session."""
    known, found = _channel(tx, source, session)
    if session.is_copy:
        return _import_copy(tx, source, session, known)
    messages = session.messages
    if known:
        messages = tuple(copies.unread(tx, known, messages, source))
        copies.give_way(tx, known, messages, source)
        hand_over(tx, known.number, messages)
    saved = _save(tx, source, session, known, messages, ORIGIN)
    _bring_together(tx, source, session, saved, found)
    return saved


def _import_copy(tx: WriteTransaction, source: str, session: Session, known: ChannelRow | None) -> Saved:
    """Store the turns that are told nowhere else, under names of their own."""
    messages = copies.untold(tx, known.number, session.messages) if known else session.messages
    if known and not messages:
        return Saved([], 0, now(), known.number)
    if known:  # what is known of the conversation, the whole knows better
        title = None if known.title else session.title
        session = replace(session, title=title, project=None if known.project_path else session.project)
    names = (f"{copies.PREFIX}{message.more['native_id']}" for message in messages)
    named = [replace(each, more={**each.more, "native_id": name}) for each, name in zip(messages, names, strict=True)]
    return _save(tx, source, session, known, named, copies.ORIGIN)


def _save(
    tx: WriteTransaction,
    source: str,
    session: Session,
    known: ChannelRow | None,
    messages: Sequence[Message],
    actor: str,
) -> Saved:
    return save_messages(
        tx,
        known.name if known else _new_name(tx, source, session),
        messages,
        source=source,
        metadata=_metadata(session),
        actor=actor,
        received_at=now(),
    )


def import_heard(tx: WriteTransaction, source: str, session: Session) -> tuple[str, Saved]:
    """Store what is new of what a client's hooks told of a session; the channel, and what became of it."""
    known, found = _channel(tx, source, session)
    new = unheard(tx, known.number if known else None, session.messages)
    metadata = _metadata(session)
    if known and known.project_path:
        metadata.pop("project", None)  # a hook tells the folder of the moment, the store that of the session
    name = str(known.name) if known else _new_name(tx, source, session)
    saved = save_messages(tx, name, new, source=source, metadata=metadata, actor=HOOK, received_at=now())
    _bring_together(tx, source, session, saved, found)
    return name, saved


def _channel(tx: WriteTransaction, source: str, session: Session) -> tuple[ChannelRow | None, Found | None]:
    """The session's channel, and what was told of a session that has none yet."""
    decide_alone(tx, source)
    known = _known(tx, source, session)
    if known:
        return known, None
    moments = [message.timestamp for message in session.messages if message.timestamp] or [now()]
    about = Circumstances(source, session.project, min(moments), max(moments))
    found = tellings_of(tx, about, lambda: telling_of(session.messages), None)
    return (found.same[0] if found.same else None), found


def _known(tx: ReadTransaction, source: str, session: Session) -> ChannelRow | None:
    agent_of = session.parent if session.meta.get("relation") == "sub-agent" else None
    agent = Agent(agent_of, session.messages) if agent_of else None
    return channel_of_session(tx, [source, *family_of(source)], session.session_id, agent)


def _bring_together(tx: WriteTransaction, source: str, session: Session, saved: Saved, found: Found | None) -> None:
    """Join to a session's channel those under which a tool told of it; link those that may be."""
    if saved.new and (found is None or found.same):
        unite_shortened(tx, saved.channel_number)
    if found is None:
        if not saved.new:
            return
        row = _known(tx, source, session)
        if row is None:
            return
        about = Circumstances(source, row.project_path, row.created_at, row.updated_at)
        found = tellings_of(tx, about, lambda: stored_telling(tx, row.number), row.number)
    for told in found.same:
        if told.number != saved.channel_number:
            join(tx, told.number, saved.channel_number)
    for told in found.perhaps:
        set_links(tx, told.number, [saved.channel_number])


def _new_name(tx: WriteTransaction, source: str, session: Session) -> str:
    """`{source}_session_{timestamp}`; those that began in the same second are told apart by their native ids."""
    began = next((message.timestamp for message in session.messages if message.timestamp), now())
    name = f"{source}_session_{began:%Y%m%d_%H%M%S}"
    own = f"{name}_{session.session_id[:36]}"
    names = chain([name, own], (f"{own}_{number}" for number in count(2)))
    return next(free for free in names if find_channel(tx, free) is None)


def _metadata(session: Session) -> dict[str, Any]:
    known = {
        "session_id": session.session_id,
        "title": session.title,
        "project": session.project,
        "parent": session.parent,
        **session.meta,
    }
    return {name: value for name, value in known.items() if value is not None}
