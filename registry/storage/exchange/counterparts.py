"""Find the message here that another machine means: by its id here, by words and time, or by words without secrets.

The same secret has another mark there, because the key is another.
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
"""By this message a laptop knows that its longer text is not wanted."""

Given = tuple[Message, bytes, str | None]
"""A message as it came, the digest of its words, and its id here if the sender knows it."""


def with_named(
    tx: ReadTransaction, old: Sequence[MessageRow | None], rows: Sequence[MessageRow], sent: Sequence[Given]
) -> list[MessageRow | None]:
    """Recognise messages by the id they have here, and in such a call by words and time.

    Two machines that say something in one conversation have it in two orders, by which it may not be known again.
    `old`: for each message what it was recognised as without that; `rows`: all that the channel holds.
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
    known = [named.get(at) or (row if row and row.number not in taken else None) for at, row in enumerate(old)]
    taken |= {row.number for row in known if row}
    free = {(bytes(row.digest), instant_of(row.timestamp)): row for row in rows if row.number not in taken}
    for at, (message, digest, _) in enumerate(sent):
        if known[at] is None and message.timestamp:
            known[at] = free.pop((digest, instant_of(message.timestamp)), None)
    return known


def grown_to(tx: ReadTransaction, message_id: str, text: str) -> MessageRow | None:
    """Return the message with that id if these are its words, or more: its client was still writing when it was sent.

    Only for messages from another machine, never for those of this machine's clients.
    """
    row = tx.execute(select(conversation).where(conversation.c.id == message_id)).first()
    if row is None or row.actor != Actor.TOOL or row.forgotten:
        return None
    begun = _without_last_mark(row.text.rstrip())
    return row if begun and storable(text).startswith(begun) else None


def _without_last_mark(text: str) -> str:
    """Cut a mark at the end: a secret that was not written to its end has another one."""
    last = next((mark for mark in MARK.finditer(text) if mark.end() == len(text)), None)
    return text[: last.start()] if last else text


def digests_here(tx: ReadTransaction, channel_number: int, sent: Sequence[Given]) -> list[bytes]:
    """Return each message's digest, or that of a stored message which differs only in the marks of its secrets.

    They are the same by the client's own id. If one side has none, a message of a client's own store is the same by its
    time, if no other one has these words then. Otherwise it may be another secret.
    """
    masked = masked_messages(tx, channel_number)
    digests = {bytes(row.digest) for row in masked}
    named, unnamed = dict[_Named, bytes](), defaultdict[_Named, list[bytes]](list)
    for row in masked:
        words, client_id = digest_without_marks(row.role, row.text), client_id_of(row.native_id, row.payload)
        if client_id:
            named[words, client_id] = bytes(row.digest)
        else:
            unnamed[words, instant_of(row.timestamp)].append(bytes(row.digest))

    def here(message: Message, digest: bytes) -> bytes:
        if digest in digests or not is_masked(message.text):
            return digest
        words = digest_without_marks(message.role, storable(message.text))
        if found := named.get((words, client_id_of(message.native_id, message.more))):
            return found
        then = unnamed[words, instant_of(message.timestamp)] if message.native_id else []
        return then.pop() if len(then) == 1 else digest

    return [here(message, digest) for message, digest, _ in sent]


_Named = tuple[bytes, int | str | None]  # what was said but for its secrets, and the client's id for it or when it was


def digest_without_marks(role: str, text: str) -> bytes:
    return digest_of(Role(role), MARK.sub("[secret]", text))


def client_id_of(native_id: str | None, more: Mapping[str, Any]) -> str | None:
    """Return the client's own id of a message, or the one a caller claims, if it is a text."""
    claimed = more.get(CLAIMED)
    found = native_id or (claimed.get("native_id") if isinstance(claimed, Mapping) else None)
    return found if isinstance(found, str) else None


def masked_messages(tx: ReadTransaction, channel_number: int, *wanted: ColumnElement[bool]) -> Sequence[MessageRow]:
    """Return the messages of a channel that hold a mark."""
    holding = conversation.c.text.contains(MARK_BEGIN, autoescape=True)
    within = conversation.c.channel_number == channel_number
    return tx.execute(select(conversation).where(within, holding, *wanted)).all()
