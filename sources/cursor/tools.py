"""Read a tool call of Cursor, whose call and result share one bubble. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from registry.domain import Message, Role
from sources.kit.drafts import COMPLETED, FAILED, PENDING, REJECTED, shortened, status_of, tool_draft
from sources.kit.loose_json import compact, mapping, number, parse_nested, string, text_at, value_at

_RESULT_TEXTS = ("output", "contents", "content", "text", "stdout", "diff", "message")
_VERSION = re.compile(r"_v\d+$")


def is_tool_call(bubble: Mapping[str, Any]) -> bool:
    """Return True if the bubble holds a tool call; many others carry an empty `toolFormerData`."""
    call = mapping(bubble.get("toolFormerData"))
    return any(call.get(key) for key in ("name", "toolCallId", "rawArgs", "params", "result"))


def tool_message(call: Mapping[str, Any]) -> Message:
    """Return a call as a message, in which a long result is shortened."""
    name, result, error = string(call.get("name")) or "tool", parse_nested(call.get("result")), call.get("error")
    params = parse_nested(call.get("params")) or parse_nested(call.get("rawArgs"))
    draft = tool_draft("", _VERSION.sub("", name), params, None)
    draft.more["tool"] |= {"name": name, "id": call.get("toolCallId")}
    draft.answer(result, _status(call, result), error_text(error) if error else _shown(result))
    return Message(Role.TOOL, "\n\n".join(draft.parts), more=draft.more)


def _status(call: Mapping[str, Any], result: Any) -> str:
    if call.get("userDecision") == "rejected":
        return REJECTED
    if number(value_at(result, "exitCode")):
        return FAILED
    return status_of(call.get("status"), COMPLETED if result else PENDING)


def _shown(result: Any) -> str:
    if result in (None, "", {}, []):
        return ""
    texts = (text_at(result, key) for key in _RESULT_TEXTS)
    return shortened((next(filter(None, texts), "") or compact(result)).strip())


# fields that may hold the wording of an error; the last one is tried first
_ERROR_FIELDS = (
    "modelVisibleErrorMessage",
    "error",
    "detail",
    "title",
    "message",
    "clientVisibleErrorMessage",
    "details",
)


def error_text(error: Any) -> str:
    """Return the first wording found in an error, which Cursor nests in many ways; else the whole as JSON."""
    waiting = [parse_nested(error)]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str) and found.strip():
            return shortened(found.strip())
        waiting.extend(inner for word in _ERROR_FIELDS if (inner := mapping(found).get(word)))
    return shortened(compact(parse_nested(error)))
