"""A session that we wrote ourselves, so that a conversation could go on in another client: only its end is new."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import or_, select

from registry.domain import Message, Role, Session, digest_of, storable
from registry.storage.aliases import add_alias
from registry.storage.channels import ChannelRow, find_channel
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.tables import conversation

NOTE = "[Context Registry]"
"""What a note of ours begins with that stands in a written session and that nobody said."""


def goes_on_as(tx: WriteTransaction, session_id: str, channel_number: int) -> None:
    """Note that a client's session of this id is the channel, going on."""
    add_alias(tx, session_id, channel_number)


def carried_from(tx: ReadTransaction, session: Session) -> ChannelRow | None:
    """The channel that goes on in this session; None for a session that is one of its own."""
    row = find_channel(tx, session.session_id)
    return row if row and session.session_id not in (row.name, row.session_id) else None


def new_in(tx: ReadTransaction, into: ChannelRow, messages: Sequence[Message]) -> list[Message]:
    """The turns that were not taken along: each question of the channel's that comes again stands for one that was.

    What this session has brought before comes through, to be recognised by its ids.
    """
    own = [message.more.get("native_id") for message in messages]
    foreign = or_(conversation.c.native_id.is_(None), conversation.c.native_id.not_in(list(filter(None, own))))
    query = select(conversation.c.digest).where(
        conversation.c.channel_number == into.number, conversation.c.role == Role.USER, foreign
    )
    known = Counter(bytes(digest) for digest in tx.execute(query).scalars())
    kept: list[Message] = []
    is_new = False
    for message in messages:
        if message.role is Role.USER:
            digest = digest_of(message.role, storable(message.text))
            is_new = not known[digest] and not message.text.startswith(NOTE)
            known[digest] -= not is_new
        if is_new:
            kept.append(message)
    return kept
