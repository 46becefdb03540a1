"""Store the events of the hooks' spool as conversations.

An interruption neither loses nor repeats events: a file is removed after all its events are stored, and repeated events
are recognised (`registry.ingest.from_hook`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.operations.conversation_log import HookRequest
from orchestrator.sync.spool import take
from registry.domain import Message, Role, Session, now, parse_time
from registry.errors import ErrorCode
from sources.clients import CLIENTS
from sources.kit.drafts import project_of
from sources.kit.loose_json import items, mapping, string
from sources.kit.token_counts import usage_of

if TYPE_CHECKING:
    from orchestrator.service import Orchestrator

CLIENT = "ctxr hook"
_HOOKS = {client.source: client.hooks for client in CLIENTS if client.hooks}
_MESSAGE_FIELDS = {event.lower(): field for hooks in _HOOKS.values() for event, field in hooks.message_fields.items()}
"""Role and text field by event name. One table for all clients, because Cursor also runs hooks of Claude Code."""

_REQUEST_IDS = ("generation_id", "prompt_id", "turn_id")
_TRANSIENT = (ErrorCode.STORAGE_ERROR, ErrorCode.TIMEOUT, ErrorCode.INTERNAL_ERROR)


async def drain(orchestrator: Orchestrator, home: Path) -> bool:
    """Store the spool's events; return False if the registry could not store all: the next call retries.

    Several processes may drain at once; each locks its own files.
    """
    is_complete = True
    for file, events in take(str(home)):
        answers = [
            await orchestrator.run(HookRequest(source=source, session=session), CLIENT)
            for source, session in sessions_of(events)
        ]
        if any(not answer["success"] and answer["error"]["code"] in _TRANSIENT for answer in answers):
            is_complete = False
        else:
            with suppress(OSError):
                os.unlink(file)
    return is_complete


def sessions_of(events: Iterable[Mapping[str, Any]]) -> list[tuple[str, Session]]:
    """Group the events into sessions, each with its source. Pure, except for events without a time."""
    sessions: dict[tuple[str, str], tuple[list[Message], list[str]]] = {}
    for event in events:
        source, payload = string(event.get("source")), mapping(event.get("payload"))
        session_id = string(payload.get("conversation_id")) or string(payload.get("session_id"))
        if not source or not session_id:
            continue
        messages, folders = sessions.setdefault((source[:64], session_id), ([], []))
        messages += _messages(source, string(event.get("event")), payload, _moment(event.get("at")))
        if usage := usage_of(payload, cache_in_input=True):
            _count_tokens(messages, _request_id(payload), usage)
        folders += filter(None, map(string, [*items(payload.get("workspace_roots")), payload.get("cwd")]))
    for messages, _ in sessions.values():
        messages.sort(key=lambda one: one.timestamp or now())
    return [
        (source, Session(session_id, tuple(messages), project=project_of(folders)))
        for (source, session_id), (messages, folders) in sessions.items()
        if messages
    ]


def _count_tokens(messages: list[Message], request: str, usage: Mapping[str, int]) -> None:
    """Add the token counts that Cursor sends at the end of a turn to the turn's last answer."""
    for index in reversed(range(len(messages))):
        message = messages[index]
        if message.role is Role.ASSISTANT and message.more.get("request_id") == request:
            messages[index] = replace(message, more={**message.more, "usage": dict(usage)})
            return


def _request_id(payload: Mapping[str, Any]) -> str:
    return next(filter(None, (string(payload.get(key)) for key in _REQUEST_IDS)), "")


def _messages(source: str, event: str, payload: Mapping[str, Any], at: datetime) -> Iterator[Message]:
    role, field_name = _MESSAGE_FIELDS.get(event.lower(), (None, ""))
    text = string(payload.get(field_name)).strip()
    if role is None or not text or payload.get("agent_id"):  # messages of sub-agents are skipped
        return
    hooks = _HOOKS.get(source)
    for each in hooks.typed(text) if hooks and hooks.typed and role is Role.USER else [text]:
        yield Message(role, each, at, more=_more(role, payload))


def _more(role: Role, payload: Mapping[str, Any]) -> dict[str, Any]:
    attached = [string(mapping(each).get("file_path")) for each in items(payload.get("attachments"))]
    known = {
        "request_id": _request_id(payload),
        "model": "" if role is Role.USER else string(payload.get("model")),
        "attachments": list(filter(None, attached)),
    }
    return {key: value for key, value in known.items() if value}


def _moment(at: object) -> datetime:
    with suppress(TypeError, ValueError, OverflowError, OSError):
        return parse_time(datetime.fromtimestamp(float(at), UTC))  # type: ignore[arg-type]
    return now()
