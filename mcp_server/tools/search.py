"""search_sessions: past sessions by what was said in them."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import BaseModel, Field

from mcp_server.envelope import Envelope, client_name, reply
from mcp_server.tools.history import READING, Pagination, ProjectName, Since
from orchestrator.lazy import RunOperation
from orchestrator.requests.calls import looked_in, project_of, refusal, source_of, utc_offset_minutes
from orchestrator.requests.field_types import Also, EndInstant, Limit, Offset
from orchestrator.requests.queries import SessionsQuery
from orchestrator.requests.shapes import SessionsRequest
from registry.errors import InvalidRequest

SEARCH = """\
Search PAST conversations with any AI client by what was said in them. Use it for "how did I implement…", "we \
discussed…", "지난번에 얘기한…". Always give other wordings as also. query may hold "a phrase", -word, word*, tag:api, \
source:codex, after:2026-01 and times in words (yesterday, 지난주). Then read one with fetch_session_by_id."""


class SessionsFound(BaseModel):
    """Sessions, best first, each with match_count and up to 3 matches; perhaps also confidence, guess, syncing."""

    quoted: str
    sessions: list[dict[str, Any]]
    pagination: Pagination
    project: str
    note: str | None = None
    understood: dict[str, Any]
    elsewhere: dict[str, Any] | None = None


def add_search_tool(server: MCPServer[Any], run: RunOperation, project: str | None) -> None:
    """Publish the tool. `project`: the folder this server works in, where it is known."""
    server_project = project

    @server.tool(title="Search past sessions", annotations=READING, description=SEARCH)
    async def search_sessions(
        ctx: Context[Any, Any],
        query: Annotated[str, Field(min_length=1, max_length=4000)],
        also: Also | None = None,
        limit: Limit = 10,
        offset: Offset = 0,
        project: ProjectName = "current",
        source: str | None = None,
        tag: str | None = None,
        context_window: Annotated[int, Field(ge=0, le=50)] = 2,
        after_date: Since | None = None,
        before_date: EndInstant | None = None,
        current_session_id: Annotated[str | None, Field(min_length=1, description="only in it")] = None,
        exclude_current: Annotated[bool, Field(description="all but current_session_id")] = False,
        max_tokens: Annotated[int, Field(ge=1)] = 1500,
    ) -> Annotated[CallToolResult, Envelope[SessionsFound]]:
        client = client_name(ctx)
        if exclude_current and current_session_id is None:
            missing = InvalidRequest(
                "Which session to exclude is not known.",
                "current_session_id: missing; allowed: the id or channel of this chat, with exclude_current",
            )
            return reply("search_sessions", await run(refusal("search_sessions", missing, client), client))
        asked = SessionsQuery(
            text=query,
            also=also or [],
            limit=limit,
            offset=offset,
            project=project_of(project, server_project),
            source=source,
            tag=tag,
            context_window=context_window,
            from_=after_date,
            to=before_date,
            exclude_session=current_session_id if exclude_current else None,
            max_tokens=max_tokens,
            utc_offset_minutes=utc_offset_minutes(),
        )
        only = None if exclude_current else current_session_id
        outcome = await run(SessionsRequest(channel=only, query=asked, source=source_of(None, client)), client)
        return reply("search_sessions", {**outcome, **looked_in(project, server_project)})
