"""export_session: a past session as a document."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, ToolAnnotations
from pydantic import BaseModel, Field

from mcp_server.envelope import Envelope, client_name, reply
from mcp_server.tools.history import SessionId
from orchestrator.export.sharing import for_others
from orchestrator.export.texts import ExportFormat, export, write_new_file
from orchestrator.lazy import RunOperation
from orchestrator.requests.calls import refusal, source_of
from orchestrator.requests.queries import FetchQuery
from orchestrator.requests.shapes import FetchRequest
from registry.errors import InvalidRequest, RegistryError

SUFFIXES: dict[ExportFormat, tuple[str, ...]] = {
    "markdown": (".md", ".markdown"),
    "json": (".json",),
    "html": (".html", ".htm"),
    "pdf": (".pdf",),
}
"""Only a document's name may be written to: what is in a session must not become a program or a setting."""


class Exported(BaseModel):
    """The document, or the file it was written to."""

    session_id: str
    format: str
    text: str | None = None
    path: str | None = None


def add_export_tool(server: MCPServer[Any], run: RunOperation, project: str | None, *, is_local: bool) -> None:
    """Publish the tool. `project`: the folder that a relative path starts from, where it is known.

    `is_local`: whoever calls is the user of this machine, and may have files written here.
    """

    @server.tool(
        title="Export a past session",
        annotations=ToolAnnotations(
            read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
        ),
        description="A whole PAST session as a document, to keep or to hand to somebody. With path it is written to "
        "that new file and the path is returned (nothing is ever overwritten); without, you get the text: long. "
        "share takes out secrets, folders, user names and addresses, for others to read.",
    )
    async def export_session(
        ctx: Context[Any, Any],
        session_id: SessionId,
        format: ExportFormat = "markdown",
        path: Annotated[str | None, Field(min_length=1, description="a new file in an existing folder")] = None,
        share: bool = False,
    ) -> Annotated[CallToolResult, Envelope[Exported]]:
        client = client_name(ctx)
        if path and not is_local:
            return reply("export_session", await run(refusal("export_session", _elsewhere(path), client), client))
        outcome = await run(
            FetchRequest(query=FetchQuery(session_id=session_id), source=source_of(None, client)), client
        )
        if not outcome["success"]:
            return reply("export_session", outcome)
        try:
            kept = await asyncio.to_thread(_document, outcome, format, path, share=share)
        except RegistryError as exc:
            return reply("export_session", {"success": False, "error": exc.as_dict()})
        return reply("export_session", {**outcome, "format": format, **kept})

    def _document(outcome: dict[str, Any], to: ExportFormat, path: str | None, *, share: bool) -> dict[str, str]:
        file = document_path(path, to, project) if path else None
        if file is None and to == "pdf":
            raise InvalidRequest("A PDF is no text.", "path: given none; allowed: a new file, .pdf at its end")
        told = outcome["session"], outcome["messages"]
        content = export(to, *(for_others(*told) if share else told))
        return {"path": str(write_new_file(file, content))} if file else {"text": content.decode()}


def _elsewhere(path: str) -> InvalidRequest:
    return InvalidRequest(
        "This server writes no files for others.",
        f"path: given {path!r}; allowed over HTTP: none; leave it out, and the document is the answer's text",
    )


def document_path(given: str, to: ExportFormat, folder: str | None) -> Path:
    """The file that is meant; InvalidRequest if it is no document, or is relative to nothing that is known."""
    path = Path(given).expanduser()
    if path.suffix.lower() not in SUFFIXES[to]:
        raise InvalidRequest(
            "That is no name of a document.", f"path: given {given!r}; allowed: {SUFFIXES[to][0]} at its end"
        )
    if not path.is_absolute() and folder is None:
        raise InvalidRequest("The path is not complete.", f"path: given {given!r}; allowed: an absolute path")
    return Path(folder or "/") / path
