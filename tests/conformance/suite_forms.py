"""Fixtures of the conformance suite that send the client a request of their own (handshake era only)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import SamplingMessage, TextContent

Properties = Mapping[str, Mapping[str, Any]]


def titled(*values: str) -> list[dict[str, str]]:
    """Return the values of an enumeration with a title for each."""
    return [{"const": value, "title": value.title()} for value in values]


def plain(*values: str) -> dict[str, Any]:
    """Return an enumeration without titles."""
    return {"type": "string", "enum": list(values)}


RESPONSE: Properties = {"username": {"type": "string"}, "email": {"type": "string"}}
FORMS: Mapping[str, Properties] = {
    "test_elicitation_sep1034_defaults": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": plain("active", "inactive", "pending") | {"default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
    "test_elicitation_sep1330_enums": {
        "untitledSingle": plain("option1", "option2", "option3"),
        "titledSingle": {"type": "string", "oneOf": titled("value1", "value2", "value3")},
        "legacyEnum": plain("opt1", "opt2") | {"enumNames": ["Option One", "Option Two"]},
        "untitledMulti": {"type": "array", "items": plain("option1", "option2", "option3")},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("value1", "value2", "value3")}},
    },
}


def add_forms(server: MCPServer[Any]) -> None:
    """Add tools that ask the user or the model during a call."""

    @server.tool()
    async def test_sampling(prompt: str, ctx: Context[Any]) -> str:
        """Ask the client's language model."""
        question = SamplingMessage(role="user", content=TextContent(text=prompt))
        answer = await ctx.session.create_message([question], max_tokens=100, related_request_id=ctx.request_id)
        return f"LLM response: {answer.content.model_dump_json()}"

    @server.tool()
    async def test_elicitation(message: str, ctx: Context[Any]) -> str:
        """Ask the user."""
        return await fill_form(ctx, message, RESPONSE, required=list(RESPONSE))

    for name, properties in FORMS.items():

        async def ask(ctx: Context[Any], properties: Properties = properties) -> str:
            return await fill_form(ctx, "Please fill in the form", properties, required=[])

        server.add_tool(ask, name=name, description=f"Conformance fixture {name}")


async def fill_form(ctx: Context[Any], message: str, properties: Properties, *, required: Sequence[str]) -> str:
    """Show the user a form; return the answer as text."""
    schema = {"type": "object", "properties": properties, "required": list(required)}
    answer = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
    return f"User response: action={answer.action}, content={json.dumps(answer.content)}"
