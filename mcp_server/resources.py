"""The resources: the channels as documents to attach to a chat, read through operations, and the MCP App's page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.server.apps import APP_MIME_TYPE
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from mcp_server.envelope import APP, client_name
from orchestrator.lazy import RunOperation
from orchestrator.requests.calls import QUOTED, source_of
from registry.domain import as_json
from registry.errors import ErrorCode
from registry.text.privacy.hidden_characters import shown, visible

CHANNELS = "registry://channels"
JSON = "application/json"
TEXT = "text/plain"


async def list_resources(_ctx: ServerRequestContext[Any, Any], _: PaginatedRequestParams | None) -> ListResourcesResult:
    """List the fixed resources."""
    about = "The latest conversations, and the resource of each."
    channels = Resource(uri=CHANNELS, name="channels", title="Channels", description=about, mime_type=JSON)
    return ListResourcesResult(resources=[channels])


async def list_templates(
    _ctx: ServerRequestContext[Any, Any], _: PaginatedRequestParams | None
) -> ListResourceTemplatesResult:
    """List the resources of a channel."""
    channel = ResourceTemplate(
        uri_template=f"{CHANNELS}/{{channel}}",
        name="channel",
        title="A channel",
        description="A conversation's last messages, what tools said shortened.",
        mime_type=JSON,
    )
    summary = ResourceTemplate(
        uri_template=f"{CHANNELS}/{{channel}}/summary",
        name="summary",
        title="A channel's summary",
        description="A conversation in short: what was asked, decided and changed, and what is open.",
        mime_type=TEXT,
    )
    return ListResourceTemplatesResult(resource_templates=[channel, summary])


class Resources:
    """Reads the resources over an orchestrator's `run`."""

    def __init__(self, run: RunOperation) -> None:
        self._run = run

    async def read(self, ctx: ServerRequestContext[Any, Any], params: ReadResourceRequestParams) -> ReadResourceResult:
        """Return the list of channels, a channel, or a channel's summary."""
        uri, client = str(params.uri), client_name(ctx)
        kind, text = JSON, ""
        if uri == APP:
            page = Path(__file__).with_name("answer.html").read_text(encoding="utf-8")
            return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=APP_MIME_TYPE, text=page)])
        match uri.removeprefix(CHANNELS).split("/"):
            case [""] if uri == CHANNELS:
                text = await self._channels(client)
            case ["", name]:
                text = await self._channel(unquote(name), client)
            case ["", name, "summary"]:
                kind, text = TEXT, await self._summary(unquote(name), client)
            case _:
                raise MCPError(INVALID_PARAMS, f"Unknown resource: {uri}", data={"uri": uri})
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=kind, text=text)])

    async def _channels(self, client: str | None) -> str:
        shown = ("channel", "title", "nickname", "tags", "source", "project_name", "message_count", "updated_at")
        outcome = await self._ask({"operation": "list", "query": {"limit": 100}}, client)
        found = [
            {**{name: item[name] for name in shown}, "uri": uri_of(item["channel"])} for item in outcome["sessions"]
        ]
        return _json({"channels": found, "total": outcome["pagination"]["total"]})

    async def _channel(self, name: str, client: str | None) -> str:
        query = {"session_id": name, "message_limit": 100, "is_folded": True}
        outcome = await self._ask({"operation": "fetch", "query": query}, client)
        return _json({"quoted": QUOTED, "session": outcome["session"], "messages": outcome["messages"]})

    async def _summary(self, name: str, client: str | None) -> str:
        query = {"mode": "summary", "limit": 1000}
        outcome = await self._ask({"operation": "extract", "channel": name, "query": query}, client)
        return f"{QUOTED}\n\n{visible(str(outcome['summary']))}"

    async def _ask(self, request: Mapping[str, Any], client: str | None) -> Mapping[str, Any]:
        """Return the outcome; a failure becomes the protocol's error, for a resource has no envelope."""
        outcome = await self._run({**request, "source": source_of(None, client)}, client)
        if outcome["success"]:
            return outcome
        error = outcome["error"]
        is_callers = error["code"] in (ErrorCode.NOT_FOUND, ErrorCode.INVALID_REQUEST)
        text = f"{error['code']}: {error['message']} {error['details']}".strip()
        raise MCPError(INVALID_PARAMS if is_callers else INTERNAL_ERROR, text)


def uri_of(channel: str) -> str:
    """Return a channel's resource; names are free-form."""
    return f"{CHANNELS}/{quote(channel, safe='')}"


def _json(value: Any) -> str:
    return as_json(shown(value, keeps_nulls=True))
