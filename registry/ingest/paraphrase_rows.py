"""A channel's messages that are told again, by another teller or in other words: `retelling`, asked of a channel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import NamedTuple

from sqlalchemy import select

from registry.domain import Message, Role
from registry.ingest.paraphrase import Fit, Pairs, as_before, by_model, retold
from registry.ingest.turn_alignment import Line
from registry.storage.database import ReadTransaction
from registry.storage.messages import MessageRow
from registry.storage.tables import conversation

JUST_NOW = timedelta(minutes=5)
"""A model that logs a turn does so within it."""


class Sent(NamedTuple):
    """A message as it came, with the digest of its words."""

    message: Message
    digest: bytes

    @property
    def native_id(self) -> str | None:
        """The client's own name for it."""
        named = self.message.more.get("native_id")
        return named if isinstance(named, str) else None


Known = list[MessageRow | None]
"""For each message sent the stored one that it tells again, or None."""


def as_a_whole(tx: ReadTransaction, rows: Sequence[MessageRow], sent: Sequence[Sent]) -> Known:
    """Read as the conversation sent again from its first question on, with some of its answers shortened."""
    nothing: Known = [None] * len(sent)
    rows = in_turns(rows)
    if not (rows[0].role == sent[0].message.role == Role.USER):
        return nothing
    found = _retold(tx, rows, sent, as_before)
    return nothing if is_said_anew(rows, sent, found) else found


def told_by_model(tx: ReadTransaction, rows: Sequence[MessageRow], sent: Sequence[Sent]) -> Known:
    """Old words at a later time are a new turn, but not where the client itself has just told of it."""
    found = retold_rows(tx, rows, sent, by_model)
    if not is_said_anew(rows, sent, found):
        return found
    began = min(one.message.timestamp for one in sent if one.message.timestamp)
    said_last = max(row.timestamp for row in rows)
    is_last_turn = any(row is not None and row.timestamp == said_last for row in found)
    return found if is_last_turn and began - said_last <= JUST_NOW else [None] * len(sent)


def is_said_anew(rows: Sequence[MessageRow], sent: Sequence[Sent], found: Known) -> bool:
    """Whether every message matches, and every one carries a time later than the newest stored (contract 2.1)."""
    newest = max(row.timestamp for row in rows)
    moments = [one.message.timestamp for one in sent]
    return None not in found and all(moment is not None and moment > newest for moment in moments)


def retold_rows(tx: ReadTransaction, rows: Sequence[MessageRow], sent: Sequence[Sent], fit: Fit) -> Known:
    """For each message the stored one that it tells again, be it shortened (`registry.ingest.paraphrase`)."""
    return _retold(tx, in_turns(rows), sent, partial(retold, fit=fit))


def _retold(tx: ReadTransaction, rows: Sequence[MessageRow], sent: Sequence[Sent], read: Callable[..., Pairs]) -> Known:
    def stored_texts(places: Sequence[int]) -> Mapping[int, str]:
        numbers = {rows[place].number: place for place in places}
        query = select(conversation.c.number, conversation.c.text).where(conversation.c.number.in_(numbers))
        return {numbers[row.number]: row.text for row in tx.execute(query)} if numbers else {}

    found = read(
        [Line(row.role, bytes(row.digest), row.native_id) for row in rows],
        [Line(one.message.role, one.digest, one.native_id) for one in sent],
        stored_texts,
        lambda places: {place: sent[place].message.text for place in places},
    )
    return [None if place is None else rows[place] for place in found]


def in_turns(rows: Sequence[MessageRow]) -> list[MessageRow]:
    """Messages turn by turn: an answer that was given anew stands behind the rest of the conversation."""
    turns: dict[int, list[MessageRow]] = {}
    for row in rows:
        turns.setdefault(row.turn, []).append(row)
    opened = {turn: next((row.place for row in some if row.seq == turn), some[0].place) for turn, some in turns.items()}
    ordered = sorted(turns, key=lambda turn: opened[turn])
    return [row for turn in ordered for row in sorted(turns[turn], key=lambda row: (row.role != Role.USER, row.place))]
