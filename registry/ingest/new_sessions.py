"""Sessions of which nothing is known, stored together: with a few statements for all of them, not for each.

So it is when a client's history comes in for the first time. What may be known in some way goes its usual way
(`from_client`): a copy, a session whose id is known, one that a tool may have told of, and all where something was
forgotten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import select, union_all

from registry.domain import Message, Role, Session, now
from registry.ingest.let_in import let_in_session, with_sound_times
from registry.ingest.own_calls import as_kept, is_recall
from registry.ingest.same_conversation_lookup import Circumstances, decide_alone, without_named
from registry.ingest.save import READER, Saved, save_new
from registry.ingest.session_channel import describing, names_for, whose_times
from registry.storage.conversations.channels import make_channels
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.safety.forgetting import is_anything_forgotten
from registry.storage.tables import channel, channel_alias


@dataclass(frozen=True, slots=True)
class _New:
    """A session that is let in, and the name of the channel to be."""

    name: str
    session: Session

    @property
    def meta(self) -> Mapping[str, Any]:
        """What it says of its channel."""
        return describing(self.session) | whose_times(self.session, None)


def ingest_new(tx: WriteTransaction, source: str, came: Sequence[Session]) -> dict[int, Saved]:
    """Store those of which nothing is known; what became of each by its place. The others are left to be stored."""
    if is_anything_forgotten(tx):
        return {}
    decide_alone(tx, source)
    received_at = now()
    new: dict[int, _New] = {}
    done: dict[int, Saved] = {}
    for at, name in _unknown(tx, source, came).items():
        sound = replace(came[at], messages=tuple(with_sound_times(came[at].messages, received_at)))
        session, kept_out = let_in_session(tx, source, sound)
        if kept_out:
            done[at] = Saved([], 0, received_at, 0, kept_out)
        elif not any(map(_is_recall, session.messages)):
            new[at] = _New(name, session)
    about = {at: Circumstances.of(source, None, one.session) for at, one in new.items()}
    new = {at: new[at] for at in without_named(tx, source, about)}
    made = make_channels(tx, {one.name: one.meta for one in new.values()}, source, received_at)
    new = {at: one for at, one in new.items() if one.name in made}
    sent = [(made[one.name], one.session.messages, one.meta) for one in new.values()]
    saved = save_new(tx, sent, source=source, actor=READER, received_at=received_at)
    return done | dict(zip(new, saved, strict=True))


def _is_recall(message: Message) -> bool:
    return message.role is Role.TOOL and is_recall(as_kept(message))


def _unknown(tx: ReadTransaction, source: str, came: Sequence[Session]) -> dict[int, str]:
    """The places of those that have come once and under no known id, with names for their channels that are free."""
    often = Counter(session.session_id for session in came)
    once = {at: session for at, session in enumerate(came) if not session.is_copy and often[session.session_id] == 1}
    names = {at: names_for(source, session) for at, session in once.items()}
    taken = _in_use(
        tx, [session.session_id for session in once.values()], [name for some in names.values() for name in some]
    )
    free: dict[int, str] = {}
    for at, session in once.items():
        name = next((name for name in names[at] if name not in taken), None)
        if name and session.session_id not in taken:
            free[at] = name
            taken.add(name)
    return free


def _in_use(tx: ReadTransaction, ids: Sequence[str], names: Sequence[str]) -> set[str]:
    """Which of these are the id, the name or another name of a channel."""
    words = [*ids, *names]
    query = union_all(
        select(channel.c.session_id).where(channel.c.session_id.in_(ids)),
        select(channel.c.name).where(channel.c.name.in_(words)),
        select(channel_alias.c.name).where(channel_alias.c.name.in_(words)),
    )
    return set(tx.execute(query).scalars())
