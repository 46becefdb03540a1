"""The tools: what an AI is told of each, and how its arguments become one operation and its answer a result."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, ToolAnnotations
from pydantic import BaseModel, Field

from mcp_server.envelope import Envelope, reply
from mcp_server.identity import client_name
from orchestrator.calls import source_of
from orchestrator.lazy import RunOperation
from orchestrator.requests import ChannelName, ExtractQuery, ExtractRequest, LogRequest, MessageIn, Meta

INSTRUCTIONS = """\
Context Registry keeps the user's conversations with every AI client, by channel, and gives them back.
After each turn call conversation_log with the whole conversation of this chat and always the same channel.
When the user refers to a past or other conversation ("continue the fibonacci conversation", "what did we \
decide in Cursor yesterday?"), call extract; leave out the channel unless you know it.
Never use these tools to read the current chat: you already have it."""

LOG = """\
Save this chat to the user's Context Registry so that other AI clients can continue it. Call it after every \
turn, with all messages of the chat so far and the same channel each time; what is saved already is recognised, \
so sending it again is right. Name the channel once per chat: {source}_session_{YYYYMMDD_HHMM}."""

EXTRACT = """\
Get the relevant part of a PAST or OTHER conversation, also one held in another AI client. Use it when the user \
wants to continue, recall or reuse earlier work ("continue the fibonacci conversation", "지난번 인증 대화 이어서"). \
Not for the current chat, which you already have. Put the user's own words into query.text. Without a channel the \
best one is found and named in the result, others it might have been in candidates. NOT_FOUND means that nothing \
relevant is kept: say so, do not guess."""


class Logged(BaseModel):
    """What was saved."""

    stored_ids: list[str] = Field(description="one per message sent, in order")
    channel: str
    message_count: int = Field(description="messages sent")
    timestamp: str
    new_count: int
    duplicate_count: int


class ExtractedMessage(BaseModel):
    """One message."""

    role: str
    text: str
    timestamp: str
    context: dict[str, Any] | None = None
    id: str


class ExtractMetadata(BaseModel):
    """About the channel and this answer."""

    total_messages: int
    filtered_messages: int
    last_activity: str
    next_cursor: str | None = Field(None, description="there is more: pass it as query.cursor")


class OtherChannel(BaseModel):
    """A channel the user may have meant instead."""

    channel: str
    title: str
    project: str
    last_activity: str


class Extracted(BaseModel):
    """The messages that answer, oldest first."""

    channel: str
    messages: list[ExtractedMessage]
    metadata: ExtractMetadata
    summary: str | None = None
    candidates: list[OtherChannel] | None = None


def add_channel_tools(server: MCPServer[Any], run: RunOperation) -> None:
    """Publish the tools; each call runs one operation."""

    @server.tool(
        title="Save this conversation",
        description=LOG,
        annotations=ToolAnnotations(
            read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    )
    async def conversation_log(
        channel: ChannelName,
        messages: Annotated[list[MessageIn], Field(min_length=1)],
        ctx: Context[Any, Any],
        meta: Meta | None = None,
    ) -> Annotated[CallToolResult, Envelope[Logged]]:
        client = client_name(ctx)
        known = meta or Meta()
        source = source_of(known.source, client, channel)
        request = LogRequest(channel=channel, messages=messages, source=source, metadata=known)
        return reply("conversation_log", await run(request, client))

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
        meta: Annotated[dict[str, Any] | None, Field(description="source: the client that asks")] = None,
    ) -> Annotated[CallToolResult, Envelope[Extracted]]:
        client = client_name(ctx)
        known = Meta.model_validate(meta or {})
        source = source_of(known.source, client, channel)
        request = ExtractRequest(channel=channel, query=query or ExtractQuery(), source=source, metadata=known)
        return reply("extract", await run(request, client))
