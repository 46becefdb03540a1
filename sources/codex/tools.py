"""Parse tool calls of Codex in all formats: request and result, event, item. Pure."""

from typing import Any, NamedTuple

from sources.kit import drafts
from sources.kit.contents import content_text
from sources.kit.loose_json import Record, items, mapping, object_in, string, text_at

SHELL, PATCH = "exec", "apply_patch"
# calls whose execution events and items describe better, because one script may run many commands
RUNNERS = (SHELL, PATCH, "shell", "exec_command", "shell_command", "local_shell", "container.exec", "write_stdin")

CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call")
OUTPUTS = ("function_call_output", "custom_tool_call_output", "tool_search_output")


class ToolRun(NamedTuple):
    """A call and its result; `result` is None if there is none yet."""

    call_id: str
    name: str
    params: Any
    result: str | None
    status: str


def requested_call(payload: Record) -> ToolRun:
    """Return a call as the model requested it."""
    kind = string(payload.get("type"))
    name = string(payload.get("name")) or {"local_shell_call": "local_shell"}.get(kind, kind.removesuffix("_call"))
    given = (payload[key] for key in ("arguments", "input", "action") if key in payload)
    call_id = string(payload.get("call_id")) or string(payload.get("id"))
    status = drafts.COMPLETED if payload.get("status") == "completed" and kind == "web_search_call" else drafts.PENDING
    return ToolRun(call_id, name, drafts.params_of(next(given, {})), None, status)


def parse_output(output: object) -> tuple[str, str]:
    """Return result and status of an output: plain text, JSON in a string, blocks, or an object."""
    given = mapping(object_in(output) if isinstance(output, str) else output)
    if "output" in given or "content" in given:
        exit_code = mapping(given.get("metadata")).get("exit_code")
        result = content_text(given.get("output", given.get("content")))
        return result, _status(exit_code, given.get("success"))
    return content_text(output), drafts.COMPLETED


def _status(exit_code: object = None, success: object = None, status: object = None) -> str:
    if string(status).lower() in ("declined", "rejected", "denied"):
        return drafts.REJECTED
    is_failed = exit_code not in (None, 0) or success is False or string(status).lower() == "failed"
    return drafts.FAILED if is_failed else drafts.COMPLETED


def ran_command(given: Record) -> ToolRun:
    """Parse `exec_command_end` or a CommandExecution item."""
    outputs = (given.get(key) for key in ("aggregated_output", "aggregatedOutput", "formatted_output"))
    result = next(filter(None, map(string, outputs)), None)
    if result is None:
        result = "\n".join(filter(None, (string(given.get(key)) for key in ("stdout", "stderr"))))
    params = {key: given[key] for key in ("command", "cwd") if key in given}
    exit_code = given.get("exit_code", given.get("exitCode"))
    return ToolRun(_id(given), SHELL, params, result, _status(exit_code, status=given.get("status")))


def changed_files(given: Record) -> ToolRun:
    """Parse `patch_apply_end` or a FileChange item."""
    changes = given.get("changes")
    paths = list(mapping(changes)) or [text_at(change, "path") for change in items(changes)]
    result = "\n".join(filter(None, (string(given.get(key)) for key in ("stdout", "stderr"))))
    params = {"path": paths, "changes": changes}
    return ToolRun(_id(given), PATCH, params, result, _status(None, given.get("success"), given.get("status")))


def called_server(given: Record) -> ToolRun:
    """Parse `mcp_tool_call_end` or an McpToolCall item."""
    invocation = mapping(given.get("invocation")) or given
    name = ".".join(filter(None, (string(invocation.get(key)) for key in ("server", "tool"))))
    answer = given.get("result")
    failed = mapping(answer).get("Err", given.get("error"))
    success = mapping(mapping(answer).get("Ok", answer))
    result = content_text(failed or success.get("content", answer))
    is_error = bool(failed or success.get("isError") or success.get("is_error"))
    return ToolRun(_id(given), name or "mcp", invocation.get("arguments"), result, _status(success=not is_error))


def searched(given: Record) -> ToolRun:
    """Parse a WebSearch item."""
    return ToolRun(_id(given), "web_search", {"query": given.get("query")}, "", drafts.COMPLETED)


def _id(given: Record) -> str:
    return string(given.get("call_id")) or string(given.get("id"))


EVENTS = {"exec_command_end": ran_command, "patch_apply_end": changed_files, "mcp_tool_call_end": called_server}
ITEMS = {
    "CommandExecution": ran_command,
    "FileChange": changed_files,
    "McpToolCall": called_server,
    "WebSearch": searched,
}
