"""Build the result of a tool call, and the published form of a tool with its schemas.

The schemas are as short as possible, because a model reads them in every conversation.
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

from orchestrator.requests.calls import CLIENT_NAMES
from orchestrator.requests.field_types import MAX_COUNT
from orchestrator.tool import Tool
from registry.domain import as_json, parse_time
from registry.text.privacy.hidden_characters import shown

Context = ServerRequestContext[ExitStack, Any]
"""The context of a request. Its stack is closed together with the connection."""


def client_name(context: Context) -> str | None:
    """Return name and version of the client program; None if it sent none.

    Over HTTP, a client of an older revision sends them only in the handshake, which a stateless server does not
    store. Then the `User-Agent` is used, if it names a known client and not a library.
    """
    if params := context.session.client_params:
        return f"{params.client_info.name} {params.client_info.version}".strip()
    agent = context.request.headers.get("user-agent", "") if context.request else ""
    name, _, version = agent.partition(" ")[0].partition("/")
    return f"{name} {version}" if name.lower() in CLIENT_NAMES else None


def find_chat_id(meta: Mapping[str, Any]) -> str | None:
    """Return the client's own id of the chat; None if its requests do not contain one.

    The connection does not identify a chat: clients use one for several chats, or several for one chat.
    """
    for name, value in meta.items():
        last_part = re.sub(r"[^a-z]", "", re.split(r"[/.]", name.lower())[-1])
        if last_part in ("session", "sessionid", "conversationid", "threadid", "chatid") and isinstance(value, str):
            return re.sub(r"[^\w.-]", "-", value)[:100] or None
        if isinstance(value, dict) and (nested := find_chat_id(value)):
            return nested
    return None


APP = "ui://context-registry/answer.html"  # the page in which a host of MCP Apps shows an answer of `extract`
# Claude Code tells its model only the names of other tools until it searches for them.
_EXTRACT_META = {"ui": {"resourceUri": APP}, "anthropic/alwaysLoad": True}
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_TEXTS = ("text", "snippet", "line", "content", "context", "tool")


def in_local_time(value: Any) -> Any:
    """Convert every time in an answer to the user's time zone, with its offset, but no times in quoted texts."""
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


def to_call_result(body: dict[str, Any]) -> CallToolResult:
    body = in_local_time(shown(body))
    # Unescaped and without spaces, because the model pays for every character. The text must equal the structured
    # content: one client sends its model both if they differ.
    text = as_json(body)
    return CallToolResult(content=[TextContent(text=text)], structured_content=body, is_error=not body["ok"])


@cache
def publish_tool(tool: Tool) -> PublishedTool:
    read_only, destructive, idempotent = tool.effect.value
    return PublishedTool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=input_schema(tool.arguments.model_json_schema()),
        output_schema=output_schema(tool.returns),
        meta=_EXTRACT_META if tool.name == "extract" else None,
        annotations=ToolAnnotations(
            read_only_hint=read_only, destructive_hint=destructive, idempotent_hint=idempotent, open_world_hint=False
        ),
    )


def output_schema(returns: Sequence[str]) -> dict[str, Any]:
    """Return the schema of the envelope and the names of the result's fields. Models do not need their types."""
    result = {"type": "object", "properties": {name: {} for name in returns}}
    properties = {"ok": {"type": "boolean"}, "tool": {"type": "string"}, "result": result, "error": {"type": "object"}}
    return {"type": "object", "properties": properties, "required": ["ok", "tool"]}


def input_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Inline the references, and drop keywords that are useless or that hosts in strict mode refuse.

    Defaults are appended to the descriptions; the server checks the lengths of texts.
    """
    simplified = _simplify(_inline_references(schema, schema.get("$defs", {})))
    simplified.pop("description", None)
    return {**simplified, "properties": simplified.get("properties", {}), "additionalProperties": False}


def _inline_references(schema: Any, parts: Mapping[str, Any]) -> Any:
    match schema:
        case {"$ref": str(ref), **siblings}:
            return {**_inline_references(parts[ref.rpartition("/")[2]], parts), **siblings}
        case dict():
            return {key: _inline_references(value, parts) for key, value in schema.items() if key != "$defs"}
        case list():
            return [_inline_references(item, parts) for item in schema]
    return schema


_UNPUBLISHED = frozenset({"title", "default", "minLength", "maxLength", "additionalProperties"})


def _simplify(schema: dict[str, Any]) -> dict[str, Any]:
    simplified = {name: value for name, value in schema.items() if name not in _UNPUBLISHED}
    if simplified.get("maximum") == MAX_COUNT:
        del simplified["maximum"]
    default = schema.get("default")
    if default not in (None, [], "", 0, False):
        shown = default if isinstance(default, str) else json.dumps(default)
        simplified["description"] = "; ".join(filter(None, [simplified.get("description"), f"default {shown}"]))
    if "properties" in simplified:
        simplified["properties"] = {name: _simplify(part) for name, part in simplified["properties"].items()}
    if isinstance(simplified.get("items"), dict):
        simplified["items"] = _simplify(simplified["items"])
    if "anyOf" in simplified:
        some = [_simplify(part) for part in simplified.pop("anyOf") if part != {"type": "null"}]
        simplified = {**some[0], **simplified} if len(some) == 1 else {**simplified, "anyOf": some}
    return simplified
