"""A session as a document: Markdown, JSON or HTML. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from orchestrator.export.code_fences import closed, fence_for
from orchestrator.export.html import FOLDED, as_html
from registry.domain import preview_of

ExportFormat = Literal["markdown", "json", "html"]

Item = Mapping[str, Any]

HEAD = (
    "session_id",
    "channel",
    "source",
    "title",
    "nickname",
    "tags",
    "project_path",
    "message_count",
    "created_at",
    "updated_at",
)


def export(to: ExportFormat, session: Item, messages: Sequence[Item]) -> str:
    """The document. `session` and `messages` are what a fetch answers, oldest message first."""
    return _DOCUMENTS[to](session, messages)


def as_json(session: Item, messages: Sequence[Item]) -> str:
    """Session and messages as they are."""
    return json.dumps({"session": session, "messages": messages}, ensure_ascii=False, indent=2) + "\n"


def as_markdown(session: Item, messages: Sequence[Item]) -> str:
    """A head in YAML, then a section for each turn: texts word for word, what tools and thinking said folded."""
    title = session["title"] or session["first_message_preview"] or session["channel"]
    parts = [_head(session), f"# {' '.join(title.split())}"]
    turn = 0
    for message in messages:
        if message["role"] == "user" or turn == 0:
            turn += 1
            parts.append(f"## {turn} · {message['timestamp'][:16].replace('T', ' ')} UTC")
        parts.append(_folded(message) if message["role"] in FOLDED else _said(message))
    return "\n\n".join(parts) + "\n"


def _head(session: Item) -> str:
    """JSON values are YAML values."""
    known = [f"{name}: {json.dumps(session[name], ensure_ascii=False)}" for name in HEAD if session[name]]
    return "\n".join(["---", *known, "---"])


def _said(message: Item) -> str:
    return f"**{message['role'].capitalize()}**\n\n{closed(message['text'])}"


def _folded(message: Item) -> str:
    text = message["text"]
    fence = fence_for(text)
    summary = _escaped(preview_of(text, 80))
    return (
        f"<details>\n<summary>{message['role'].capitalize()}: {summary}</summary>\n\n"
        f"{fence}text\n{text}\n{fence}\n\n</details>"
    )


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_DOCUMENTS: dict[str, Callable[[Item, Sequence[Item]], str]] = {
    "markdown": as_markdown,
    "json": as_json,
    "html": as_html,
}
