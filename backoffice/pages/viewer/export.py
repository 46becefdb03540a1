"""Conversations as files to download."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any
from urllib.parse import quote
from zipfile import ZIP_DEFLATED, ZipFile

from fastapi.responses import Response

from orchestrator.export.texts import ENDINGS, ExportFormat, export

Session = Mapping[str, Any]
Messages = Sequence[Mapping[str, Any]]

FORMATS: Mapping[ExportFormat, str] = {
    "markdown": "text/markdown; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "pdf": "application/pdf",
}


def as_file(kind: ExportFormat, session: Session, messages: Messages) -> Response:
    """Return the conversation as a download."""
    name = quote(f"{session['channel']}{ENDINGS[kind]}", safe="")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}", "X-Content-Type-Options": "nosniff"}
    return Response(export(kind, session, messages), media_type=FORMATS[kind], headers=headers)


def as_archive(conversations: Sequence[tuple[Session, Messages]]) -> Response:
    """Return several conversations as Markdown in one ZIP."""
    file = BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for session, messages in conversations:
            archive.writestr(f"{quote(session['channel'], safe=' ')}.md", export("markdown", session, messages))
    headers = {"Content-Disposition": 'attachment; filename="conversations.zip"'}
    return Response(file.getvalue(), media_type="application/zip", headers=headers)
