"""The tools' calls as operations, for every door alike: arguments to request, who asks and where, outcome to result.

Light to import: an MCP server needs it before it opens a registry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from orchestrator.requests import Operation, Refusal
from registry.errors import InvalidRequest
from sources.clients import CLIENTS


def as_request(tool: str, arguments: Mapping[str, Any], client: str | None = None) -> dict[str, Any]:
    """A tool's arguments, unchecked, as a request; what is wrong in them the orchestrator will say."""
    request = {name: value for name, value in arguments.items() if name != "meta" or value is not None}
    meta, channel = request.get("meta"), request.get("channel")
    given = meta.get("source") if isinstance(meta, dict) else None
    source = source_of(given if isinstance(given, str) else None, client, channel if isinstance(channel, str) else None)
    return {**request, "operation": tool, "source": source}


def refusal(tool: str, error: InvalidRequest, client: str | None = None) -> Refusal:
    """A call of a tool whose arguments are no request."""
    return Refusal(OPERATIONS[tool], source_of(None, client), error)


def log_result(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """conversation_log's result."""
    return {name: outcome[name] for name in outcome if name != "success"}


def extract_result(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """extract's result: what is empty is left out."""
    counts = outcome["metadata"]
    metadata = {
        "total_messages": counts["total_count"],
        "filtered_messages": counts["filtered_count"],
        "last_activity": counts["last_activity"],
    }
    if "next_cursor" in counts:
        metadata["next_cursor"] = counts["next_cursor"]
    more = {name: outcome[name] for name in ("summary", "candidates") if outcome.get(name)}
    return {"channel": outcome["channel"], "messages": outcome["messages"], "metadata": metadata, **more}


def sessions_result(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a tool that lists sessions; `project` says where it looked."""
    return {name: outcome[name] for name in ("sessions", "pagination", "project")}


def search_result(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """search_sessions' result; `understood` says how the query was read."""
    return {name: outcome[name] for name in ("sessions", "pagination", "project", "understood")}


def session_result(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a tool that reads one session."""
    return {name: outcome[name] for name in ("session", "messages")}


def named_result(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """tag_current_session's result."""
    return {"session": outcome["channel"]}


def export_result(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """export_session's result: the document, or the file it was written to."""
    about = {"session_id": outcome["session"]["session_id"], "format": outcome["format"]}
    return about | {name: outcome[name] for name in ("text", "path") if name in outcome}


OPERATIONS = {
    "conversation_log": Operation.CONVERSATION_LOG,
    "extract": Operation.EXTRACT,
    "list_sessions": Operation.LIST,
    "search_sessions": Operation.SEARCH_SESSIONS,
    "list_recent_sessions": Operation.LIST,
    "find_sessions_by_tag": Operation.LIST,
    "fetch_session_by_id": Operation.FETCH,
    "fetch_session_by_nickname": Operation.FETCH,
    "get_session_detail": Operation.FETCH,
    "tag_current_session": Operation.TAG,
    "export_session": Operation.FETCH,
}
"""The operation that each tool runs, and as which a call with wrong arguments is recorded."""

RESULTS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "conversation_log": log_result,
    "extract": extract_result,
    "list_sessions": sessions_result,
    "search_sessions": search_result,
    "list_recent_sessions": sessions_result,
    "find_sessions_by_tag": sessions_result,
    "fetch_session_by_id": session_result,
    "fetch_session_by_nickname": session_result,
    "get_session_detail": session_result,
    "tag_current_session": named_result,
    "export_session": export_result,
}
"""Of each tool, what it shows of an operation that succeeded."""


_SOURCES = {name: client.source for client in CLIENTS for name in client.handshake}

UNKNOWN = "unknown"

_CHANNEL_PATTERN = re.compile(r"([a-z0-9-]+)_session_")


def source_of(given: str | None, client: str | None, channel: str | None = None) -> str:
    """The source: what the caller says, else its client's name, else the channel's `{source}_session_…`.

    `client` is a name with or without a version behind it: "cursor-vscode 1.0".
    """
    if given:
        return given
    name = (client or "").lower().rpartition(" ")[0] or (client or "").lower()
    if name in _SOURCES:
        return _SOURCES[name]
    named = _CHANNEL_PATTERN.match(channel or "")
    return named[1] if named else re.sub(r"[^a-z0-9]+", "-", name).strip("-")[:64] or UNKNOWN


CURRENT, ALL = "current", "all"


def project_of(asked: str, current: str | None) -> str | None:
    """The folder to look in; None for all. Where the current folder is not known, `current` means all."""
    return {CURRENT: current, ALL: None}.get(asked, asked)


def working_folder() -> str | None:
    """The folder a stdio server was started in, unless that says nothing: the home folder, the root, or none."""
    try:
        here = Path.cwd()
    except OSError:
        return None
    return None if here in (Path.home(), Path(here.anchor)) else str(here)


def utc_offset_minutes() -> int:
    """This machine's clock against UTC, for what `yesterday` means."""
    offset = datetime.now().astimezone().utcoffset() or timedelta()
    return int(offset.total_seconds() // 60)
