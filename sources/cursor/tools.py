"""A tool call of Cursor as a message: call and result share one bubble. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from registry.domain import Message, Role
from sources.kit.drafts import COMPLETED, FAILED, PENDING, REJECTED, shortened
from sources.kit.jsonl import mapping, string
from sources.kit.loose_json import compact, inside, number, unfolded

CANCELLED = "cancelled"
_STATUS = {
    **{"completed": COMPLETED, "error": FAILED, "cancelled": CANCELLED},
    **dict.fromkeys(("started", "loading", "running"), PENDING),
}
# What of its parameters says in a few words what a call does, what says most first.
_SAYING_MOST = (
    *("command", "query", "searchTerm", "search_term", "pattern", "globPattern", "glob_pattern", "regex", "url"),
    *("targetFile", "target_file", "relativeWorkspacePath", "file_path", "filePath", "effectiveUri", "path"),
    *("targetDirectory", "directoryPath", "description", "prompt", "question"),
)
_SHOWN_OF_RESULT = ("output", "contents", "content", "text", "stdout", "diff", "message")
_LONGEST_SUBJECT = 300
_LONGEST_ERROR = 4000
_VERSION = re.compile(r"_v\d+$")


def is_tool_call(bubble: Mapping[str, Any]) -> bool:
    """Whether a bubble holds a tool call; many others carry an empty `toolFormerData`."""
    call = mapping(bubble.get("toolFormerData"))
    return any(call.get(key) for key in ("name", "toolCallId", "rawArgs", "params", "result"))


def tool_message(call: Mapping[str, Any]) -> Message:
    """The call in words, such as `run_terminal_command: npm test` and the result below it.

    A long result is shortened in the text. `more["tool"]` has all of it: name, params, result, status, and where
    there are any `id`, `error`, `decision`.
    """
    tool = _tool(call)
    lines = (_headline(tool), _result_text(tool["result"]), *_outcome(tool))
    return Message(Role.TOOL, "\n".join(filter(None, lines)), more={"tool": tool})


def _tool(call: Mapping[str, Any]) -> dict[str, Any]:
    params = unfolded(call.get("params"))
    more = {"id": call.get("toolCallId"), "decision": call.get("userDecision"), "error": unfolded(call.get("error"))}
    return {
        "name": string(call.get("name")) or "tool",
        "params": params if params not in (None, "", {}) else unfolded(call.get("rawArgs")),
        "result": unfolded(call.get("result")),
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
    subject = " ".join(_subject(tool["params"])[: 2 * _LONGEST_SUBJECT].split())
    subject = subject if len(subject) <= _LONGEST_SUBJECT else subject[: _LONGEST_SUBJECT - 1] + "…"
    return f"{name}: {subject}" if subject else name


def _subject(params: Any) -> str:
    given = mapping(params)
    most = next(filter(None, (string(given.get(key)) for key in _SAYING_MOST)), "")
    return most or (compact(params) if params not in (None, {}, []) else "")


def _result_text(result: Any) -> str:
    if result in (None, "", {}, []):
        return ""
    shown = (string(mapping(result).get(key)) for key in _SHOWN_OF_RESULT)
    text = (next(filter(None, shown), "") or compact(result)).strip()
    return shortened(text)


def _outcome(tool: Mapping[str, Any]) -> Iterator[str]:
    code = number(inside(tool["result"], "exitCode"))
    if code:
        yield f"(exit code {code:.0f})"
    if tool.get("error"):
        yield f"error: {error_text(tool['error'])}"
    if tool["status"] in (CANCELLED, REJECTED):
        yield f"({tool['status']})"


# The last one is looked at first.
_ERROR_WORDS = (
    "modelVisibleErrorMessage",
    "error",
    "detail",
    "title",
    "message",
    "clientVisibleErrorMessage",
    "details",
)


def error_text(error: Any) -> str:
    """What an error says: its first wording, else all of it; Cursor nests them in many ways."""
    waiting = [unfolded(error)]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str) and found.strip():
            return found.strip()[:_LONGEST_ERROR]
        waiting.extend(inner for word in _ERROR_WORDS if (inner := mapping(found).get(word)))
    return compact(unfolded(error))[:_LONGEST_ERROR]
