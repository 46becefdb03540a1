"""Calls of tools by a client in memory."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from mcp import Client
from mcp_types import CallToolResult


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool; return the envelope, after checking that its text and error flag agree with it."""
    answer = await client.call_tool(tool, arguments)
    assert isinstance(answer, CallToolResult)
    body = answer.structured_content
    assert isinstance(body, dict)
    assert json.loads(answer.content[0].text) == body  # type: ignore[union-attr]
    assert (answer.is_error, body["tool"]) == (not body["ok"], tool)
    return body


async def result(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool that must succeed; return its result."""
    answer = await call(client, tool, **arguments)
    assert answer["ok"], answer
    return dict(answer["result"])


def local_time(instant: str) -> str:
    return datetime.fromisoformat(instant).astimezone().isoformat(timespec="seconds")
