"""The channel of a client's session: the one it is known as, else one that a tool has named, else a new one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

from sqlalchemy import case, select

from registry.domain import Message, Session, now
from registry.ingest.merge_channels import merge_channels, merge_shortened
from registry.ingest.same_conversation_lookup import (
    Circumstances,
    Matches,
    decide_alone,
    family_of,
    matching_named,
    stored_transcript,
    transcript_of,
)
from registry.ingest.save import Saved
from registry.storage.conversations.aliases import set_links
from registry.storage.conversations.channels import (
    INFERRED,
    KNOWN,
    TIMES,
    ChannelRow,
    find_channel,
    make_channel,
    open_channel,
)
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.tables import channel, conversation

_ENOUGH_IDS = 100


@dataclass(frozen=True, slots=True)
class Agent:
    """A sub-agent and the session it works for: its own id is short, and others may have the same."""

    of_session: str
    messages: Sequence[Message]


def channel_of_session(
    tx: ReadTransaction, sources: Sequence[str], session_id: str, agent: Agent | None = None
) -> ChannelRow | None:
    """The channel that is known to be this session; one of the first source before others."""
    query = select(channel).where(channel.c.session_id == session_id, channel.c.source.in_(sources))
    rows = tx.execute(query.order_by(case((channel.c.source == sources[0], 0), else_=1), channel.c.number))
    return next((row for row in rows if agent is None or _is_that_agent(tx, row, agent)), None)


def _is_that_agent(tx: ReadTransaction, row: ChannelRow, agent: Agent) -> bool:
    """Known to work for the same session, or for one whose copy this is: then its messages have the same ids."""
    if row.meta.get("parent") in (None, agent.of_session):
        return True
    ids = [message.more.get("native_id") for message in agent.messages[:_ENOUGH_IDS]]
    query = select(conversation.c.number).where(
        conversation.c.channel_number == row.number, conversation.c.native_id.in_(filter(None, ids))
    )
    return tx.execute(query.limit(1)).first() is not None


@dataclass(frozen=True, slots=True)
class SessionChannel:
    """A session's channel as far as there is one, and the channels that tools have named and that may be the session.

    `named` is None for a session that is known already: then these are looked for when something new of it was stored.
    """

    known: ChannelRow | None
    named: Matches | None = None
    is_carried_on: bool = False
    """The session is one that we wrote, and the channel goes on in it."""


def channel_for(tx: WriteTransaction, source: str, session: Session) -> SessionChannel:
    """Look up the channel that a client's session goes to. Nobody else decides that until the transaction ends."""
    decide_alone(tx, source)
    if carried := _carried_from(tx, session):
        return SessionChannel(carried, is_carried_on=True)
    agent_of = session.parent if session.meta.get("relation") == "sub-agent" else None
    agent = Agent(agent_of, session.messages) if agent_of else None
    known = channel_of_session(tx, [source, *family_of(source)], session.session_id, agent)
    if known:
        return SessionChannel(known)
    named = matching_named(tx, Circumstances.of(source, None, session), lambda: transcript_of(session.messages), None)
    return SessionChannel(named.same[0] if named.same else None, named)


def _carried_from(tx: ReadTransaction, session: Session) -> ChannelRow | None:
    """The channel that goes on in a session that we wrote: it has the session's id as another name."""
    row = find_channel(tx, session.session_id)
    return row if row and session.session_id not in (row.name, row.session_id) else None


def open_for(tx: WriteTransaction, source: str, session: Session, known: ChannelRow | None) -> ChannelRow:
    """The session's channel, made if new, locked."""
    if known:
        return open_channel(tx, known.name, source, now())
    return make_channel(tx, _new_name(tx, source, session), source, now())


def bring_together(tx: WriteTransaction, about: Circumstances, saved: Saved, found: SessionChannel) -> None:
    """Merge into a session's channel those that tools have named for it; link those that may be it."""
    if saved.new and (found.named is None or found.named.same):
        merge_shortened(tx, saved.channel_number)
    named = found.named or (_named_by_now(tx, about, saved.channel_number) if saved.new else Matches())
    for row in named.same:
        if row.number != saved.channel_number:
            merge_channels(tx, row.number, saved.channel_number)
    for row in named.perhaps:
        set_links(tx, row.number, [saved.channel_number])


def _named_by_now(tx: ReadTransaction, about: Circumstances, number: int) -> Matches:
    return matching_named(tx, about, lambda: stored_transcript(tx, number), number)


def _new_name(tx: WriteTransaction, source: str, session: Session) -> str:
    name, own = names_for(source, session)
    names = chain([name, own], (f"{own}_{number}" for number in count(2)))
    return next(free for free in names if find_channel(tx, free) is None)


def names_for(source: str, session: Session) -> tuple[str, str]:
    """`{source}_session_{timestamp}`; those that began in the same second are told apart by their native ids."""
    began = next((message.timestamp for message in session.messages if message.timestamp), now())
    name = f"{source}_session_{began:%Y%m%d_%H%M%S}"
    return name, f"{name}_{session.session_id[:36]}"


def describing(session: Session) -> dict[str, Any]:
    """What a session says of its channel."""
    known = {
        "session_id": session.session_id,
        "title": session.title,
        "project": session.project,
        "parent": session.parent,
        **session.meta,
    }
    return {name: value for name, value in known.items() if value is not None}


def whose_times(session: Session, known: ChannelRow | None) -> dict[str, str]:
    """What is to be noted where the client told no time at all, or tells some by now."""
    if session.messages and all(message.more.get("time") == INFERRED for message in session.messages):
        return {TIMES: INFERRED}
    return {TIMES: KNOWN} if known and TIMES in known.meta else {}
