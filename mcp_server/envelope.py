"""The shape of every answer, and the tools with their schemas as published.

The schemas leave out what says nothing, because a model reads them in every conversation.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from typing import Any

from mcp.server import ServerRequestContext
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from mcp.types import Tool as PublishedTool

from orchestrator.requests.field_types import MOST_COUNTED
from orchestrator.tool import Tool
from registry.domain import as_json, parse_time
from registry.text.privacy.hidden_characters import shown

Context = ServerRequestContext[ExitStack, Any]
"""The context of a request. The stack holds what ends with its connection."""


def client_name(context: Context) -> str | None:
    """Return name and version of the client program, where it told them."""
    params = context.session.client_params
    return f"{params.client_info.name} {params.client_info.version}".strip() if params else None


def chat_in(meta: Mapping[str, Any]) -> str | None:
    """Return the client's id of the chat, where it sends one with its requests.

    The connection is no such id: clients use one for several chats, and open another for the same.
    """
    for name, value in meta.items():
        own_name = re.sub(r"[^a-z]", "", re.split(r"[/.]", name.lower())[-1])
        if own_name in ("session", "sessionid", "conversationid", "threadid", "chatid") and isinstance(value, str):
            return re.sub(r"[^\w.-]", "-", value)[:100] or None
        if isinstance(value, dict) and (inside := chat_in(value)):
            return inside
    return None


APP = "ui://context-registry/answer.html"  # the page in which a host of MCP Apps shows an answer of `extract`
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_TEXTS = ("text", "snippet", "line", "content", "context", "tool")


def in_local_time(value: Any) -> Any:
    """Return an answer with every instant in the user's time, with its offset; texts stay as they are."""
    match value:
        case dict():
            return {name: part if _is_text(name, part) else in_local_time(part) for name, part in value.items()}
        case list():
            return [in_local_time(part) for part in value]
        case str() if len(value) < 60 and value[-1:] == "Z":
            return _INSTANT.sub(lambda found: parse_time(found[0]).astimezone().isoformat(timespec="seconds"), value)
    return value


def _is_text(name: str, part: Any) -> bool:
    return name in _TEXTS and not (name == "context" and isinstance(part, list))  # the messages around a match


def as_answer(body: dict[str, Any]) -> CallToolResult:
    body = in_local_time(shown(body))
    # Unescaped and without spaces: the model pays for every character. One client hands its model the text beside the
    # structured content wherever the two differ, so they must not.
    text = as_json(body)
    return CallToolResult(content=[TextContent(text=text)], structured_content=body, is_error=not body["ok"])


@cache
def published(tool: Tool) -> PublishedTool:
    read_only, destructive, idempotent = tool.effect.value
    return PublishedTool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=input_schema(tool.arguments.model_json_schema()),
        output_schema=output_schema(tool.returns),
        meta={"ui": {"resourceUri": APP}} if tool.name == "extract" else None,
        annotations=ToolAnnotations(
            read_only_hint=read_only, destructive_hint=destructive, idempotent_hint=idempotent, open_world_hint=False
        ),
    )


def output_schema(returns: Sequence[str]) -> dict[str, Any]:
    """Return the envelope with the names of a result's fields: no model chooses a tool by their types."""
    result = {"type": "object", "properties": {name: {} for name in returns}}
    properties = {"ok": {"type": "boolean"}, "tool": {"type": "string"}, "result": result, "error": {"type": "object"}}
    return {"type": "object", "properties": properties, "required": ["ok", "tool"]}


def input_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Inline the references, and drop what says nothing or is refused by hosts with a strict mode.

    A default becomes a part of the description; lengths of texts are checked by the server.
    """
    slimmed = _slim(_in_place(schema, schema.get("$defs", {})))
    slimmed.pop("description", None)
    return {**slimmed, "properties": slimmed.get("properties", {}), "additionalProperties": False}


def _in_place(schema: Any, parts: Mapping[str, Any]) -> Any:
    match schema:
        case {"$ref": str(ref), **beside}:
            return {**_in_place(parts[ref.rpartition("/")[2]], parts), **beside}
        case dict():
            return {key: _in_place(value, parts) for key, value in schema.items() if key != "$defs"}
        case list():
            return [_in_place(item, parts) for item in schema]
    return schema


_UNPUBLISHED = frozenset({"title", "default", "minLength", "maxLength", "additionalProperties"})


def _slim(schema: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in schema.items() if name not in _UNPUBLISHED}
    if kept.get("maximum") == MOST_COUNTED:
        del kept["maximum"]
    default = schema.get("default")
    if default not in (None, [], "", 0, False):
        shown = default if isinstance(default, str) else json.dumps(default)
        kept["description"] = "; ".join(filter(None, [kept.get("description"), f"default {shown}"]))
    if "properties" in kept:
        kept["properties"] = {name: _slim(part) for name, part in kept["properties"].items()}
    if isinstance(kept.get("items"), dict):
        kept["items"] = _slim(kept["items"])
    if "anyOf" in kept:
        some = [_slim(part) for part in kept.pop("anyOf") if part != {"type": "null"}]
        kept = {**some[0], **kept} if len(some) == 1 else {**kept, "anyOf": some}
    return kept
