"""The history tools: past sessions listed, searched, read and named. A channel is a session."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, ToolAnnotations
from pydantic import BaseModel, BeforeValidator, Field

from mcp_server.envelope import Envelope, client_name, reply
from orchestrator.lazy import RunOperation
from orchestrator.requests.calls import as_sessions, looked_in, project_of, source_of
from orchestrator.requests.field_types import EndInstant, Instant, Limit, Offset, Tags
from orchestrator.requests.queries import BlameQuery, FetchQuery, ListQuery, TagQuery
from orchestrator.requests.shapes import BlameRequest, FetchRequest, ListRequest, TagRequest

FETCHED_TOKENS = 6000
"""What is given of a session at once, unless the client asks for another size."""

FROM_START = "start"
"""The cursor of a session's first page."""

WHOLE_TOKENS = 1_000_000
"""A message that is asked for by its id is as long as the client lets through, unless another size is asked for."""

MOST_TRACED = 100
"""Conversations in which a line or a commit came about: beyond these evidence is thin."""

READING = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
NAMING = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)

PROJECT = "current (this client's folder), all, or a folder's path or name"
SESSION_ID = "id or its unique beginning, channel, nickname, or #3 for the third latest"
WHEN = "ISO 8601 or words: yesterday, 7d, last week, 지난주"


def _as_word(given: object) -> object:
    """A bare number is a place in the list of sessions, too."""
    return str(given) if isinstance(given, int) else given


ProjectName = Annotated[str, Field(description=PROJECT)]
Since = Annotated[Instant, Field(description=WHEN)]
SessionId = Annotated[
    str,
    BeforeValidator(_as_word, json_schema_input_type=str),
    Field(min_length=1, max_length=300, description=SESSION_ID),
]


class Pagination(BaseModel):
    """The position of this page; next_offset if the client lets no more through."""

    total: int
    limit: int
    offset: int
    has_more: bool


class Sessions(BaseModel):
    """Sessions, latest activity first; each also has title, nickname, tags, project, first_message_preview."""

    sessions: list[dict[str, Any]]
    pagination: Pagination
    project: str
    note: str | None = None
    elsewhere: dict[str, Any] | None = None


class SessionDetail(BaseModel):
    """A session and its messages, oldest first."""

    quoted: str
    session: dict[str, Any]
    messages: list[dict[str, Any]]
    next_cursor: str | None = None


class SessionNamed(BaseModel):
    """The session as it is called now."""

    session: dict[str, Any]


class HistoryTools:
    """The history tools. `project`: the server's folder, if known."""

    def __init__(self, run: RunOperation, project: str | None) -> None:
        self._run, self._project = run, project

    async def list_sessions(
        self,
        ctx: Context[Any, Any],
        limit: Limit = 20,
        offset: Offset = 0,
        project: ProjectName = "current",
        source: str | None = None,
        tag: str | None = None,
        tagged_only: bool = False,
        since: Since | None = None,
        until: EndInstant | None = None,
        file: Annotated[str | None, Field(min_length=1, description="path or path:line")] = None,
        commit: Annotated[str | None, Field(min_length=1)] = None,
    ) -> Annotated[CallToolResult, Envelope[Sessions]]:
        if file or commit:
            return await self._came_about(file, commit, limit, project, ctx)
        query = ListQuery(
            limit=limit, offset=offset, source=source, tag=tag, tagged_only=tagged_only, since=since, until=until
        )
        return await self._listed("list_sessions", query, project, ctx)

    async def _came_about(
        self, file: str | None, commit: str | None, limit: int, project: str, ctx: Context[Any, Any]
    ) -> CallToolResult:
        """The best first, each with how sure it is and the commit."""
        client, folder = client_name(ctx), project_of(project, self._project) or self._project or "."
        query = BlameQuery(file=file, commit=commit, folder=folder, limit=min(limit, MOST_TRACED))
        outcome = await self._run(BlameRequest(query=query, source=source_of(None, client)), client)
        return reply("list_sessions", {**as_sessions(outcome), **looked_in(project, self._project)})

    async def _listed(self, tool: str, query: ListQuery, asked: str, ctx: Context[Any, Any]) -> CallToolResult:
        client = client_name(ctx)
        within = query.model_copy(update={"project": project_of(asked, self._project), "is_sized": True})
        outcome = await self._run(ListRequest(query=within, source=source_of(None, client)), client)
        return reply(tool, {**outcome, **looked_in(asked, self._project)})

    async def fetch_session_by_id(
        self,
        ctx: Context[Any, Any],
        session_id: SessionId,
        message_limit: Limit = 50,
        before: Annotated[int | None, Field(ge=1)] = None,
        message_id: Annotated[str | None, Field(min_length=1)] = None,
        cursor: Annotated[str | None, Field(min_length=1)] = None,
        max_tokens: Annotated[int, Field(ge=1)] = FETCHED_TOKENS,
    ) -> Annotated[CallToolResult, Envelope[SessionDetail]]:
        is_complete = cursor is not None and message_id is None
        if max_tokens == FETCHED_TOKENS and message_id:
            max_tokens = WHOLE_TOKENS
        query = FetchQuery(
            session_id=session_id,
            message_limit=None if is_complete else message_limit,
            before=before,
            message_id=message_id,
            cursor="" if cursor == FROM_START else cursor,
            max_tokens=max_tokens,
            is_folded=not is_complete,
        )
        client = client_name(ctx)
        outcome = await self._run(FetchRequest(query=query, source=source_of(None, client)), client)
        return reply("fetch_session_by_id", outcome)

    async def tag_current_session(
        self,
        ctx: Context[Any, Any],
        nickname: Annotated[str | None, Field(min_length=1, max_length=100)] = None,
        tags: Tags | None = None,
        session_id: SessionId | None = None,
    ) -> Annotated[CallToolResult, Envelope[SessionNamed]]:
        client = client_name(ctx)
        source = source_of(None, client)
        given = {"nickname": nickname} if nickname is not None else {}
        request = TagRequest(channel=session_id, query=TagQuery(add_tags=tags or [], **given), source=source)
        return reply("tag_current_session", await self._run(request, client))

    def declared(self) -> Iterable[tuple[Callable[..., Any], str, ToolAnnotations, str]]:
        """Each tool with its title, its hints, and what an AI is told of it."""
        return (
            (
                self.list_sessions,
                "List past sessions",
                READING,
                "List the user's PAST conversations with any AI client, latest first. Use it for 'what have I "
                "been working on?' or 'what did I do yesterday?'. With file or commit (git): those in which it came "
                "about. Not for the current chat.",
            ),
            (
                self.fetch_session_by_id,
                "Read a past session",
                READING,
                "Load a PAST session, quoted, by its id when the user names one or search_sessions found it. "
                "Gives its last messages; for older ones pass the first sequence as before. One with full_length is "
                "shortened: pass its id as message_id, next_cursor as cursor.",
            ),
            (
                self.tag_current_session,
                "Name this session",
                NAMING,
                "Give a session a nickname and more tags, so that the user can ask for it by name ('tag this "
                "as auth-design'). For the current chat pass the channel you log it to as session_id.",
            ),
        )


def add_history_tools(server: MCPServer[Any], run: RunOperation, project: str | None) -> None:
    """Publish the tools. `project`: the folder this server works in, where it is known."""
    for tool, title, hints, description in HistoryTools(run, project).declared():
        server.add_tool(tool, title=title, annotations=hints, description=description)
