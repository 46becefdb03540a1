"""Recognise a chat that is sent without a channel and whole, as many clients send it with each turn."""

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import select

from registry.domain import Message, format_time, now
from registry.storage.conversations.messages import MessageRow, messages_of
from registry.storage.database import WriteTransaction
from registry.storage.safety.masking import masked
from registry.storage.safety.visibility import owner_of
from registry.storage.tables import channel

MAX_AGE = timedelta(days=1)  # since the last message of the chat
MAX_COMPARED = 20  # channels


def find_unnamed_chat(
    tx: WriteTransaction, messages: Sequence[Message], source: str, project_path: str | None
) -> str | None:
    """Return the longest recent channel of which these messages are all that it contains, and may be more."""
    last_first = channel.c.updated_at.desc(), channel.c.number.desc()
    same = channel.c.source == source, channel.c.project_path == project_path, channel.c.owner == owner_of(tx)
    fitting = channel.c.deleted.is_(False), channel.c.message_count.between(1, len(messages))
    recent = select(channel).where(channel.c.updated_at >= now() - MAX_AGE, *same, *fitting).order_by(*last_first)
    rows = tx.execute(recent.limit(MAX_COMPARED)).all()
    texts = [masked(tx, message.text).split() for message in messages] if rows else []
    for row in sorted(rows, key=lambda row: -row.message_count):
        stored = messages_of(tx, row.number, limit=len(messages) + 1, include_deleted=True)
        if len(stored) <= len(messages) and all(map(_is_same, stored, messages, texts)):
            return str(row.name)
    return None


def _is_same(stored: MessageRow, sent: Message, words: Sequence[str]) -> bool:
    is_same_time = sent.timestamp is None or format_time(sent.timestamp) == format_time(stored.timestamp)
    return is_same_time and stored.role == sent.role and stored.text.split() == words
