"""What a tool tells of a conversation, stored in the channel it belongs to (issue 3, merging).

Which session a new name is, or a channel that may be one, is looked up only then: the usual call finds its channel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from registry.domain import Message
from registry.ingest.merge_channels import join
from registry.ingest.same_conversation import Verdict
from registry.ingest.same_conversation_lookup import (
    PUSHED,
    Circumstances,
    Found,
    channel_of_session,
    decide_alone,
    family_of,
    judge_session,
    sessions_told,
    telling_of,
)
from registry.ingest.save import Saved, save_messages
from registry.storage.aliases import add_alias, drop_link, linked_sessions, set_links
from registry.storage.channels import ChannelRow, find_channel
from registry.storage.database import WriteTransaction
from registry.storage.messages import current_ids

_OF_THE_SESSION = ("session_id", "title", "project", "summary")
"""What a session knows of itself, and a tool does not change."""


def save_told(
    tx: WriteTransaction,
    name: str,
    messages: Sequence[Message],
    *,
    source: str,
    metadata: Mapping[str, Any],
    received_at: datetime,
) -> tuple[str, Saved]:
    """Store what is new of a conversation told under a name; the channel's own name, and what became of it."""
    known = find_channel(tx, name)
    links = _links(tx, known)
    found = Found()
    if known is None or links:
        decide_alone(tx, source)
        known = find_channel(tx, name)  # somebody else may have made or joined it meanwhile
        links = _links(tx, known)
    if known is None:
        found = _sessions(tx, source, messages, metadata, received_at)
        if found.same:
            known = found.same[0]
            add_alias(tx, name, known.number)
    saved = save_messages(
        tx,
        known.name if known else name,
        messages,
        source=known.source if known else source,
        metadata=_told_of(known, metadata),
        actor=PUSHED,
        received_at=received_at,
    )
    if found.perhaps and not found.same:
        set_links(tx, saved.channel_number, [row.number for row in found.perhaps])
    elif links and saved.new and settle(tx, saved.channel_number, links):
        current = current_ids(tx, saved.ids)
        saved = replace(saved, ids=[current.get(id_, id_) for id_ in saved.ids])
        known = find_channel(tx, name)
    return (known.name if known else name), saved


def _links(tx: WriteTransaction, known: ChannelRow | None) -> list[int]:
    return [] if known is None or known.session_id else linked_sessions(tx, known.number)


def settle(tx: WriteTransaction, told: int, sessions: Sequence[int]) -> bool:
    """Look again at sessions that a channel may be; whether it turned out to be one of them, and was joined to it."""
    verdicts = {session: judge_session(tx, session, told) for session in sessions}
    same = [session for session, verdict in verdicts.items() if verdict is Verdict.SAME]
    if len(same) == 1:
        join(tx, told, same[0])
        return True
    for session, verdict in verdicts.items():
        if verdict is Verdict.OTHER:
            drop_link(tx, told, session)
    return False


def _sessions(
    tx: WriteTransaction,
    source: str,
    messages: Sequence[Message],
    metadata: Mapping[str, Any],
    received_at: datetime,
) -> Found:
    """The session that a new name means: the one it gives the native id of, else one that asks the same."""
    if isinstance(metadata.get("session_id"), str):
        row = channel_of_session(tx, family_of(source), metadata["session_id"])
        return Found([row] if row else [])
    moments = [message.timestamp for message in messages if message.timestamp] or [received_at]
    project = metadata.get("project")
    about = Circumstances(
        source, project if isinstance(project, str) else None, min(moments), max(*moments, received_at)
    )
    return sessions_told(tx, about, lambda: telling_of(messages))


def _told_of(known: ChannelRow | None, metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    if known is None or known.session_id is None:
        return metadata
    return {key: metadata[key] for key in metadata if key not in _OF_THE_SESSION or not known.meta.get(key)}
