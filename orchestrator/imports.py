"""A client's own session on its way into a channel: the one it is known as, the one it was pushed to, or a new one."""

from __future__ import annotations

from typing import Any

from registry.channels import find_channel
from registry.database import WriteTransaction
from registry.domain import now
from registry.merging import Identity, channel_of_session, same_conversation
from registry.saving import Saved, save_messages
from sources.base import Session

ORIGIN = "reader"
"""Where a message came from, in its payload: a message that was pushed before keeps its own origin."""


def import_session(tx: WriteTransaction, source: str, session: Session) -> Saved:
    """Store what is new of a session."""
    received_at = now()
    return save_messages(
        tx,
        _channel_name(tx, source, session),
        session.messages,
        source=source,
        metadata=_metadata(session),
        actor=ORIGIN,
        received_at=received_at,
    )


def _channel_name(tx: WriteTransaction, source: str, session: Session) -> str:
    known = channel_of_session(tx, source, session.session_id)
    if known is None:
        known = same_conversation(tx, Identity(source, session.session_id, session.project, session.messages))
    return str(known.name) if known else _new_name(tx, source, session)


def _new_name(tx: WriteTransaction, source: str, session: Session) -> str:
    """`{source}_session_{timestamp}`; two that began in the same second are told apart by their native ids."""
    began = next((message.timestamp for message in session.messages if message.timestamp), now())
    name = f"{source}_session_{began:%Y%m%d_%H%M%S}"
    return name if find_channel(tx, name) is None else f"{name}_{session.session_id[:36]}"


def _metadata(session: Session) -> dict[str, Any]:
    known = {
        "session_id": session.session_id,
        "title": session.title,
        "project": session.project,
        "parent": session.parent,
        **session.meta,
    }
    return {name: value for name, value in known.items() if value is not None}
