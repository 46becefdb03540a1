"""Read the shapes in which models and their APIs write a message. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.requests.calls import ARGUMENTS
from sources.kit.drafts import call_title, content_text
from sources.kit.loose_json import mapping, objects, parse_nested, string


def as_message(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with its words as `text`: those of `content`, also in blocks, else its tool's call or result.

    A call is a line such as `bash ls` in the role of a tool, as in the clients' own histories. An empty time is none.
    """
    message = {name: value for name, value in given.items() if name != "timestamp" or value != ""}
    if message.get("text"):
        return message
    content = message.get("content")
    if isinstance(content, str | list):
        del message["content"]
        message["text"] = content if isinstance(content, str) else "\n".join(_texts(content))
    return message if message.get("text") else {**message, **_of_tool(message, objects(content))}


def _texts(content: list[Any]) -> Iterator[str]:
    parts = (part.get("text") if isinstance(part, dict) else part for part in content)
    return (part for part in parts if isinstance(part, str))


def _of_tool(message: Mapping[str, Any], blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what differs in a message that holds nothing but a tool's calls or their results."""
    results = [content_text(block.get("content")) for block in blocks if block.get("type") == "tool_result"]
    if any(results):
        return {"role": "tool", "text": "\n".join(results)}
    used = [block for block in blocks if block.get("type") == "tool_use"]
    written = [*objects(message.get("tool_calls")), *used, message.get("tool"), message]
    calls = [call for one in written if (call := _call(one))]
    if not calls:
        return {}
    of_one = {"tool": calls[0]} if len(calls) == 1 else {}
    return {"role": "tool", "text": "\n".join(call_title(call["name"], call["params"]) for call in calls), **of_one}


def _call(written: Any) -> dict[str, Any] | None:
    call = mapping(mapping(written).get("function", written))
    name = string(call.get("name")) or string(call.get("tool"))
    params: Any = next((parse_nested(call[key]) for key in ARGUMENTS if key in call), {})
    return {"name": name, "params": params} if name else None
