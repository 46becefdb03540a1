"""The chat that asks: its client may have kept the question before the answer to it was looked up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select

from registry.storage.database import ReadTransaction
from registry.storage.index.index_entries import RECALL, UNINDEXED
from registry.storage.tables import channel, conversation
from registry.text.request.understanding import asks_for_another

TURN = timedelta(hours=1)
"""An agent may have worked so long on its turn before it asks."""
LOOKED_AT, BEGINNING = 400, 600
"""Messages, and characters of each."""
SAME = 0.6
"""A request is the question itself where it is so much of it."""


def asking_channels(tx: ReadTransaction, source: str, request: str, since: datetime) -> list[int]:
    """The channels of a source, changed since, in which this may be asked: their last question waits for an answer."""
    kept = (
        select(
            conversation.c.channel_number,
            conversation.c.role,
            func.substr(conversation.c.text, 1, BEGINNING).label("text"),
            conversation.c.payload,
        )
        .join_from(conversation, channel, channel.c.number == conversation.c.channel_number)
        .where(
            channel.c.updated_at >= since,
            channel.c.source == source,
            channel.c.deleted.is_(False),
            conversation.c.deleted.is_(False),
            conversation.c.timestamp >= since - TURN,
        )
        .order_by(conversation.c.timestamp.desc(), conversation.c.number.desc())
        .limit(LOOKED_AT)
    )
    latest: dict[int, list[Any]] = defaultdict(list)
    for row in tx.execute(kept):
        latest[row.channel_number].append(row)
    return [number for number, rows in latest.items() if _waits(rows, request)]


def _waits(latest_first: Sequence[Any], request: str) -> bool:
    """The last word is a question, or another conversation is just being looked for, or this is the question."""
    if latest_first[0].payload.get(UNINDEXED) == RECALL:
        return True
    spoken = [row for row in latest_first if row.role in ("user", "assistant")]
    if not spoken or spoken[0].role == "user":
        return bool(spoken)
    question = next((_folded(row.text) for row in spoken if row.role == "user"), "")
    asked = _folded(request)
    return bool(asked) and asked in question and len(asked) >= SAME * len(question) and asks_for_another(question)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .?!~")
