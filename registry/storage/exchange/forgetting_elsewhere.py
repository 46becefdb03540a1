"""Record what other registries are told to forget, as edits."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from sqlalchemy import insert, select

from registry.domain import now
from registry.storage.conditions import is_one_of
from registry.storage.conversations.channels import ChannelRow
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.exchange.edits import FORGOTTEN, lock_edits
from registry.storage.safety.tokens import tokens_seeing
from registry.storage.safety.visibility import owner_name
from registry.storage.tables import channel, conversation, edit, edit_token, message_alias, remote_message

MAX_IDS = 5000  # message ids in an edit: 120 kB; each edit rewrites the other registry's file


def note_forgetting(tx: WriteTransaction, row: ChannelRow, messages: Sequence[Any], *, is_channel: bool) -> None:
    """Record that a channel, or some of its messages (rows with `number` and `id`), are about to be forgotten.

    Only ids are recorded, for other registries. Restricted tokens get them for the channels that they see, and all
    tokens of the channel's owner, also later ones. Tokens of other people get only the messages, because the channel on
    their machines may have messages of their own.
    """
    tokens = tokens_seeing(tx, row) | ({owner_name(row.owner): row.owner} if row.owner else {})
    of_others = [name for name, owner in tokens.items() if is_channel and row.owner not in (None, owner)]
    _add_forgotten(tx, messages, [name for name in tokens if name not in of_others], is_channel=is_channel)
    if of_others:
        _add_forgotten(tx, messages, of_others, is_channel=False)


def forget_there_again(tx: WriteTransaction, url: str, ids: Collection[str]) -> None:
    """Send the forgetting of messages again: another machine sent them to a restored registry, under these new ids."""
    noted = select(remote_message.c.number).where(remote_message.c.url == url, remote_message.c.id.in_(list(ids)))
    again = conversation.c.number.in_(noted), conversation.c.forgotten
    rows = tx.execute(select(conversation).where(*again).order_by(conversation.c.channel_number)).all()
    for number, some in groupby(rows, key=lambda row: row.channel_number):
        within = tx.execute(select(channel).where(channel.c.number == number)).one()
        lock_edits(tx)
        note_forgetting(tx, within, list(some), is_channel=False)


def _add_forgotten(tx: WriteTransaction, messages: Sequence[Any], tokens: Sequence[str], *, is_channel: bool) -> None:
    aliased = is_one_of(message_alias.c.number, [one.number for one in messages])
    others = list(tx.execute(select(message_alias.c.id).where(aliased)).scalars())
    for at in range(0, len(messages), MAX_IDS):
        batch = messages[at : at + MAX_IDS]
        noted = select(remote_message.c.url, remote_message.c.id).where(
            is_one_of(remote_message.c.number, [row.number for row in batch]), remote_message.c.id.is_not(None)
        )
        there: dict[str, list[str]] = {}
        for url, id_ in tx.execute(noted.order_by(remote_message.c.number)):
            there.setdefault(url, []).append(id_)
        ids = [row.id for row in batch] + ([] if at else others)
        value = {"is_channel": is_channel, "ids": ids, "there": there}
        _insert_forgotten(tx, value, now(), tokens)


ForgottenEdit = tuple[Mapping[str, Any], datetime, Sequence[str]]  # the value, the time, and the tokens that get it


def forgotten_edits(tx: ReadTransaction) -> list[ForgottenEdit]:
    """Return what other registries were told to forget."""
    tokens: dict[int, list[str]] = {}
    for number, name in tx.execute(select(edit_token.c.number, edit_token.c.token)):
        tokens.setdefault(number, []).append(name)
    rows = tx.execute(select(edit).where(edit.c.field == FORGOTTEN).order_by(edit.c.number))
    return [(row.value, row.done_at, tokens.get(row.number, [])) for row in rows]


def tell_again(tx: WriteTransaction, told: Sequence[ForgottenEdit]) -> None:
    """Record again what other registries were told to forget, unless a restored backup has it.

    A machine that was away would send the words to the restored registry, which may never have had them.
    """
    known = [(value, done_at) for value, done_at, _ in forgotten_edits(tx)]
    for value, done_at, tokens in told:
        if (value, done_at) not in known:
            _insert_forgotten(tx, value, done_at, tokens)


def _insert_forgotten(tx: WriteTransaction, value: Mapping[str, Any], done_at: datetime, tokens: Sequence[str]) -> None:
    values = {"field": FORGOTTEN, "value": value, "done_at": done_at}
    number = tx.execute(insert(edit).values(**values).returning(edit.c.number)).scalar_one()
    if tokens:
        tx.execute(insert(edit_token), [{"number": number, "token": name} for name in tokens])
