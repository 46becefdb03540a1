"""What is delivered: messages as the nodes pass them on, how many of them fit, and their shorter forms. Pure."""

from __future__ import annotations

from typing import Any

from orchestrator.answer.size import within
from registry.domain import format_time
from registry.storage.messages import MessageRow

Turn = tuple[int, int]
"""A turn's identity: channel number, seq of its first message."""
MessageDict = dict[str, Any]


def message_dict(row: MessageRow) -> MessageDict:
    """A stored message as the nodes pass it on."""
    return {
        "id": row.id,
        "number": row.number,
        "channel": row.channel,
        "channel_number": row.channel_number,
        "source": row.source,
        "seq": row.seq,
        "turn": row.turn,
        "role": row.role,
        "text": row.text,
        "timestamp": format_time(row.timestamp),
        "context": row.payload.get("context"),
        "tool": row.payload.get("tool"),
    }


def delivered(message: MessageDict) -> MessageDict:
    """The message as it leaves the orchestrator; what is empty is left out."""
    more = {name: message[name] for name in ("context", *_MARKS) if message.get(name)}
    return {key: message[key] for key in ("id", "role", "text", "timestamp")} | more


_MARKS = ("gap_before", "full_length", "superseded_by")


def cut_text(text: str, max_tokens: int | None) -> str:
    """As much of a text as fits, and a mark where it was cut."""
    return text if max_tokens is None else within(text, max_tokens)
