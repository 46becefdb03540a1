"""Store the messages that a model sends of its chat through a tool.

The usual call finds its channel by name. Only a new name, or a channel that may be a client's session, is compared
with sessions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from registry.domain import CLAIMED, Actor, Message
from registry.ingest.intake import FORGOTTEN, is_forgotten, let_in
from registry.ingest.merge_channels import merge_channels
from registry.ingest.same_conversation import Verdict
from registry.ingest.save import Saved, save_messages
from registry.ingest.session_channel import (
    Circumstances,
    Matches,
    channel_of_session,
    decide_alone,
    family_of,
    judge_session,
    matching_sessions,
    transcript_of,
)
from registry.storage.conversations import references
from registry.storage.conversations.channels import ChannelRow, find_channel, lock_channel, open_channel
from registry.storage.conversations.messages import current_ids
from registry.storage.database import WriteTransaction

_OF_THE_SESSION = ("session_id", "title", "project", "summary", "parent", "relation")
"""Metadata that a client's session knows itself, and that a tool does not change."""


@dataclass(frozen=True, slots=True)
class _Call:
    messages: Sequence[Message]
    source: str
    metadata: Mapping[str, Any]
    received_at: datetime


def ingest_from_tool(
    tx: WriteTransaction,
    name: str,
    messages: Sequence[Message],
    *,
    source: str,
    metadata: Mapping[str, Any],
    received_at: datetime,
) -> tuple[str, Saved]:
    """Store the new messages of a conversation sent under a name; return the channel's own name and the outcome."""
    settled = references.find_settled_channel(tx, name)
    project = settled.project_path if settled else None
    claimed = [_as_claimed(one) for one in messages]
    kept, about, kept_out = let_in(tx, claimed, metadata, source=source, channel=name, project=project)
    if kept_out:
        return name, Saved.refused(kept_out)
    if settled is None and find_channel(tx, name) is None:
        session_id = about.get("session_id")
        named = session_id if isinstance(session_id, str) else None
        if is_forgotten(tx, kept, channel=name, session_id=named):
            return name, Saved.refused(FORGOTTEN)
    call = _Call(kept, source, about, received_at)
    if settled is not None:
        return settled.name, _save(tx, settled, call)
    decide_alone(tx, source)
    known = find_channel(tx, name, lock=True)  # another writer may have made or merged it meanwhile
    return _ingest_linked(tx, known, call) if known else _ingest_new(tx, name, call)


def _as_claimed(message: Message) -> Message:
    """Store the client's own id as a claim of the caller, which must not change the client's messages."""
    if "native_id" not in message.more:
        return message
    more = {key: value for key, value in message.more.items() if key != "native_id"}
    return replace(message, more={**more, CLAIMED: {"native_id": message.more["native_id"]}})


def _save(tx: WriteTransaction, into: ChannelRow, call: _Call) -> Saved:
    metadata = call.metadata
    if into.session_id is not None:
        metadata = {key: metadata[key] for key in metadata if key not in _OF_THE_SESSION or not into.meta.get(key)}
    return save_messages(
        tx,
        into,
        _of_source(call, into),
        source=into.source,
        metadata=metadata,
        actor=Actor.TOOL,
        received_at=call.received_at,
    )


def _of_source(call: _Call, into: ChannelRow) -> Sequence[Message]:
    """Return the messages; those sent under another source than the channel's note that as a claim."""
    if call.source in ("unknown", into.source) or into.source in family_of(call.source):
        return call.messages
    return [
        replace(one, more={**one.more, CLAIMED: {**one.more.get(CLAIMED, {}), "source": call.source}})
        for one in call.messages
    ]


def _ingest_new(tx: WriteTransaction, name: str, call: _Call) -> tuple[str, Saved]:
    """Store it in the session that it is; else in a channel of its own, linked to the sessions that it may be."""
    found = _sessions(tx, call)
    if found.same:
        into = lock_channel(tx, found.same[0].number)
        references.add_alias(tx, name, into.number)
        return into.name, _save(tx, into, call)
    into = open_channel(tx, name, call.source, call.received_at)
    saved = _save(tx, into, call)
    references.set_links(tx, into.number, [row.number for row in found.perhaps])
    return into.name, saved


def _sessions(tx: WriteTransaction, call: _Call) -> Matches:
    """Return the session of a new name: the one whose native id is given, else one with the same questions."""
    if isinstance(call.metadata.get("session_id"), str):
        row = channel_of_session(tx, family_of(call.source), call.metadata["session_id"])
        return Matches([row] if row else [])
    moments = [message.timestamp for message in call.messages if message.timestamp] or [call.received_at]
    given = call.metadata.get("project")
    project = given if isinstance(given, str) else None
    about = Circumstances(call.source, project, min(moments), max(*moments, call.received_at))
    return matching_sessions(tx, about, lambda: transcript_of(call.messages))


def _ingest_linked(tx: WriteTransaction, known: ChannelRow, call: _Call) -> tuple[str, Saved]:
    """Store it in a channel that may be one of its linked sessions, and compare with these again."""
    saved = _save(tx, known, call)
    links = [] if known.session_id else references.linked_sessions(tx, known.number)
    session = _settle(tx, known.number, links) if saved.new else None
    if session is None:
        return known.name, saved
    current = current_ids(tx, saved.ids)
    return lock_channel(tx, session).name, replace(saved, ids=[current.get(id_, id_) for id_ in saved.ids])


def _settle(tx: WriteTransaction, named: int, sessions: Sequence[int]) -> int | None:
    """Compare a channel with its linked sessions; return the one that it was merged into, if any."""
    verdicts = {session: judge_session(tx, session, named) for session in sessions}
    same = [session for session, verdict in verdicts.items() if verdict is Verdict.SAME]
    if len(same) == 1:
        merge_channels(tx, named, same[0])
        return same[0]
    for session, verdict in verdicts.items():
        if verdict is Verdict.OTHER:
            references.drop_link(tx, named, session)
    return None
