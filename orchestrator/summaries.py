"""Requests and results as an execution keeps them: counts and ids, never the texts of messages. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.recorder import KEPT_ITEMS
from orchestrator.requests import HeardRequest, ImportRequest, LogRequest, Request


def request_summary(request: Request) -> dict[str, Any]:
    """What was asked."""
    if isinstance(request, LogRequest):
        return {
            "channel": request.channel,
            "messages": len(request.messages),
            "characters": sum(len(message.text) for message in request.messages),
        }
    if isinstance(request, HeardRequest):
        return {"session_id": request.session.session_id, "messages": len(request.session.messages)}
    if isinstance(request, ImportRequest):
        return {
            "store": request.store,
            "sessions": len(request.found),
            "messages": sum(len(found.session.messages) for found in request.found),
        }
    return request.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"metadata", "source"})


def result_summary(result: Mapping[str, Any]) -> dict[str, Any]:
    """What was answered."""
    return {key: _ids(value) if key == "messages" else _short(value) for key, value in result.items() if value}


def _ids(messages: list[dict[str, Any]]) -> list[str]:
    return [message["id"] for message in messages[:KEPT_ITEMS]]


def _short(value: Any) -> Any:
    match value:
        case list():
            return len(value) if value and not isinstance(value[0], str) else value[:KEPT_ITEMS]
        case dict():
            return {key: item for key, item in value.items() if key != "text" and not isinstance(item, dict)}
    return value
