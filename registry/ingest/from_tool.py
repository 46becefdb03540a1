"""Store the messages of a chat that a model sends through a tool.

The usual call finds its channel by name. Only a new name, or a channel that may be a client's session, is compared
with sessions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from registry.domain import CLAIMED, Actor, Message
from registry.ingest.intake import CONTINUED, FORGOTTEN, admit_messages, note_if_forgotten
from registry.ingest.merge_channels import merge_channels
from registry.ingest.same_conversation import Verdict
from registry.ingest.save import Saved, save_messages
from registry.ingest.session_channel import (
    ChannelMatches,
    Criteria,
    channel_of_session,
    judge_session,
    matching_sessions,
    related_sources,
    serialise_decisions,
    transcript_of,
)
from registry.storage.conversations import references
from registry.storage.conversations.channels import ChannelRow, find_channel, lock_channel, open_channel
from registry.storage.conversations.messages import current_ids
from registry.storage.database import WriteTransaction
from registry.storage.safety.forgetting import BY_POLICY

_SESSION_METADATA = ("session_id", "title", "project", "summary", "parent", "relation")
"""Metadata from the client's own session, which a tool does not change."""


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
    of_other_person: bool = False,
    is_exchanged: bool = False,
) -> tuple[str, Saved]:
    """Store the new messages of a conversation sent under `name`; return its channel's name and the outcome.

    `of_other_person`: not a chat of this machine's person, even if it has the same messages because it continues one.
    `is_exchanged`: from another registry, which may have written in a channel that was forgotten here.
    """
    settled = references.find_settled_channel(tx, name)
    project = settled.project_path if settled else None
    claimed = [_with_claimed_id(one) for one in messages]
    admitted, about, refusal = admit_messages(tx, claimed, metadata, source=source, channel=name, project=project)
    if refusal:
        return name, Saved.refused(refusal)
    if settled is None and find_channel(tx, name) is None:
        session_id = about.get("session_id")
        named = session_id if isinstance(session_id, str) else None
        if receipt := note_if_forgotten(tx, admitted, channel=name, session_id=named):
            if not is_exchanged or receipt.startswith(BY_POLICY):
                return name, Saved.refused(FORGOTTEN)
            about = {**about, CONTINUED: True}
    call = _Call(admitted, source, about, received_at)
    if settled is not None:
        return settled.name, _save(tx, settled, call)
    serialise_decisions(tx, source)
    known = find_channel(tx, name, lock=True)  # another writer may have created or merged it meanwhile
    if known:
        return _ingest_linked(tx, known, call)
    return _ingest_new(tx, name, call, ChannelMatches([]) if of_other_person else _find_sessions(tx, call))


def _with_claimed_id(message: Message) -> Message:
    """Note the client's own id as a claim only: a caller must not change the messages that the client stored."""
    if "native_id" not in message.more:
        return message
    more = {key: value for key, value in message.more.items() if key != "native_id"}
    return replace(message, more={**more, CLAIMED: {"native_id": message.more["native_id"]}})


def _save(tx: WriteTransaction, into: ChannelRow, call: _Call) -> Saved:
    metadata = call.metadata
    if into.session_id is not None:
        metadata = {key: metadata[key] for key in metadata if key not in _SESSION_METADATA or not into.meta.get(key)}
    return save_messages(
        tx,
        into,
        _with_claimed_source(call, into),
        source=into.source,
        metadata=metadata,
        actor=Actor.TOOL,
        received_at=call.received_at,
    )


def _with_claimed_source(call: _Call, into: ChannelRow) -> Sequence[Message]:
    """Return the messages; if they were sent under another source than the channel's, note that as a claim."""
    if call.source in ("unknown", into.source) or into.source in related_sources(call.source):
        return call.messages
    return [
        replace(one, more={**one.more, CLAIMED: {**one.more.get(CLAIMED, {}), "source": call.source}})
        for one in call.messages
    ]


def _ingest_new(tx: WriteTransaction, name: str, call: _Call, found: ChannelMatches) -> tuple[str, Saved]:
    """Store the call in its session's channel; if none is certain, in a new one that is linked to similar sessions."""
    if found.same:
        into = lock_channel(tx, found.same[0].number)
        references.add_alias(tx, name, into.number)
        return into.name, _save(tx, into, call)
    into = open_channel(tx, name, call.source, call.received_at)
    saved = _save(tx, into, call)
    references.set_links(tx, into.number, [row.number for row in found.perhaps])
    return into.name, saved


def _find_sessions(tx: WriteTransaction, call: _Call) -> ChannelMatches:
    """Find the session of a new name: by the native id, if one is given, else by the same questions."""
    if isinstance(call.metadata.get("session_id"), str):
        row = channel_of_session(tx, related_sources(call.source), call.metadata["session_id"])
        return ChannelMatches([row] if row else [])
    times = [message.timestamp for message in call.messages if message.timestamp] or [call.received_at]
    given = call.metadata.get("project")
    project = given if isinstance(given, str) else None
    about = Criteria(call.source, project, min(times), max(*times, call.received_at))
    return matching_sessions(tx, about, lambda: transcript_of(call.messages))


def _ingest_linked(tx: WriteTransaction, known: ChannelRow, call: _Call) -> tuple[str, Saved]:
    """Store the call in a channel that is linked to similar sessions, and compare it with these again."""
    saved = _save(tx, known, call)
    links = [] if known.session_id else references.linked_sessions(tx, known.number)
    session = _merge_if_same(tx, known.number, links) if saved.new else None
    if session is None:
        return known.name, saved
    current = current_ids(tx, saved.ids)
    return lock_channel(tx, session).name, replace(saved, ids=[current.get(id_, id_) for id_ in saved.ids])


def _merge_if_same(tx: WriteTransaction, named: int, sessions: Sequence[int]) -> int | None:
    """Merge a channel into the one linked session that is certainly the same, and return that; drop wrong links."""
    verdicts = {session: judge_session(tx, session, named) for session in sessions}
    same = [session for session, verdict in verdicts.items() if verdict is Verdict.SAME]
    if len(same) == 1:
        merge_channels(tx, named, same[0])
        return same[0]
    for session, verdict in verdicts.items():
        if verdict is Verdict.OTHER:
            references.drop_link(tx, named, session)
    return None
