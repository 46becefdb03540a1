"""What is delivered: messages as the nodes pass them on, how many of them fit, and their shorter forms. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

from orchestrator.answer.size import within
from registry.domain import format_time, preview_of
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
    more = {name: message[name] for name in _MARKS if message.get(name)}
    if message.get("context"):
        more["context"] = _brief(message["context"])
    return {key: message[key] for key in ("id", "role", "text", "timestamp")} | more


CONTEXT = 2_000
"""Characters of what a client tells beside a message; of more, each part is shortened."""
_PART = 200


def _brief(context: Any) -> Any:
    if len(json.dumps(context, ensure_ascii=False, default=str)) <= CONTEXT or not isinstance(context, Mapping):
        return context
    parts = islice(context.items(), CONTEXT // _PART)
    return {name: value if isinstance(value, int | float) else preview_of(str(value), _PART) for name, value in parts}


_MARKS = ("gap_before", "full_length", "offset", "superseded_by")


def cut_text(text: str, max_tokens: int | None) -> str:
    """As much of a text as fits, and a mark where it was cut."""
    return text if max_tokens is None else within(text, max_tokens)
