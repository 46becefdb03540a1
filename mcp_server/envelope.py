"""The shape of every tool's answer: the one place where an MCP answer gets it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from mcp.types import CallToolResult, TextContent
from pydantic import BaseModel

from orchestrator.calls import QUOTED, QUOTING, RESULTS
from registry.text.privacy.visible import shown

Result = TypeVar("Result", bound=BaseModel)


class Envelope(BaseModel, Generic[Result]):
    """`result` when ok, when not `error`: code, message, and details (what was given, what is allowed)."""

    ok: bool
    tool: str
    result: Result | None = None
    error: dict[str, Any] | None = None


def reply(tool: str, outcome: Mapping[str, Any]) -> CallToolResult:
    """The answer to a call whose operation had this outcome."""
    if outcome["success"]:
        quoted = {"quoted": QUOTED} if tool in QUOTING else {}
        body = {"ok": True, "tool": tool, "result": quoted | RESULTS[tool](outcome)}
    else:
        body = {"ok": False, "tool": tool, "error": outcome["error"]}
    body = shown(body)
    # Unescaped and without spaces: the model pays for every character. One client hands its model the text beside the
    # structured content wherever the two differ, so they must not.
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return CallToolResult(content=[TextContent(text=text)], structured_content=body, is_error=not outcome["success"])
