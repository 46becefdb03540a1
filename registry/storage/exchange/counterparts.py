"""Match messages of another machine with stored ones: by id, by text and time, or by text without secrets.

A secret has another mark there, because the other registry has another key.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, select

from registry.domain import CLAIMED, Actor, Message, Role, digest_of, instant_of, storable
from registry.storage.conversations.messages import MessageRow
from registry.storage.database import ReadTransaction
from registry.storage.tables import conversation
from registry.text.privacy.secrets import MARK, MARK_BEGIN, is_masked

NOT_GROWN = "No stored message is the beginning of this one."
"""The message by which a laptop recognises that its longer text is not accepted."""

SentMessage = tuple[Message, bytes, str | None]
"""A received message, the digest of its text, and its id here if the sender knows it."""


def match_by_id_or_time(
    tx: ReadTransaction, matches: Sequence[MessageRow | None], rows: Sequence[MessageRow], sent: Sequence[SentMessage]
) -> list[MessageRow | None]:
    """Match messages by their id here, then by text and time.

    Two machines that add to one conversation have its messages in different orders, which can defeat the alignment.
    `matches`: the alignment's result for each message; `rows`: all messages of the channel.
    """

    def is_named(row: MessageRow, message: Message, digest: bytes) -> bool:
        return row.forgotten or bytes(row.digest) == digest or grown_to(tx, row.id, message.text) is not None

    by_id = {row.id: row for row in rows}
    named = {
        at: row
        for at, (message, digest, there) in enumerate(sent)
        if (row := by_id.get(there or "")) and is_named(row, message, digest)
    }
    taken = {row.number for row in named.values()}
    known = [named.get(at) or (row if row and row.number not in taken else None) for at, row in enumerate(matches)]
    taken |= {row.number for row in known if row}
    free = {(bytes(row.digest), instant_of(row.timestamp)): row for row in rows if row.number not in taken}
    for at, (message, digest, _) in enumerate(sent):
        if known[at] is None and message.timestamp:
            known[at] = free.pop((digest, instant_of(message.timestamp)), None)
    return known


def grown_to(tx: ReadTransaction, message_id: str, text: str) -> MessageRow | None:
    """Return the message with that id if the text equals or extends its text: its client was still writing it.

    Only messages from another machine can grow this way, not those of this machine's clients.
    """
    row = tx.execute(select(conversation).where(conversation.c.id == message_id)).first()
    if row is None or row.actor != Actor.TOOL or row.forgotten:
        return None
    beginning = _without_last_mark(row.text.rstrip())
    return row if beginning and storable(text).startswith(beginning) else None


def _without_last_mark(text: str) -> str:
    """Remove a mark at the end: an incomplete secret has another mark than the complete one."""
    last = next((mark for mark in MARK.finditer(text) if mark.end() == len(text)), None)
    return text[: last.start()] if last else text


def matching_digests(tx: ReadTransaction, channel_number: int, sent: Sequence[SentMessage]) -> list[bytes]:
    """Return each message's digest, or that of a stored message which differs only in the marks of its secrets.

    Two such messages are the same if they have the same client's id. If one has no id, a message of a client's store is
    the same if its time is, and no other message has this text and time. Otherwise the secret may be another one.
    """
    masked = masked_messages(tx, channel_number)
    digests = {bytes(row.digest) for row in masked}
    named, unnamed = dict[_MaskedKey, bytes](), defaultdict[_MaskedKey, list[bytes]](list)
    for row in masked:
        words, client_id = digest_without_marks(row.role, row.text), client_id_of(row.native_id, row.payload)
        if client_id:
            named[words, client_id] = bytes(row.digest)
        else:
            unnamed[words, instant_of(row.timestamp)].append(bytes(row.digest))

    def digest_here(message: Message, digest: bytes) -> bytes:
        if digest in digests or not is_masked(message.text):
            return digest
        words = digest_without_marks(message.role, storable(message.text))
        if found := named.get((words, client_id_of(message.native_id, message.more))):
            return found
        same_time = unnamed[words, instant_of(message.timestamp)] if message.native_id else []
        return same_time.pop() if len(same_time) == 1 else digest

    return [digest_here(message, digest) for message, digest, _ in sent]


_MaskedKey = tuple[bytes, int | str | None]  # digest without secrets; the client's id, or the time


def digest_without_marks(role: str, text: str) -> bytes:
    return digest_of(Role(role), MARK.sub("[secret]", text))


def client_id_of(native_id: str | None, more: Mapping[str, Any]) -> str | None:
    """Return the client's id of a message, or the id that a caller claims, if it is a string."""
    claimed = more.get(CLAIMED)
    found = native_id or (claimed.get("native_id") if isinstance(claimed, Mapping) else None)
    return found if isinstance(found, str) else None


def masked_messages(tx: ReadTransaction, channel_number: int, *conditions: ColumnElement[bool]) -> Sequence[MessageRow]:
    """Return the messages of a channel that contain marks of secrets."""
    has_mark = conversation.c.text.contains(MARK_BEGIN, autoescape=True)
    within = conversation.c.channel_number == channel_number
    return tx.execute(select(conversation).where(within, has_mark, *conditions)).all()
