"""The chat panel Cursor had before composers, until early 2025 (formats/cursor-ide.md, 7). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from registry.domain import Message, Role, Session
from sources.cursor.bubbles import attachments_of, bubble_text
from sources.cursor.conversations import first_line
from sources.cursor.times import Span, dated, moment
from sources.kit.jsonl import string
from sources.kit.loose_json import objects

_SPEAKERS = {"user": Role.USER, "ai": Role.ASSISTANT}


def tab_session(tab: Mapping[str, Any], tab_id: str, project: str | None, now: datetime) -> Session:
    """A tab of the panel as a session; only its last message has a time that Cursor stored."""
    messages = list(_messages(objects(tab.get("bubbles"))))
    span = Span(None, moment(tab.get("lastSendTime")), now)
    asked = (first_line(message.text) for message in messages if message.role is Role.USER)
    titles = (string(tab.get("chatTitle")).strip(), *asked)
    title = next(filter(None, titles), "Untitled")
    return Session(session_id=tab_id, messages=dated(messages, span), title=title, project=project)


def _messages(bubbles: Iterable[Mapping[str, Any]]) -> Iterator[Message]:
    for bubble in bubbles:
        role, text = _SPEAKERS.get(string(bubble.get("type"))), bubble_text(bubble)
        if role and text:
            yield Message(role, text, moment(bubble.get("createdAt")), more=_more(bubble, role))


def _more(bubble: Mapping[str, Any], role: Role) -> dict[str, Any]:
    model = string(bubble.get("modelType"))
    more = {
        "native_id": string(bubble.get("id")) or string(bubble.get("bubbleId")),
        "model": model if role is Role.ASSISTANT else "",
        "attachments": attachments_of(bubble),
    }
    return {name: value for name, value in more.items() if value}
