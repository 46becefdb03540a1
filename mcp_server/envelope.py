"""The shape of every answer, and the tools with their schemas as published.

The schemas leave out what says nothing, because a model reads them in every conversation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Generic, TypeVar

from mcp.server import ServerRequestContext
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from mcp.types import Tool as PublishedTool
from pydantic import BaseModel

from orchestrator.requests.field_types import MOST_COUNTED
from orchestrator.tool import Tool
from registry.text.privacy.hidden_characters import shown

Result = TypeVar("Result", bound=BaseModel)


def client_name(context: ServerRequestContext[Any, Any]) -> str | None:
    """Return name and version of the client program, where it told them."""
    params = context.session.client_params
    return f"{params.client_info.name} {params.client_info.version}".strip() if params else None


class Envelope(BaseModel, Generic[Result]):
    """`result` when ok, when not `error`: code, message, and details (what was given, what is allowed)."""

    ok: bool
    tool: str
    result: Result | None = None
    error: dict[str, Any] | None = None


def as_answer(body: dict[str, Any]) -> CallToolResult:
    """Return an envelope as structured content and as its JSON text."""
    body = shown(body)
    # Unescaped and without spaces: the model pays for every character. One client hands its model the text beside the
    # structured content wherever the two differ, so they must not.
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return CallToolResult(content=[TextContent(text=text)], structured_content=body, is_error=not body["ok"])


@cache
def published(tool: Tool) -> PublishedTool:
    """Return a tool as the protocol lists it."""
    read_only, destructive, idempotent = tool.effect.value
    parameters = slim(tool.arguments.model_json_schema())
    parameters.pop("description", None)
    return PublishedTool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema={**parameters, "properties": parameters.get("properties", {}), "additionalProperties": False},
        output_schema=slim_output(Envelope[tool.output].model_json_schema()),  # type: ignore[name-defined]
        annotations=ToolAnnotations(
            read_only_hint=read_only,
            destructive_hint=destructive,
            idempotent_hint=idempotent,
            open_world_hint=False,
        ),
    )


def slim(schema: dict[str, Any], unsaid: frozenset[str] = frozenset({"title"})) -> dict[str, Any]:
    """Inline the schema's references and drop what says nothing.

    That is `default: null`, `null` as an alternative to leaving out, `additionalProperties: true`, and that a text is
    not empty.
    """
    return _slim(_in_place(schema, schema.get("$defs", {})), unsaid)


def slim_output(schema: dict[str, Any]) -> dict[str, Any]:
    """A result's schema: its names speak, and no model has to choose what to put into it.

    What is always there is said of the result itself, and not of every object in it.
    """
    unsaid = frozenset({"title", "description"})
    said, slimmed = slim(schema, unsaid), slim(schema, unsaid | {"required"})
    always = said.get("properties", {}).get("result", {}).get("required")
    if always:
        slimmed["properties"]["result"]["required"] = always
    return slimmed


def _in_place(schema: Any, parts: Mapping[str, Any]) -> Any:
    match schema:
        case {"$ref": str(ref), **beside}:
            return {**_in_place(parts[ref.rpartition("/")[2]], parts), **beside}
        case dict():
            return {key: _in_place(value, parts) for key, value in schema.items() if key != "$defs"}
        case list():
            return [_in_place(item, parts) for item in schema]
    return schema


def _slim(schema: dict[str, Any], unsaid: frozenset[str]) -> dict[str, Any]:
    kept = {key: value for key, value in schema.items() if key not in unsaid and not _holds_anyway(key, value)}
    if "properties" in kept:
        kept["properties"] = {name: _slim(part, unsaid) for name, part in kept["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(kept.get(key), dict):
            kept[key] = _slim(kept[key], unsaid)
    if "anyOf" in kept:
        some = [_slim(part, unsaid) for part in kept.pop("anyOf") if part != {"type": "null"}]
        kept = {**some[0], **kept} if len(some) == 1 else {**kept, "anyOf": some}
    return kept


def _holds_anyway(key: str, value: object) -> bool:
    says_nothing = ("default", None), ("additionalProperties", True), ("minLength", 1), ("maximum", MOST_COUNTED)
    return (key, value) in says_nothing
