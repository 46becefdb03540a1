"""Parse the message formats of models and their APIs. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.requests.calls import ARGUMENTS
from orchestrator.requests.field_types import parse_literal
from sources.kit.contents import content_text
from sources.kit.drafts import call_title, moment
from sources.kit.loose_json import mapping, objects, parse_nested, string

ROLES = ("role", "from", "sender", "author", "speaker", "type")
TEXTS = ("text", "content", "message", "value", "parts")
ROLE_KEYS = {
    **dict.fromkeys(("user", "human", "user_message", "prompt", "question"), "user"),
    **dict.fromkeys(("assistant", "ai", "assistant_message", "assistant_response", "response", "answer"), "assistant"),
}
"""Keys of a turn that a model wrote as one object: {"user": "…", "assistant": "…"}."""
_LINE = re.compile(r"(?:^|\n)\s*(user|human|assistant|ai|system|tool)\s*:\s*", re.IGNORECASE)


def as_messages(given: Any) -> Any:
    """Normalise a list, a single message, or a transcript ("User: …") to a list of messages."""
    given = parse_literal(given)
    if isinstance(given, Mapping):
        given = given.get("messages", [given])
    if isinstance(given, str) and _LINE.match(given):
        given = [given]
    return [message for one in given for message in _messages_in(one)] if isinstance(given, list) else given


def _messages_in(item: Any) -> Iterator[Any]:
    item = parse_literal(item)
    if isinstance(item, str) and len(parts := _LINE.split(item)) > 2 and not parts[0].strip():
        for role, text in zip(parts[1::2], parts[2::2], strict=True):
            yield {"role": role, "text": text.strip()}
    elif isinstance(item, list) and len(item) == 2:
        yield {"role": item[0], "text": item[1]}
    elif isinstance(item, dict) and not item.keys() & {*ROLES} and item.keys() & ROLE_KEYS.keys():
        rest = {name: value for name, value in item.items() if name not in ROLE_KEYS}
        for name in [name for name in item if name in ROLE_KEYS]:
            yield {**rest, "role": ROLE_KEYS[name], "text": item[name]}
    else:
        yield item


def as_message(given: Mapping[str, Any]) -> dict[str, Any]:
    """Normalise a message to `role` and `text`; drop an empty time.

    Without a text, the text is the tool call (a line such as `bash ls`) or its result, and the role is `tool`, as in
    the clients' own histories.
    """
    message = dict(given)
    if isinstance(at := message.get("timestamp"), int | float):
        message["timestamp"] = moment(at) or at
    elif at == "":
        del message["timestamp"]
    if isinstance(message.get("context"), str):
        message["context"] = {"text": message["context"]}
    if "role" not in message and (name := next((name for name in ROLES if name in message), None)):
        written = message.pop(name)
        message["role"] = written.get("role") if isinstance(written, Mapping) else written
    blocks: list[dict[str, Any]] = []
    for name in TEXTS[1:]:
        if message.get("text"):
            return message
        written = message.get(name)
        written = written.get("parts") if isinstance(written, Mapping) else written
        if isinstance(written, str | list):
            del message[name]
            message["text"] = written if isinstance(written, str) else "\n".join(_texts(written))
            blocks += objects(written)
    return message if message.get("text") else {**message, **_tool_fields(message, blocks)}


def _texts(content: list[Any]) -> Iterator[str]:
    parts = (part.get("text") if isinstance(part, dict) else part for part in content)
    return (part for part in parts if isinstance(part, str))


def _tool_fields(message: Mapping[str, Any], blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return `role`, `text` and `tool` for a message that has only tool calls or results."""
    results = [content_text(block.get("content")) for block in blocks if block.get("type") == "tool_result"]
    if any(results):
        return {"role": "tool", "text": "\n".join(results)}
    tool_uses = [block for block in blocks if block.get("type") == "tool_use"]
    written = [*objects(message.get("tool_calls")), *tool_uses, message.get("tool")]
    if message.get("role") in ("tool", "function") or message.keys() & {*ARGUMENTS} or isinstance(written[-1], str):
        written.append(message)  # in other roles `name` is the speaker
    calls = [call for one in written if (call := _call(one))]
    if not calls:
        return {}
    single = {"tool": calls[0]} if len(calls) == 1 else {}
    return {"role": "tool", "text": "\n".join(call_title(call["name"], call["params"]) for call in calls), **single}


def _call(written: Any) -> dict[str, Any] | None:
    call = mapping(mapping(written).get("function", written))
    name = string(call.get("name")) or string(call.get("tool"))
    params: Any = next((parse_nested(call[key]) for key in ARGUMENTS if key in call), {})
    return {"name": name, "params": params} if name else None
