"""Read a tool call of Cursor, whose call and result share one bubble. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from registry.domain import Message, Role, preview_of
from sources.kit.drafts import COMPLETED, FAILED, PENDING, REJECTED, shortened
from sources.kit.loose_json import compact, mapping, number, parse_nested, string, value_at

CANCELLED = "cancelled"
_STATUS = {
    **{"completed": COMPLETED, "error": FAILED, "cancelled": CANCELLED},
    **dict.fromkeys(("started", "loading", "running"), PENDING),
}
# The parameters that may stand for a call in its title, the most telling first.
_TITLE_PARAMS = (
    *("command", "query", "searchTerm", "search_term", "pattern", "globPattern", "glob_pattern", "regex", "url"),
    *("targetFile", "target_file", "relativeWorkspacePath", "file_path", "filePath", "effectiveUri", "path"),
    *("targetDirectory", "directoryPath", "description", "prompt", "question"),
)
_RESULT_TEXTS = ("output", "contents", "content", "text", "stdout", "diff", "message")
_VERSION = re.compile(r"_v\d+$")


def is_tool_call(bubble: Mapping[str, Any]) -> bool:
    """Return True if the bubble holds a tool call; many others carry an empty `toolFormerData`."""
    call = mapping(bubble.get("toolFormerData"))
    return any(call.get(key) for key in ("name", "toolCallId", "rawArgs", "params", "result"))


def tool_message(call: Mapping[str, Any]) -> Message:
    """Return the call as text, such as `run_terminal_command: npm test` with the result below.

    The text shortens a long result; `more["tool"]` has it in full: name, params, result, status, and where present
    `id`, `error`, `decision`.
    """
    tool = _tool(call)
    lines = (_headline(tool), _result_text(tool["result"]), *_outcome(tool))
    return Message(Role.TOOL, "\n".join(filter(None, lines)), more={"tool": tool})


def _tool(call: Mapping[str, Any]) -> dict[str, Any]:
    params = parse_nested(call.get("params"))
    more = {
        "id": call.get("toolCallId"),
        "decision": call.get("userDecision"),
        "error": parse_nested(call.get("error")),
    }
    return {
        "name": string(call.get("name")) or "tool",
        "params": params if params not in (None, "", {}) else parse_nested(call.get("rawArgs")),
        "result": parse_nested(call.get("result")),
        "status": _status(call),
        **{key: value for key, value in more.items() if value and not isinstance(value, list)},
    }


def _status(call: Mapping[str, Any]) -> str:
    if call.get("userDecision") == "rejected":
        return REJECTED
    known = string(call.get("status"))
    return _STATUS.get(known) or known or (COMPLETED if call.get("result") else PENDING)


def _headline(tool: Mapping[str, Any]) -> str:
    name = _VERSION.sub("", tool["name"])
    subject = preview_of(_subject(tool["params"]), 300)
    return f"{name}: {subject}" if subject else name


def _subject(params: Any) -> str:
    given = mapping(params)
    most = next(filter(None, (string(given.get(key)) for key in _TITLE_PARAMS)), "")
    return most or (compact(params) if params not in (None, {}, []) else "")


def _result_text(result: Any) -> str:
    if result in (None, "", {}, []):
        return ""
    shown = (string(mapping(result).get(key)) for key in _RESULT_TEXTS)
    text = (next(filter(None, shown), "") or compact(result)).strip()
    return shortened(text)


def _outcome(tool: Mapping[str, Any]) -> Iterator[str]:
    code = number(value_at(tool["result"], "exitCode"))
    if code:
        yield f"(exit code {code:.0f})"
    if tool.get("error"):
        yield f"error: {error_text(tool['error'])}"
    if tool["status"] in (CANCELLED, REJECTED):
        yield f"({tool['status']})"


# fields that may hold the wording of an error; the last one is tried first
_ERROR_FIELDS = (
    "modelVisibleErrorMessage",
    "error",
    "detail",
    "title",
    "message",
    "clientVisibleErrorMessage",
    "details",
)


def error_text(error: Any) -> str:
    """Return the first wording found in an error, which Cursor nests in many ways; else the whole as JSON."""
    waiting = [parse_nested(error)]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str) and found.strip():
            return shortened(found.strip())
        waiting.extend(inner for word in _ERROR_FIELDS if (inner := mapping(found).get(word)))
    return shortened(compact(parse_nested(error)))
