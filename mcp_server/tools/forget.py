"""The tool that forgets for good. Off unless the user starts the server with it; a token must be one to administer."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import BaseModel, Field

from mcp_server.envelope import Envelope, client_name, reply
from mcp_server.tools.archive import REPLACING
from mcp_server.tools.history import PROJECT, WHEN
from orchestrator.lazy import RunOperation
from orchestrator.requests.calls import source_of
from orchestrator.requests.field_types import ChannelName, Instant
from orchestrator.requests.queries import DeleteQuery
from orchestrator.requests.shapes import DeleteRequest


class Forgotten(BaseModel):
    """The receipt: its id, when, and how much was forgotten; `backups` still hold it."""

    receipt: dict[str, Any]


def add_forget_tool(server: MCPServer[Any], run: RunOperation) -> None:
    """Publish the tool."""

    @server.tool(
        title="Forget for good",
        annotations=REPLACING,
        description="Erase a message, a whole conversation, a project's conversations, what is older than a time or "
        "what holds some words: it cannot be restored and does not come back. All that is named must hold. Only when "
        "the user asks for exactly that; call it with dry_run first and tell the user how much it would be.",
    )
    async def forget(
        ctx: Context[Any, Any],
        message_id: Annotated[str | None, Field(min_length=1, description="conv_…, snap_…")] = None,
        channel: ChannelName | None = None,
        project: Annotated[str | None, Field(min_length=1, description=PROJECT)] = None,
        before: Annotated[Instant | None, Field(description=WHEN)] = None,
        matching: Annotated[str | None, Field(min_length=1, max_length=4000, description="exactly these words")] = None,
        dry_run: Annotated[bool, Field(description="only say what would be forgotten")] = True,
    ) -> Annotated[CallToolResult, Envelope[Forgotten]]:
        query = DeleteQuery(
            id=message_id, soft=False, project=project, before=before, matching=matching, dry_run=dry_run
        )
        client = client_name(ctx)
        request = DeleteRequest(channel=channel, query=query, source=source_of(None, client))
        return reply("forget", await run(request, client))
