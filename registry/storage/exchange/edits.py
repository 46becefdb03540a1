"""Record edits (titles, nicknames, tags, pins, sharing, deletions, forgetting) with their times, to tell registries.

The latest edit of a field wins, by the clock of the machine where it was made, whenever it arrives. Forgetting cannot
be undone.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, delete, exists, func, insert, select, update

from registry.domain import format_time, now
from registry.storage.conditions import is_one_of
from registry.storage.conversations.channels import ChannelRow, find_channel
from registry.storage.conversations.messages import MessageRow
from registry.storage.conversations.references import aliases_by_channel
from registry.storage.database import ReadTransaction, WriteTransaction, insert_new, take_turn
from registry.storage.exchange.change_feed import Changes, last_number
from registry.storage.paging import feed_place, number_of_place
from registry.storage.safety.tokens import tokens_seeing
from registry.storage.safety.visibility import namesakes, own_name, owner_of
from registry.storage.tables import channel, conversation, edit, edit_token, message_alias, remote_edit, remote_message

DELETED, FORGOTTEN, TITLE, NICKNAME, PINNED, TAGGED = "deleted", "forgotten", "title", "nickname", "pinned", "tag:"
SHARED = "shared"
GROWN = "text"
"""Field of an edit: a message was stored while its client still wrote it, and has another text by now.

As it is sent, its value is the id and the digest of the text: a registry that has this text need not ask for it.
"""
MOST = 200  # edits per answer
MOST_IDS = 1000  # message ids, spread over all, that identify a forgotten channel elsewhere
_MOMENT = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit as it is sent. Of a channel: its name; of messages: their ids at the reader's."""

    field: str
    value: Any
    done_at: datetime
    names: Sequence[str] = ()
    source: str = ""
    session_id: str | None = None
    message_id: str | None = None

    def as_dict(self) -> dict[str, Any]:
        about = {"names": list(self.names), "source": self.source, "session_id": self.session_id}
        named = {name: value for name, value in {**about, "message_id": self.message_id}.items() if value}
        return {"field": self.field, "value": self.value, "done_at": format_time(self.done_at), **named}


def standing(
    tx: WriteTransaction,
    channel_number: int,
    values: Mapping[str, Any],
    done_at: datetime | None,
    message_number: int | None = None,
) -> dict[str, Any]:
    """Return the edits that no later one contradicts, and record them.

    `done_at`: the time of an edit made elsewhere; one made here is later than all known ones.
    """
    take_turns(tx)
    about = _about(channel_number, message_number)
    held = {row.field: row for row in tx.execute(select(edit).where(*about, edit.c.field.in_(values)))}
    at = done_at or max([now(), *(row.done_at + _MOMENT for row in held.values())])
    new = {name: values[name] for name in values if name not in held or _rank(at, values[name]) > _rank_of(held[name])}
    tx.execute(delete(edit).where(*about, edit.c.field.in_(new)))
    said = {"channel_number": channel_number, "message_number": message_number, "done_at": at}
    if new:
        tx.execute(insert(edit), [{**said, "field": name, "value": value} for name, value in new.items()])
    return new


def note_grown(tx: WriteTransaction, rows: Sequence[MessageRow]) -> None:
    take_turns(tx)
    numbers = [row.number for row in rows]
    tx.execute(delete(edit).where(is_one_of(edit.c.message_number, numbers), edit.c.field == GROWN))
    said = {"field": GROWN, "value": None, "done_at": now()}
    within = [{"channel_number": row.channel_number, "message_number": row.number} for row in rows]
    tx.execute(insert(edit), [said | of for of in within])


def take_turns(tx: WriteTransaction) -> None:
    """Serialise edits until the transaction ends, so that a reader who goes on behind a number misses none."""
    take_turn(tx, "edits")


def _about(channel_number: int, message_number: int | None) -> tuple[ColumnElement[bool], ...]:
    if message_number is not None:
        return (edit.c.message_number == message_number,)
    return edit.c.channel_number == channel_number, edit.c.message_number.is_(None)


def _rank(at: datetime, value: Any) -> tuple[datetime, str]:
    return at, json.dumps(value)  # of what was said at one moment all machines take the same


def _rank_of(row: Row[Any]) -> tuple[datetime, str]:
    return _rank(row.done_at, row.value)


def is_known(tx: ReadTransaction, channel_number: int, message_number: int | None, said: Edit) -> bool:
    """Return True if this edit, or a later one of the field, is known already."""
    query = select(edit).where(*_about(channel_number, message_number), edit.c.field == said.field)
    row = tx.execute(query).first()
    return row is not None and _rank_of(row) >= _rank(said.done_at, said.value)


def nickname_of_later(tx: WriteTransaction, nickname: str, row: ChannelRow, done_at: datetime) -> str | None:
    """Resolve a nickname that two machines gave to two channels: the later channel has it, the other none.

    If both were given at the same moment the channels are one conversation elsewhere: the nickname stays where it is.
    """
    query = select(channel.c.number).where(func.lower(channel.c.nickname) == nickname.lower())
    for other in tx.execute(query.where(channel.c.number != row.number)).scalars().all():
        given = select(edit.c.done_at).where(*_about(other, None), edit.c.field == NICKNAME)
        given_at = tx.execute(given).scalar()
        if given_at and given_at >= done_at:
            return None
        standing(tx, other, {NICKNAME: None}, None)
        tx.execute(update(channel).where(channel.c.number == other).values(nickname=None))
    return nickname


def note_forgetting(tx: WriteTransaction, row: ChannelRow, messages: Sequence[Any], *, is_channel: bool) -> None:
    """Note that messages of a channel, or all of it, are about to be forgotten: rows with `number` and `id`.

    Only ids stay, so that other registries can be told. Restricted tokens are told of the channels that they see; those
    of other people of its messages alone, because on their machines words of their own may be among them.
    """
    told = tokens_seeing(tx, row)
    others = [name for name, owner in told.items() if is_channel and row.owner not in (None, owner)]
    _note_forgotten(tx, messages, [name for name in told if name not in others], is_channel=is_channel)
    if others:
        _note_forgotten(tx, messages, others, is_channel=False)


def _note_forgotten(tx: WriteTransaction, messages: Sequence[Any], told: Sequence[str], *, is_channel: bool) -> None:
    step = max(1, -(-len(messages) // MOST_IDS)) if is_channel else 1
    aliased = is_one_of(message_alias.c.number, [one.number for one in messages])
    others = list(tx.execute(select(message_alias.c.id).where(aliased)).scalars())
    chosen = messages[::step]
    for at in range(0, len(chosen), MOST_IDS):
        some = chosen[at : at + MOST_IDS]
        numbers = [row.number for row in some]
        noted = select(remote_message.c.url, remote_message.c.id).where(
            remote_message.c.number.in_(numbers), remote_message.c.id.is_not(None)
        )
        there: dict[str, list[str]] = {}
        for url, id_ in tx.execute(noted):
            there.setdefault(url, []).append(id_)
        ids = [row.id for row in some] + ([] if at else others)
        value = {"is_channel": is_channel, "ids": ids, "there": there}
        said = {"field": FORGOTTEN, "value": value, "done_at": now()}
        number = tx.execute(insert(edit).values(**said).returning(edit.c.number)).scalar_one()
        if told:
            tx.execute(insert(edit_token), [{"number": number, "token": name} for name in told])


def move_edits(tx: WriteTransaction, gone: int, into: int) -> None:
    """Move a channel's edits to the one it is merged into, unless that has its own."""
    said = select(edit.c.field).where(*_about(into, None)).scalar_subquery()
    of_channel = edit.c.channel_number == gone
    tx.execute(delete(edit).where(of_channel, edit.c.message_number.is_(None), edit.c.field.in_(said)))
    tx.execute(update(edit).where(of_channel).values(channel_number=into))


def edits_after(tx: ReadTransaction, place: int) -> Changes[Edit]:
    """Return the edits after a place, in the order in which they became known here, for polling; 0 is the beginning."""
    number = number_of_place(tx, place)
    if number is None or number > last_number(tx, edit):  # no place of this registry: start again
        number = 0
    query = select(edit).where(edit.c.number > number).order_by(edit.c.number).limit(MOST)
    rows = tx.execute(query).all()
    named = _channel_names(tx, rows)
    hidden = namesakes(tx, {number: (row.owner, names) for number, (row, names) in named.items()})
    told = [row for row in rows if row.channel_number not in hidden]
    messages = _messages(tx, [row.message_number for row in told if row.message_number is not None])
    items = [_as_sent(row, named, messages.get(row.message_number, _NONE), "ids") for row in told]
    return Changes(items, feed_place(tx, rows[-1].number if rows else number), len(rows) < MOST)


_Message = tuple[str | None, str]  # its id, and the digest of its words in hexadecimal digits
_NONE: _Message = None, ""


def _messages(tx: ReadTransaction, numbers: Sequence[int]) -> dict[int, _Message]:
    query = select(conversation.c.number, conversation.c.id, conversation.c.digest, conversation.c.deleted)
    rows = tx.execute(query.where(conversation.c.number.in_(numbers))).all()
    return {row.number: (row.id, "" if row.deleted else bytes(row.digest).hex()) for row in rows}


_Named = Mapping[int, tuple[ChannelRow, list[str]]]  # channels with all their names, by number


def _channel_names(tx: ReadTransaction, rows: Sequence[Row[Any]]) -> _Named:
    numbers = {row.channel_number for row in rows if row.channel_number is not None}
    others = aliases_by_channel(tx, numbers)
    found = tx.execute(select(channel).where(channel.c.number.in_(numbers))).all()
    return {row.number: (row, [row.name, *others.get(row.number, ())]) for row in found}


def _as_sent(row: Row[Any], named: _Named, message: _Message, ids: str, url: str = "") -> Edit:
    if row.field == FORGOTTEN:
        held = row.value[ids].get(url, []) if url else row.value[ids]
        return Edit(row.field, {"is_channel": row.value["is_channel"], "ids": held}, row.done_at)
    if row.field == GROWN:
        return Edit(row.field, {"id": message[0], "digest": message[1]}, row.done_at)
    about, names = named[row.channel_number]
    return Edit(row.field, row.value, row.done_at, names, about.source, about.session_id, message[0])


def is_untold(url: str) -> ColumnElement[bool]:
    """Return the condition that an edit was not sent there."""
    return ~exists().where(remote_edit.c.url == url, remote_edit.c.number == edit.c.number)


def unsent_edits(tx: ReadTransaction, url: str) -> dict[int, Edit | None]:
    """Return the next edits that were not sent there, by number; None for an edit of messages that are not there."""
    rows = tx.execute(select(edit).where(is_untold(url)).order_by(edit.c.number).limit(MOST)).all()
    numbers = [row.message_number for row in rows if row.message_number is not None]
    query = select(remote_message.c.number, remote_message.c.id).where(
        remote_message.c.url == url, remote_message.c.number.in_(numbers)
    )
    there = dict(tx.execute(query).all())
    named = _channel_names(tx, rows)
    found: dict[int, Edit | None] = {}
    for row in rows:
        told = _as_sent(row, named, (there.get(row.message_number), ""), "there", url)
        is_of_one_there = row.message_number is None or there.get(row.message_number)
        is_there = told.value["ids"] if row.field == FORGOTTEN else is_of_one_there
        found[row.number] = told if is_there else None
    return found


def is_anything_restored(tx: ReadTransaction, url: str) -> bool:
    """Return True if something was restored here and not sent there yet."""
    query = select(edit.c.value).where(edit.c.field == DELETED, is_untold(url))
    return not all(tx.execute(query).scalars())


def note_edits_sent(tx: WriteTransaction, url: str, whys: Mapping[int, str | None]) -> None:
    """Note that edits were sent, and why some were refused there."""
    known = select(edit.c.number).where(edit.c.number.in_(whys))  # one may have been replaced by a later word
    rows = [{"url": url, "number": number, "why": whys[number]} for number in tx.execute(known).scalars()]
    insert_new(tx, remote_edit, rows)  # another process may have told them meanwhile


def note_edit_known(tx: WriteTransaction, url: str, said: Edit) -> None:
    """Note that an edit of a channel came from there: to be sent back it could be taken for one of another channel."""
    numbers = [row.number for row in channels_meant(tx, said)]
    is_it = edit.c.message_number.is_(None), edit.c.field == said.field, edit.c.done_at == said.done_at
    found = tx.execute(select(edit.c.number).where(edit.c.channel_number.in_(numbers), *is_it)).scalars()
    note_edits_sent(tx, url, dict.fromkeys(found))


def tell_again(tx: WriteTransaction, url: str) -> None:
    """Send refused edits once more: the token may allow more by now."""
    tx.execute(delete(remote_edit).where(remote_edit.c.url == url, remote_edit.c.why.is_not(None)))


def channels_meant(tx: ReadTransaction, said: Edit) -> list[ChannelRow]:
    """Return the channels here that match one elsewhere, by its names or as a client's session.

    A person's own channel comes before another person's that has the name here.
    """
    rows = (find_channel(tx, own_name(tx, name)) or find_channel(tx, name) for name in said.names)
    named = {row.number: row for row in rows if row}
    owner = owner_of(tx)
    if named or not said.session_id:
        own = [row for row in named.values() if row.owner == owner]
        return own or list(named.values())
    of_session = channel.c.session_id == said.session_id, channel.c.source == said.source
    own_first = channel.c.owner.is_distinct_from(owner), channel.c.number
    return list(tx.execute(select(channel).where(*of_session).order_by(*own_first).limit(1)))


def channels_of_messages(tx: ReadTransaction, ids: Collection[str]) -> dict[str, str]:
    """Return the channel names of messages that are here and not forgotten, by their ids."""
    here = is_one_of(conversation.c.id, ids), conversation.c.forgotten.is_(False)
    return dict(tx.execute(select(conversation.c.id, conversation.c.channel).where(*here)).all())
