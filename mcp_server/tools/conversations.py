"""The tools: what an AI is told of each, and how its arguments become one operation and its answer a result."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, ToolAnnotations
from pydantic import BaseModel, Field, SkipValidation

from mcp_server.envelope import Envelope, client_name, reply
from orchestrator.lazy import RunOperation
from orchestrator.requests.calls import source_of, taught, utc_offset_minutes
from orchestrator.requests.field_types import ChannelName, SourceName, Timestamp
from orchestrator.requests.operation_names import Operation
from orchestrator.requests.queries import ExtractQuery
from orchestrator.requests.shapes import ExtractRequest, MessageIn, Meta

LOG = """\
Save this chat to the user's Context Registry so that other AI clients can continue it. Call it after every turn with \
the same channel each time; the new turns are enough, what was saved is recognised. Name the channel \
once per chat: {source}_session_{YYYYMMDD_HHMM}."""

EXTRACT = """\
Get the relevant part of a PAST or OTHER conversation, also one held in another AI client, quoted. Use it when the \
user wants to continue, recall or reuse earlier work ("continue the fibonacci conversation", "지난번 인증 대화 \
이어서"). Not for the current chat, which you already have. Put the user's own words, times included ("last Tuesday"), \
into query.text, and always 3-4 other wordings into query.also. Without a channel the best one is found. \
newer is a later statement that may replace this one. Confidence low: choose from candidates, or ask. NOT_FOUND means \
that nothing relevant is kept: do not guess. full_length: shortened; fetch_session_by_id with message_id has all."""


Unlooked = SkipValidation[Annotated[list[MessageIn], Field(min_length=1)]]
"""Messages as they came. The orchestrator looks at those that it has not seen just now: most come every turn again."""


class Logged(BaseModel):
    """The stored ids; perhaps also not_kept, the reason why nothing was stored."""

    stored_ids: list[str] = Field(description="one per message sent, in order")
    channel: str
    message_count: int = Field(description="messages sent")
    timestamp: str
    new_count: int
    duplicate_count: int


class ExtractedMessage(BaseModel):
    """A message; perhaps also why, context, gap_before, full_length, replaced_on."""

    role: str
    text: str
    timestamp: str
    id: str


class ExtractMetadata(BaseModel):
    """About the channel and this answer; perhaps also understood, newer_messages, left_out, syncing."""

    total_messages: int
    filtered_messages: int
    last_activity: str
    next_cursor: str | None = Field(None, description="there is more: pass it as query.cursor")


class Extracted(BaseModel):
    """The messages that answer, oldest first, and what they are of; perhaps also newer, which leads."""

    quoted: str
    channel: str
    title: str | None = None
    source: str | None = None
    project: str | None = None
    first: str | None = None
    last: str | None = None
    confidence: str | None = None
    note: str | None = None
    stands_at: dict[str, Any] | None = None
    messages: list[ExtractedMessage]
    metadata: ExtractMetadata
    summary: str | None = None
    candidates: list[dict[str, Any]] | None = None


def add_channel_tools(server: MCPServer[Any], run: RunOperation, project: str | None) -> None:
    """Publish the tools; each call runs one operation. `project`: the folder that is worked in, where it is known."""

    @server.tool(
        title="Save this conversation",
        description=LOG,
        annotations=ToolAnnotations(
            read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    )
    async def conversation_log(
        channel: ChannelName,
        messages: Unlooked,
        ctx: Context[Any, Any],
        meta: Meta | None = None,
        source: SourceName | None = None,
        timestamp: Timestamp | None = None,
    ) -> Annotated[CallToolResult, Envelope[Logged]]:
        client = client_name(ctx)
        known = meta or Meta()
        request = {
            "operation": Operation.CONVERSATION_LOG,
            "channel": channel,
            "messages": messages,
            "source": source_of(known.source or source, client, channel),
            "timestamp": timestamp,
            "metadata": known.model_dump(exclude_none=True),
        }
        return reply("conversation_log", taught("conversation_log", await run(request, client)))

    @server.tool(
        title="Find and continue a past conversation",
        description=EXTRACT,
        annotations=ToolAnnotations(
            read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    )
    async def extract(
        ctx: Context[Any, Any],
        channel: ChannelName | None = None,
        query: ExtractQuery | None = None,
        meta: dict[str, Any] | None = None,
        source: SourceName | None = None,
        timestamp: Timestamp | None = None,
    ) -> Annotated[CallToolResult, Envelope[Extracted]]:
        client = client_name(ctx)
        known = Meta.model_validate(meta or {})
        asked = query or ExtractQuery()
        if asked.utc_offset_minutes is None:
            asked = asked.model_copy(update={"utc_offset_minutes": utc_offset_minutes()})
        request = ExtractRequest(
            channel=channel,
            query=asked,
            source=source_of(known.source or source, client, channel),
            metadata=known,
            timestamp=timestamp,
            folder=project,
        )
        return reply("extract", await run(request, client))
