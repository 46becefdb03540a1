"""The shape of every tool's answer: the one place where an MCP answer gets it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from mcp.types import CallToolResult, TextContent
from pydantic import BaseModel

from orchestrator.calls import QUOTED, QUOTING, RESULTS

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


def shown(value: Any) -> Any:
    """A value as it goes out: no field that is null, and nothing in its texts that a reader would not see."""
    match value:
        case str():
            return _HIDDEN.sub(_named, value)
        case Mapping():
            return {name: shown(item) for name, item in value.items() if item is not None}
        case list() | tuple():
            return [shown(item) for item in value]
    return value


_HIDDEN = re.compile(
    r"""(?P<flag>\U0001F3F4[\U000E0030-\U000E0039\U000E0061-\U000E007A]{2,6}\U000E007F)  # of England, Texas, …
      | [\U000E0000-\U000E007F]+  # letters of no shape
      | [\u202A-\u202E\u2066-\u2069]+  # the order of letters turned round
      | [\u200B-\u200F\u2060-\u2064\uFEFF]{2,}  # no width; a single one joins letters or emoji
      | [\uFE00-\uFE0F\U000E0100-\U000E01EF]{2,}  # variants of nothing
      | [\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]+""",
    re.VERBOSE,
)
_NAMED = 4
"""So many invisible characters in a row are named; of more, how many there were."""


def _named(found: re.Match[str]) -> str:
    if found["flag"]:
        return found[0]
    letters = [f"U+{ord(letter):04X}" for letter in found[0][:_NAMED]]
    more = [f"and {len(found[0]) - _NAMED} more"] if len(found[0]) > _NAMED else []
    return f"⟦{' '.join([*letters, *more])}⟧"
