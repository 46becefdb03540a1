"""Resources: channels as documents that can be attached to a chat, and the page of the MCP App."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from mcp import MCPError, types
from mcp.server.apps import APP_MIME_TYPE

from mcp_server.envelope import APP, Context, client_name, in_local_time
from orchestrator.lazy import RunOperation
from orchestrator.requests.calls import QUOTED, source_of
from registry.domain import as_json
from registry.errors import ErrorCode
from registry.text.privacy.hidden_characters import shown, visible

CHANNELS = "registry://channels"
JSON = "application/json"
TEXT = "text/plain"


async def list_resources(_ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    about = "The latest conversations, and the resource of each."
    channels = types.Resource(uri=CHANNELS, name="channels", title="Channels", description=about, mime_type=JSON)
    return types.ListResourcesResult(resources=[channels])


async def list_templates(_ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListResourceTemplatesResult:
    channel = types.ResourceTemplate(
        uri_template=f"{CHANNELS}/{{channel}}",
        name="channel",
        title="A channel",
        description="A conversation's last messages, with tool output shortened.",
        mime_type=JSON,
    )
    summary = types.ResourceTemplate(
        uri_template=f"{CHANNELS}/{{channel}}/summary",
        name="summary",
        title="A channel's summary",
        description="A summary of a conversation: what was asked, decided and changed, and what is open.",
        mime_type=TEXT,
    )
    return types.ListResourceTemplatesResult(resource_templates=[channel, summary])


async def read_resource(
    run: RunOperation, ctx: Context, params: types.ReadResourceRequestParams
) -> types.ReadResourceResult:
    uri, kind, ask = str(params.uri), JSON, partial(_run, run, client_name(ctx))
    match uri.removeprefix(CHANNELS).split("/"):
        case _ if uri == APP:
            kind, text = APP_MIME_TYPE, Path(__file__).with_name("answer.html").read_text(encoding="utf-8")
        case [""] if uri == CHANNELS:
            outcome = await ask({"operation": "list", "query": {"limit": 100}})
            found = [
                {**{name: item[name] for name in _LISTED}, "uri": uri_of(item["channel"])}
                for item in outcome["sessions"]
            ]
            text = _json({"channels": found, "total": outcome["pagination"]["total"]})
        case ["", name]:
            query: dict[str, Any] = {"session_id": unquote(name), "message_limit": 100, "is_folded": True}
            outcome = await ask({"operation": "fetch", "query": query})
            text = _json({"quoted": QUOTED, "session": outcome["session"], "messages": outcome["messages"]})
        case ["", name, "summary"]:
            query = {"mode": "summary", "limit": 1000}
            outcome = await ask({"operation": "extract", "channel": unquote(name), "query": query})
            kind, text = TEXT, f"{QUOTED}\n\n{visible(str(outcome['summary']))}"
        case _:
            raise MCPError(types.INVALID_PARAMS, f"Unknown resource: {uri}", data={"uri": uri})
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=kind, text=text)])


_LISTED = ("channel", "title", "nickname", "tags", "source", "project_name", "message_count", "updated_at")


async def _run(run: RunOperation, client: str | None, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Run an operation; convert a failure to an error of the protocol, because resources have no envelope."""
    outcome = await run({**request, "source": source_of(None, client)}, client)
    if outcome["success"]:
        return outcome
    error = outcome["error"]
    is_callers = error["code"] in (ErrorCode.NOT_FOUND, ErrorCode.INVALID_REQUEST)
    reason = ". ".join(part.rstrip(".") for part in (error["message"], error["details"]) if part)
    text = f"{error['code']}: {reason}."
    raise MCPError(types.INVALID_PARAMS if is_callers else types.INTERNAL_ERROR, text)


def uri_of(channel: str) -> str:
    """Return the URI of a channel; its name may contain any character."""
    return f"{CHANNELS}/{quote(channel, safe='')}"


def _json(value: Any) -> str:
    return as_json(in_local_time(shown(value, keeps_nulls=True)))
