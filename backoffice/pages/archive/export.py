"""A conversation as a file: Markdown and HTML to read, JSON to go on with."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from io import BytesIO
from typing import Any, NamedTuple
from urllib.parse import quote
from zipfile import ZIP_DEFLATED, ZipFile

from fastapi.responses import Response

from orchestrator.export.texts import export

Session = Mapping[str, Any]
Messages = Sequence[Mapping[str, Any]]


class Format(NamedTuple):
    """How a conversation is written, and what such a file is called."""

    write: Callable[[Session, Messages], str | bytes]
    ending: str
    media_type: str


def as_file(kind: str, session: Session, messages: Messages) -> Response:
    """The conversation as a download, `kind` one of FORMATS."""
    wanted = FORMATS[kind]
    name = quote(f"{session['channel']}.{wanted.ending}", safe="")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}", "X-Content-Type-Options": "nosniff"}
    return Response(wanted.write(session, messages), media_type=wanted.media_type, headers=headers)


def as_archive(told: Sequence[tuple[Session, Messages]]) -> Response:
    """Several conversations as Markdown in one ZIP."""
    file = BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for session, messages in told:
            archive.writestr(f"{quote(session['channel'], safe=' ')}.md", markdown_text(session, messages))
    headers = {"Content-Disposition": 'attachment; filename="conversations.zip"'}
    return Response(file.getvalue(), media_type="application/zip", headers=headers)


def markdown_text(session: Session, messages: Messages) -> str:
    """Markdown: a heading for the conversation, one for each message, the texts as they are."""
    return "\n\n".join([*_heading(session), *(_section(message) for message in messages)]) + "\n"


def _heading(session: Session) -> Iterator[str]:
    yield f"# {session['title'] or session['first_message_preview'] or session['channel']}"
    known = {
        "Channel": session["channel"],
        "Source": session["source"],
        "Project": session["project_path"],
        "Tags": ", ".join(session["tags"]),
        "From": session["created_at"],
        "To": session["updated_at"],
    }
    yield "\n".join(f"- {name}: {value}" for name, value in known.items() if value)


def _section(message: Mapping[str, Any]) -> str:
    return f"## {message['role']} · {message['timestamp']}\n\n{message['text']}"


def json_text(session: Session, messages: Messages) -> str:
    """JSON: `{"session": …, "messages": […]}`, as `ctxr show --json` has it."""
    return json.dumps({"session": session, "messages": messages}, ensure_ascii=False, indent=2)


FORMATS = {
    "markdown": Format(markdown_text, "md", "text/markdown; charset=utf-8"),
    "html": Format(partial(export, "html"), "html", "text/html; charset=utf-8"),
    "json": Format(json_text, "json", "application/json"),
    "pdf": Format(partial(export, "pdf"), "pdf", "application/pdf"),
}
