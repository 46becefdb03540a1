"""What the first versions of Copilot's command line kept, as events of today (format 1). Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sources.kit import drafts
from sources.kit.jsonl import Record, items, mapping, string


def events_of(history: Record) -> Iterator[Record]:
    """The document of the first versions as events: whole messages of the model's service, without times."""
    yield {"type": "session.start", "data": {key: history.get(key) for key in ("sessionId", "startTime")}}
    for place, message in enumerate(map(mapping, items(history.get("chatMessages")))):
        kind, data = _ROLES.get(string(message.get("role")), _passed_over)(message)
        yield {"type": kind, "id": f"#{place}", "data": data}


def _passed_over(message: Record) -> tuple[str, Record]:
    return "system.message", message


def _answer(message: Record) -> tuple[str, Record]:
    calls = [(mapping(call), mapping(mapping(call).get("function"))) for call in items(message.get("tool_calls"))]
    requests = [{"toolCallId": call.get("id"), **function} for call, function in calls]
    return "assistant.message", {"content": drafts.readable(message.get("content")), "toolRequests": requests}


def _result(message: Record) -> tuple[str, Record]:
    told = {"toolCallId": message.get("tool_call_id"), "success": True}
    return "tool.execution_complete", told | {"result": {"content": message.get("content")}}


_ROLES: dict[str, Callable[[Record], tuple[str, Record]]] = {
    "user": lambda message: ("user.message", {"content": drafts.readable(message.get("content"))}),
    "assistant": _answer,
    "tool": _result,
}
