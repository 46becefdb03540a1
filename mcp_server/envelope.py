"""The shape of every tool's answer: the one place where an MCP answer gets it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from mcp.types import CallToolResult, TextContent
from pydantic import BaseModel, Field

from orchestrator.calls import RESULTS

Result = TypeVar("Result", bound=BaseModel)


class Problem(BaseModel):
    """Why a call failed."""

    code: str
    message: str
    details: str = Field(description="what was given, what is allowed, what to do")


class Envelope(BaseModel, Generic[Result]):
    """`result` when ok, `error` when not."""

    ok: bool
    tool: str
    result: Result | None = None
    error: Problem | None = None


def reply(tool: str, outcome: Mapping[str, Any]) -> CallToolResult:
    """The answer to a call whose operation had this outcome."""
    if outcome["success"]:
        body = {"ok": True, "tool": tool, "result": RESULTS[tool](outcome)}
    else:
        body = {"ok": False, "tool": tool, "error": outcome["error"]}
    # Compact and unescaped: the model pays for every character.
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return CallToolResult(content=[TextContent(text=text)], structured_content=body, is_error=not outcome["success"])
