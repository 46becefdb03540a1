"""What is delivered: messages as the nodes pass them on, how many of them fit, and their shorter forms. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from orchestrator.answer.size import within
from registry.domain import CLAIMED, Role, format_time, preview_of

if TYPE_CHECKING:
    from registry.storage.conversations.messages import MessageRow

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
        "context": context_of(row.role, row.payload),
        "tool": row.payload.get("tool"),
        "time": row.payload.get("time"),
        "payload": row.payload,
    }


def context_of(role: str, payload: Mapping[str, Any]) -> Any:
    """What a message says of its place; of a question, else, the file and place that its call told of the moment."""
    return payload.get("context") or _where_it_was_asked(role, payload.get("meta"))


def _where_it_was_asked(role: str, meta: object) -> dict[str, Any] | None:
    if role != Role.USER or not isinstance(meta, Mapping):
        return None
    more = meta.get("additional_context")
    beside = dict(more) if isinstance(more, Mapping) else {}
    line = beside.pop("line_number", beside.pop("line", None))
    known = {"file": meta.get("file"), "line": line, "language": meta.get("language"), **beside}
    return {name: value for name, value in known.items() if value is not None} or None


def complete(message: MessageDict) -> MessageDict:
    """The message with all that is kept of it, but what its client calls it."""
    kept = {name: value for name, value in message["payload"].items() if name not in ("native_id", CLAIMED)}
    return {**kept, **{key: message[key] for key in ("id", "role", "text", "timestamp")}}


def delivered(message: MessageDict, *, whole_tool: bool = False) -> MessageDict:
    """The message as it leaves the orchestrator; what is empty is left out.

    `time` "inferred": nobody told when it was said. A tool's call is cut, for its text tells it, unless wanted whole.
    """
    more = {name: message[name] for name in ("time", *_MARKS) if message.get(name)}
    if message.get("context"):
        more["context"] = _brief(message["context"])
    if isinstance(tool := message.get("tool"), Mapping):
        more["tool"] = {name: tool.get(name) if whole_tool else _cut(tool.get(name)) for name in _CALL}
    return {key: message[key] for key in ("id", "role", "text", "timestamp")} | more


CONTEXT = 2_000
"""Characters of what a client tells beside a message; of more, each part is shortened."""
_PART = 200


def _brief(context: Any) -> Any:
    if length_of(context) <= CONTEXT or not isinstance(context, Mapping):
        return context
    parts = islice(context.items(), CONTEXT // _PART)
    return {name: value if isinstance(value, int | float) else preview_of(str(value), _PART) for name, value in parts}


def length_of(value: Any) -> int:
    """Characters of a value as it is sent."""
    return len(json.dumps(value, ensure_ascii=False, default=str))


_MARKS = ("gap_before", "full_length", "offset", "superseded_by")
_CALL = ("name", "params", "result", "status")
_TOOL_WIDTH = 200
_TOOL_ITEMS = 10


def _cut(value: Any, deeper: int = 2) -> Any:
    """The same in short: texts by their beginning, the first items of what holds many."""
    match value:
        case str():
            return preview_of(value, _TOOL_WIDTH) if len(value) > _TOOL_WIDTH else value
        case Mapping() if deeper:
            return {name: _cut(held, deeper - 1) for name, held in islice(value.items(), _TOOL_ITEMS)}
        case list() if deeper:
            return [_cut(held, deeper - 1) for held in value[:_TOOL_ITEMS]]
        case Mapping() | list():
            return preview_of(str(value), _TOOL_WIDTH)
    return value


def cut_text(text: str, max_tokens: int | None) -> str:
    """As much of a text as fits, and a mark where it was cut."""
    return text if max_tokens is None else within(text, max_tokens)
