"""The resources: the channels as documents to attach to a chat. Read-only, through operations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from mcp import MCPError
from mcp.server import MCPServer
from mcp.server.mcpserver import Context, ResourceSecurity
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS

from mcp_server.envelope import client_name
from orchestrator.lazy import RunOperation
from orchestrator.requests.calls import QUOTED, source_of
from orchestrator.requests.queries import ExtractQuery, FetchQuery, ListQuery
from orchestrator.requests.shapes import ExtractRequest, FetchRequest, ListRequest, Request
from registry.errors import ErrorCode
from registry.text.privacy.hidden_characters import shown, visible

CHANNELS = "registry://channels"
JSON = "application/json"
SHOWN = ("channel", "title", "nickname", "tags", "source", "project_name", "message_count", "updated_at")
MOST_CHANNELS = 100
MOST_MESSAGES = 100

# A channel's name is looked up in the registry, never opened as a file.
FREE_NAMES = ResourceSecurity(exempt_params={"channel"})


def add_resources(server: MCPServer[Any], run: RunOperation) -> None:
    """Publish the resources."""

    @server.resource(CHANNELS, name="channels", title="Channels", mime_type=JSON)
    async def channels() -> str:
        """The latest conversations, and the resource of each."""
        query = ListQuery(limit=MOST_CHANNELS)
        outcome = _succeeded(await run(ListRequest(query=query, source=source_of(None, None)), None))
        found = [
            {**{name: item[name] for name in SHOWN}, "uri": uri_of(item["channel"])} for item in outcome["sessions"]
        ]
        return _json({"channels": found, "total": outcome["pagination"]["total"]})

    @server.resource(CHANNELS + "/{channel}", name="channel", title="A channel", mime_type=JSON, security=FREE_NAMES)
    async def channel(channel: str, ctx: Context) -> str:
        """A conversation's last messages, what tools said shortened."""
        query = FetchQuery(session_id=channel, message_limit=MOST_MESSAGES, is_folded=True)
        outcome = await _asked(ctx, FetchRequest(query=query, source=_source(ctx)))
        return _json({"quoted": QUOTED, "session": outcome["session"], "messages": outcome["messages"]})

    @server.resource(CHANNELS + "/{channel}/summary", name="summary", title="A channel's summary", security=FREE_NAMES)
    async def summary(channel: str, ctx: Context) -> str:
        """A conversation in short: what was asked, decided and changed, and what is open."""
        query = ExtractQuery(mode="summary", limit=1000)
        outcome = await _asked(ctx, ExtractRequest(channel=channel, query=query, source=_source(ctx)))
        return f"{QUOTED}\n\n{visible(str(outcome['summary']))}"

    async def _asked(ctx: Context, request: Request) -> Mapping[str, Any]:
        return _succeeded(await run(request, client_name(ctx)))

    def _source(ctx: Context) -> str:
        return source_of(None, client_name(ctx))


def uri_of(channel: str) -> str:
    """A channel's resource; names are free-form."""
    return f"{CHANNELS}/{quote(channel, safe='')}"


def _succeeded(outcome: Mapping[str, Any]) -> Mapping[str, Any]:
    """The outcome; a failure becomes the protocol's error, for a resource has no envelope."""
    if outcome["success"]:
        return outcome
    error = outcome["error"]
    said = f"{error['code']}: {error['message']} {error['details']}".strip()
    if error["code"] == ErrorCode.NOT_FOUND:
        raise ResourceNotFoundError(said)
    raise MCPError(INVALID_PARAMS if error["code"] == ErrorCode.INVALID_REQUEST else INTERNAL_ERROR, said)


def _json(value: Any) -> str:
    return json.dumps(shown(value, keeps_nulls=True), ensure_ascii=False, separators=(",", ":"))
