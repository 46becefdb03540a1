"""Record edits (titles, nicknames, tags, pins, sharing, deletions, forgetting) with their times, for other registries.

The latest edit of a field wins, by the clock of the machine where it was made, in whatever order edits arrive.
Forgetting cannot be undone.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, delete, exists, func, insert, or_, select, true, update

from registry.domain import format_time, now
from registry.storage.conditions import is_one_of
from registry.storage.conversations.channels import ChannelRow, find_channel
from registry.storage.conversations.messages import MessageRow
from registry.storage.conversations.references import aliases_by_channel
from registry.storage.database import ReadTransaction, WriteTransaction, acquire_lock, insert_new
from registry.storage.exchange.change_feed import Changes, last_number
from registry.storage.paging import feed_position, number_at_position
from registry.storage.safety.visibility import (
    channels_with_own_name,
    name_for_owner,
    name_for_session,
    owner_of,
)
from registry.storage.tables import channel, conversation, edit, remote_edit, remote_message

DELETED, FORGOTTEN, TITLE, NICKNAME, PINNED, TAGGED = "deleted", "forgotten", "title", "nickname", "pinned", "tag:"
SHARED, SUPERSEDED = "shared", "superseded"
GROWN = "text"
"""Field of an edit: a message was stored while its client was still writing it, and its text has changed since.

Its value, as sent, is the id and the digest of the text: a registry with this text need not request it.
"""
MAX_EDITS = 200  # edits per request or answer
MAX_FORGOTTEN_IDS = 20_000  # ids of forgotten messages per request: half of the 1 MB that proxies accept
_STEP = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit as sent: of a channel by its names, of a message by its id in the receiving registry.

    `of_other_person`: the channel belongs to another person than the one who exchanges.
    """

    field: str
    value: Any
    done_at: datetime
    names: Sequence[str] = ()
    source: str = ""
    session_id: str | None = None
    message_id: str | None = None
    of_other_person: bool = False

    def as_dict(self) -> dict[str, Any]:
        about: dict[str, Any] = {"names": list(self.names), "source": self.source, "session_id": self.session_id}
        about |= {"message_id": self.message_id, "of_other_person": self.of_other_person}
        named = {name: value for name, value in about.items() if value}
        return {"field": self.field, "value": self.value, "done_at": format_time(self.done_at), **named}


def record_edits(
    tx: WriteTransaction,
    channel_number: int,
    values: Mapping[str, Any],
    done_at: datetime | None,
    message_number: int | None = None,
) -> dict[str, Any]:
    """Record the edits that no later edit overrides, and return them.

    `done_at`: the time of an edit made elsewhere; an edit made here gets a later time than all known ones.
    """
    lock_edits(tx)
    target = _same_target(channel_number, message_number)
    old = {row.field: row for row in tx.execute(select(edit).where(*target, edit.c.field.in_(values)))}
    at = done_at or max([now(), *(row.done_at + _STEP for row in old.values())])
    new = {name: values[name] for name in values if name not in old or _rank(at, values[name]) > _rank_of(old[name])}
    tx.execute(delete(edit).where(*target, edit.c.field.in_(new)))
    common = {"channel_number": channel_number, "message_number": message_number, "done_at": at}
    if new:
        tx.execute(insert(edit), [{**common, "field": name, "value": value} for name, value in new.items()])
    return new


def record_deletions_of_later(tx: WriteTransaction, channel_number: int) -> None:
    """Record deletions of the messages that are dated after the deletion of their channel, with its time.

    A clock was ahead, or this one is behind: other registries would keep them.
    """
    query = select(edit.c.done_at).where(*_same_target(channel_number, None), edit.c.field == DELETED)
    deleted_at = tx.execute(query).scalar_one()
    later = conversation.c.channel_number == channel_number, conversation.c.timestamp > deleted_at
    undeleted = select(conversation.c.number).where(*later, conversation.c.deleted.is_(False))
    for number in tx.execute(undeleted).scalars().all():
        record_edits(tx, channel_number, {DELETED: True}, deleted_at, number)


def is_deleted_with_channel(tx: ReadTransaction, channel_number: int, done_at: datetime) -> bool:
    """Return True if a message deleted at that time was deleted because its channel was."""
    of_channel = *_same_target(channel_number, None), edit.c.field == DELETED, edit.c.done_at == done_at
    return bool(tx.execute(select(edit.c.value).where(*of_channel)).scalar())


def record_restored_messages(tx: WriteTransaction, channel_number: int) -> None:
    """Record the restoring of messages whose deletion was recorded with that of their channel."""
    is_restored = conversation.c.channel_number == channel_number, conversation.c.with_channel
    recorded = select(edit.c.message_number).where(edit.c.channel_number == channel_number, edit.c.field == DELETED)
    rows = tx.execute(select(conversation).where(*is_restored, conversation.c.number.in_(recorded))).all()
    _record_of_messages(tx, rows, DELETED, False)


def record_grown_messages(tx: WriteTransaction, rows: Sequence[MessageRow]) -> None:
    _record_of_messages(tx, rows, GROWN, None)


def record_superseded(tx: WriteTransaction, rows: Sequence[MessageRow], is_superseded: bool) -> None:
    """Record that messages were undone or replaced in their client, or are valid again."""
    _record_of_messages(tx, rows, SUPERSEDED, is_superseded)


def _record_of_messages(tx: WriteTransaction, rows: Sequence[MessageRow], field: str, value: Any) -> None:
    if not rows:
        return
    lock_edits(tx)
    numbers = [row.number for row in rows]
    of_messages = delete(edit).where(is_one_of(edit.c.message_number, numbers), edit.c.field == field)
    old = tx.execute(of_messages.returning(edit.c.done_at)).scalars()
    values = {"field": field, "value": value, "done_at": max([now(), *(done_at + _STEP for done_at in old)])}
    targets = [{"channel_number": row.channel_number, "message_number": row.number} for row in rows]
    tx.execute(insert(edit), [values | target for target in targets])


def lock_edits(tx: WriteTransaction) -> None:
    """Serialise edits until the transaction ends, so that a reader that continues after a number misses none."""
    acquire_lock(tx, "edits")


def _same_target(channel_number: int, message_number: int | None) -> tuple[ColumnElement[bool], ...]:
    if message_number is not None:
        return (edit.c.message_number == message_number,)
    return edit.c.channel_number == channel_number, edit.c.message_number.is_(None)


def _rank(at: datetime, value: Any) -> tuple[datetime, str]:
    return at, json.dumps(value)  # the value breaks ties, the same on all machines


def _rank_of(row: Row[Any]) -> tuple[datetime, str]:
    return _rank(row.done_at, row.value)


def is_edit_known(tx: ReadTransaction, channel_number: int, message_number: int | None, received: Edit) -> bool:
    """Return True if this edit, or a later one of the same field, is recorded."""
    query = select(edit).where(*_same_target(channel_number, message_number), edit.c.field == received.field)
    row = tx.execute(query).first()
    return row is not None and _rank_of(row) >= _rank(received.done_at, received.value)


def deletion_of(tx: ReadTransaction, channel_number: int) -> Row[Any] | None:
    """Return the edit that deleted a channel; None if it was restored since, or by a clock that was ahead."""
    row = tx.execute(select(edit).where(*_same_target(channel_number, None), edit.c.field == DELETED)).first()
    return row if row and row.value and row.done_at <= now() else None


SharingEdit = Row[str, Any, datetime]  # the name of a channel, and the value and time of its last edit of sharing


def sharing_edits(tx: ReadTransaction) -> Sequence[SharingEdit]:
    of_channel = select(channel.c.name, edit.c.value, edit.c.done_at).join(
        edit, edit.c.channel_number == channel.c.number
    )
    return tx.execute(of_channel.where(edit.c.field == SHARED)).all()


def resolve_nickname_conflict(tx: WriteTransaction, nickname: str, row: ChannelRow, done_at: datetime) -> str | None:
    """Resolve a nickname given to two channels on two machines: the later edit wins, the other channel loses it.

    With equal times the channels are one conversation elsewhere: the nickname stays where it is.
    """
    query = select(channel.c.number).where(func.lower(channel.c.nickname) == nickname.lower())
    for other in tx.execute(query.where(channel.c.number != row.number)).scalars().all():
        given = select(edit.c.done_at).where(*_same_target(other, None), edit.c.field == NICKNAME)
        given_at = tx.execute(given).scalar()
        if given_at and given_at >= done_at:
            return None
        record_edits(tx, other, {NICKNAME: None}, done_at)
        tx.execute(update(channel).where(channel.c.number == other).values(nickname=None))
    return nickname


def move_edits(tx: WriteTransaction, merged: int, into: int) -> Mapping[str, int]:
    """Move a channel's edits to the one it is merged into; return which of the two had the later edit, by field.

    Only the later stays: on other machines the two may be merged already, or have never been two.
    """
    of_channels = edit.c.channel_number.in_((merged, into))
    rows = sorted(tx.execute(select(edit).where(of_channels, edit.c.message_number.is_(None))), key=_rank_of)
    latest = {row.field: row for row in rows}
    if outdated := [row.number for row in rows if latest[row.field] is not row]:
        tx.execute(delete(edit).where(is_one_of(edit.c.number, outdated)))
    tx.execute(update(edit).where(edit.c.channel_number == merged).values(channel_number=into))
    return {field: row.channel_number for field, row in latest.items()}


def edits_after(tx: ReadTransaction, position: int) -> Changes[Edit]:
    """Return the edits after a position, in the order of arrival here, for polling; 0 is the beginning."""
    number = number_at_position(tx, position)
    if number is None or number > last_number(tx, edit):  # the position is not of this registry: start over
        number = 0
    query = select(edit).where(edit.c.number > number).order_by(edit.c.number).limit(MAX_EDITS)
    rows = tx.execute(query).all()
    named = _channel_names(tx, rows)
    hidden = channels_with_own_name(tx, {number: (row.owner, names) for number, (row, names) in named.items()})
    visible = [row for row in rows if row.channel_number not in hidden]
    messages = _messages(tx, [row.message_number for row in visible if row.message_number is not None])
    owner = owner_of(tx)
    others = {number for number, (row, _) in named.items() if owner and row.owner not in (None, owner)}
    items = [_as_sent(row, named, others, messages.get(row.message_number, _NO_MESSAGE), "ids") for row in visible]
    return Changes(items, feed_position(tx, rows[-1].number if rows else number), len(rows) < MAX_EDITS)


_Message = tuple[str | None, str]  # id, and digest of the text in hexadecimal digits
_NO_MESSAGE: _Message = None, ""


def _messages(tx: ReadTransaction, numbers: Sequence[int]) -> dict[int, _Message]:
    query = select(conversation.c.number, conversation.c.id, conversation.c.digest, conversation.c.deleted)
    rows = tx.execute(query.where(conversation.c.number.in_(numbers))).all()
    return {row.number: (row.id, "" if row.deleted else bytes(row.digest).hex()) for row in rows}


_NamedChannels = Mapping[int, tuple[ChannelRow, list[str]]]  # channels with all their names, by number


def _channel_names(tx: ReadTransaction, rows: Sequence[Row[Any]]) -> _NamedChannels:
    numbers = {row.channel_number for row in rows if row.channel_number is not None}
    others = aliases_by_channel(tx, numbers)
    found = tx.execute(select(channel).where(channel.c.number.in_(numbers))).all()
    return {row.number: (row, [row.name, *others.get(row.number, ())]) for row in found}


def copied_channels(tx: ReadTransaction, numbers: Collection[int]) -> set[int]:
    """Return the channels of which all messages came from another person's."""
    within = select(conversation.c.channel_number).where(conversation.c.channel_number.in_(numbers))
    own = set(tx.execute(within.where(conversation.c.of_other_person.is_(False)).distinct()).scalars())
    return set(tx.execute(within.where(conversation.c.of_other_person).distinct()).scalars()) - own


def _as_sent(
    row: Row[Any], named: _NamedChannels, others: Collection[int], message: _Message, ids: str, url: str = ""
) -> Edit:
    if row.field == FORGOTTEN:
        sent_ids = row.value[ids].get(url, []) if url else row.value[ids]
        return Edit(row.field, {"is_channel": row.value["is_channel"], "ids": sent_ids}, row.done_at)
    if row.field == GROWN:
        return Edit(row.field, {"id": message[0], "digest": message[1]}, row.done_at)
    about, names = named[row.channel_number]
    is_of_other = row.channel_number in others
    return Edit(row.field, row.value, row.done_at, names, about.source, about.session_id, message[0], is_of_other)


def _is_unsent_edit(url: str) -> ColumnElement[bool]:
    """Return a condition: the edit was not sent to that registry, and is not of another person's channel."""
    is_sent = exists().where(remote_edit.c.url == url, remote_edit.c.number == edit.c.number)
    return and_(~is_sent, ~edit.c.of_other_person)


def is_edit_to_send(url: str) -> ColumnElement[bool]:
    """Return a condition: the edit is unsent, and its message, or one of its channel, is known to be there.

    A registry drops an edit of a channel that it does not have. A message may be there without a note of it: the
    connection broke before the answer, or another machine has sent it.
    """
    exchanged = select(conversation.c.number).join(remote_message, remote_message.c.number == conversation.c.number)
    of_channel = conversation.c.channel_number == edit.c.channel_number, remote_message.c.url == url
    is_it = or_(edit.c.message_number.is_(None), conversation.c.number == edit.c.message_number)
    is_there = exchanged.where(*of_channel, is_it, remote_message.c.id.is_not(None)).exists()
    return and_(_is_unsent_edit(url), or_(edit.c.channel_number.is_(None), is_there))


def unsent_edits(tx: ReadTransaction, url: str) -> dict[int, Edit | None]:
    """Return the next edits to send by number; None if the registry has none of the forgotten messages."""
    rows = tx.execute(select(edit).where(is_edit_to_send(url)).order_by(edit.c.number).limit(MAX_EDITS)).all()
    numbers = [row.message_number for row in rows if row.message_number is not None]
    query = select(remote_message.c.number, remote_message.c.id).where(
        remote_message.c.url == url, remote_message.c.number.in_(numbers)
    )
    there = dict(tx.execute(query).all())
    named = _channel_names(tx, rows)
    others = copied_channels(tx, named)
    found: dict[int, Edit | None] = {}
    left = MAX_FORGOTTEN_IDS
    for row in rows:
        as_sent = _as_sent(row, named, others, (there.get(row.message_number), ""), "there", url)
        ids = as_sent.value["ids"] if row.field == FORGOTTEN else [row.number]
        left -= len(ids)
        if found and left < 0:
            break
        found[row.number] = as_sent if ids else None
    return found


def is_anything_restored(tx: ReadTransaction, url: str) -> bool:
    """Return True if a restoration was not sent to that registry yet."""
    query = select(edit.c.value).where(edit.c.field == DELETED, _is_unsent_edit(url))
    return not all(tx.execute(query).scalars())


def note_edits_sent(tx: WriteTransaction, url: str, whys: Mapping[int, str | None]) -> None:
    """Record that edits were sent, and the reasons of refusals."""
    known = select(edit.c.number).where(edit.c.number.in_(whys))  # some may have been replaced by later edits
    rows = [{"url": url, "number": number, "why": whys[number]} for number in tx.execute(known).scalars()]
    insert_new(tx, remote_edit, rows)  # another process may have sent them meanwhile


def note_edit_known(tx: WriteTransaction, url: str, received: Edit) -> None:
    """Record that an edit came from that registry. Sent back, it could match another channel there.

    One of another person's channel is not even sent to a registry that was restored: there it would be done to a
    channel of this person.
    """
    numbers = [row.number for row in matching_channels(tx, received)]
    is_it = edit.c.message_number.is_(None), edit.c.field == received.field, edit.c.done_at == received.done_at
    found = tx.execute(select(edit.c.number).where(edit.c.channel_number.in_(numbers), *is_it)).scalars().all()
    note_edits_sent(tx, url, dict.fromkeys(found))
    if received.of_other_person:
        tx.execute(update(edit).where(edit.c.number.in_(found)).values(of_other_person=True))


def resend_refused_edits(tx: WriteTransaction, url: str) -> None:
    """Mark refused edits as unsent: the token may have more permissions now."""
    tx.execute(delete(remote_edit).where(remote_edit.c.url == url, remote_edit.c.why.is_not(None)))


def matching_channels(tx: ReadTransaction, received: Edit) -> list[ChannelRow]:
    """Return the channels here that match one elsewhere, by its names, else by its session id.

    A person's edit is of the person's own channel or one without an owner, unless it is of another person's. On a
    laptop, which knows no owners, only a channel without a message of its own person is another person's.
    """
    owner = owner_of(tx)
    names = [name_for_session(tx, name, received.source, received.session_id) for name in received.names]
    if received.of_other_person:
        found = {row.number: row for name in names if (row := find_channel(tx, name))}
        copied = found.keys() if owner else copied_channels(tx, found)
        return [row for number, row in found.items() if number in copied and (owner is None or row.owner != owner)]
    rows = (find_channel(tx, name_for_owner(tx, name)) or find_channel(tx, name) for name in names)
    named = {row.number: row for row in rows if row and (owner is None or row.owner in (None, owner))}
    if named or not received.session_id:
        owned = [row for row in named.values() if row.owner == owner]
        return owned or list(named.values())
    is_own = true() if owner is None else or_(channel.c.owner.is_(None), channel.c.owner == owner)
    of_session = channel.c.session_id == received.session_id, channel.c.source == received.source, is_own
    own_first = channel.c.owner.is_distinct_from(owner), channel.c.number
    return list(tx.execute(select(channel).where(*of_session).order_by(*own_first).limit(1)))


def channels_of_messages(tx: ReadTransaction, ids: Collection[str]) -> dict[str, str]:
    """Return the channel names of messages that are here and not forgotten, by their ids."""
    here = is_one_of(conversation.c.id, ids), conversation.c.forgotten.is_(False)
    return dict(tx.execute(select(conversation.c.id, conversation.c.channel).where(*here)).all())


def channels_with_others(tx: ReadTransaction, names: Collection[str], ids: Collection[str]) -> set[str]:
    """Return those of the channels that have messages besides these."""
    others = conversation.c.channel.in_(names), conversation.c.id.not_in(ids), conversation.c.forgotten.is_(False)
    return set(tx.execute(select(conversation.c.channel).where(*others).distinct()).scalars())
