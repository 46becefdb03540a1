"""Messages that another machine has masked: the same secret has another mark there, since its key is another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, select

from registry.domain import CLAIMED, Role, digest_of
from registry.storage.conversations.messages import MessageRow
from registry.storage.database import ReadTransaction
from registry.storage.tables import conversation
from registry.text.privacy.secrets import MARK, MARK_BEGIN


def digest_without_marks(role: str, text: str) -> bytes:
    """What makes two messages the same words but for their secrets."""
    return digest_of(Role(role), MARK.sub("[secret]", text))


def client_id_of(native_id: str | None, more: Mapping[str, Any]) -> str | None:
    """The client's own id for a message, or what a caller says that it is: who may say anything, also what is no id."""
    claimed = more.get(CLAIMED)
    found = native_id or (claimed.get("native_id") if isinstance(claimed, Mapping) else None)
    return found if isinstance(found, str) else None


def masked_messages(tx: ReadTransaction, channel_number: int, *wanted: ColumnElement[bool]) -> Sequence[MessageRow]:
    """Those messages of a channel that hold a mark."""
    holding = conversation.c.text.contains(MARK_BEGIN, autoescape=True)
    within = conversation.c.channel_number == channel_number
    return tx.execute(select(conversation).where(within, holding, *wanted)).all()
