"""The MCP server: the SDK's, with our envelope around every outcome. Nothing is remembered between requests."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial
from importlib.metadata import version
from types import CodeType
from typing import TYPE_CHECKING, Any

from mcp import MCPError
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool as SdkTool
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import INVALID_PARAMS, CallToolResult, GetPromptResult, InputRequiredResult, Tool
from pydantic import ValidationError

from mcp_server.envelope import as_answer, client_name, reply, slim, slim_output
from mcp_server.instructions import instructions_for
from mcp_server.prompts import add_completion, add_prompts
from mcp_server.resources import add_resources
from mcp_server.subscriptions import ChannelBus, add_subscriptions
from mcp_server.tools.archive import add_archive_tools
from mcp_server.tools.conversations import add_channel_tools
from mcp_server.tools.export import add_export_tool
from mcp_server.tools.forget import add_forget_tool
from mcp_server.tools.history import add_history_tools
from mcp_server.tools.search import add_search_tool
from mcp_server.transport.sdk import add_made_tool, tool_named
from orchestrator.lazy import GrownChannels, RunOperation
from orchestrator.requests.calls import TOLD, TOOL_ALIASES, TOOLS, Alias, as_meant, example, refusal
from orchestrator.requests.refusals import invalid_request
from orchestrator.requests.shapes import refuse_too_many
from registry.errors import InternalError, InvalidRequest
from sources.client import SAFE_ROOM, Client

if TYPE_CHECKING:
    from starlette.applications import Starlette

logger = logging.getLogger(__name__)

NAME = "context-registry"

DEFAULT = "default"
SWITCHED_ON = {name: frozenset(tool for tool in TOOLS if TOOLS[tool].toolset == name) for name in ("archive", "admin")}
"""Tools that are published only where the user has switched them on: they copy, move and erase what is stored."""
_ALWAYS = frozenset(TOOLS).difference(*SWITCHED_ON.values())
TOOLSETS: dict[str, frozenset[str]] = {
    DEFAULT: frozenset(tool for tool in TOOLS if TOOLS[tool].toolset == DEFAULT),
    "history": _ALWAYS - {"conversation_log", "extract"},
    "all": _ALWAYS,
    **SWITCHED_ON,
}
"""The tools of each toolset. The default is small: a model reads every description in every conversation."""


def toolsets_named(names: str) -> tuple[str, ...]:
    """The toolsets of a list such as "default,history"; InvalidRequest if it names none, or one that is unknown."""
    given = tuple(name.strip() for name in names.split(",") if name.strip())
    unknown = [name for name in given if name not in TOOLSETS]
    if unknown or not given:
        raise InvalidRequest("No such toolset.", f"toolsets: given {names!r}; allowed: {', '.join(TOOLSETS)}")
    return given


MADE: dict[CodeType, SdkTool] = {}
"""The tools that a server of this process has made: their schemas take a tenth of a second."""


class RegistryServer(MCPServer[Any]):
    """An MCP server whose every tool call ends in our envelope, also one that fails."""

    def __init__(
        self,
        run: RunOperation,
        toolsets: Collection[str],
        project: str | None,
        *,
        is_local: bool,
        grown: GrownChannels | None,
        client: Client | None,
    ) -> None:
        run = partial(run, room=client.room if client else SAFE_ROOM)
        bus = ChannelBus(grown) if grown else None
        super().__init__(
            NAME,
            title="Context Registry",
            version=version(NAME),
            instructions=instructions_for(client),
            log_level="WARNING",
            subscriptions=bus or False,
        )
        self.run_operation = run
        self._unlisted = frozenset(TOOLS).difference(*(TOOLSETS[toolset] for toolset in toolsets))
        self._kept_back: dict[str, Callable[[], None]] = {}
        add_channel_tools(self, run, project)
        add_history_tools(self, run, project)
        add_search_tool(self, run, project)
        add_export_tool(self, run, project, is_local=is_local)
        if "archive" in toolsets:
            add_archive_tools(self, run, is_local=is_local)
        if "admin" in toolsets:
            add_forget_tool(self, run)
        add_prompts(self)
        add_resources(self, run)
        add_completion(self, run)
        if bus and is_local:
            add_subscriptions(self, bus)

    def add_tool(self, fn: Callable[..., Any], *args: Any, **about: Any) -> None:
        """Publish a tool; one that no chosen toolset has waits until it is called: its schemas cost time to make."""
        add = partial(self._add_slim, fn, *args, **about)
        if fn.__name__ in self._unlisted:
            self._kept_back[fn.__name__] = add
        else:
            add()

    def _add_slim(self, fn: Callable[..., Any], *args: Any, **about: Any) -> None:
        if made := MADE.get(fn.__code__):
            add_made_tool(self, made, fn)
            return
        super().add_tool(fn, *args, **about)
        tool = tool_named(self, fn.__name__)
        if tool:
            tool.parameters = {**slim(tool.parameters), "additionalProperties": False}
            if tool.fn_metadata.output_schema:
                tool.fn_metadata.output_schema = slim_output(tool.fn_metadata.output_schema)
            MADE[fn.__code__] = tool

    async def list_tools(self) -> list[Tool]:
        """The tools of the chosen toolsets."""
        return [tool for tool in await super().list_tools() if tool.name not in self._unlisted]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool, in the chosen toolsets or not; there being none of that name is an answer too."""
        if alias := TOOL_ALIASES.get(name):
            return await self._call_alias(name, alias, arguments, context)
        self._kept_back.pop(name, _nothing)()
        tool = tool_named(self, name)
        if tool is None:
            return reply(name, {"success": False, "error": no_such_tool(name).as_dict()})
        if name in TOOLS:  # an application that embeds this server may add tools of its own
            arguments = as_meant(name, arguments)
        allowed = tool.parameters["properties"].keys()
        if unknown := sorted(arguments.keys() - allowed):
            but = {"but": sorted(allowed)}
            problems = [
                {"type": "extra_forbidden", "loc": (field,), "input": arguments[field], "ctx": but} for field in unknown
            ]
            return await self._refuse(name, arguments, problems, context)
        try:
            refuse_too_many(arguments.get("messages"))
        except InvalidRequest as exc:
            client = client_name(context)
            return reply(name, await self.run_operation(refusal(name, exc, client), client))
        try:
            with _reporting(context):
                return await super().call_tool(name, arguments, context)
        except ToolError as exc:
            if isinstance(exc.__cause__, ValidationError):
                return await self._refuse(name, arguments, exc.__cause__.errors(include_url=False), context)
            logger.exception("Tool %s failed", name)
            bug = InternalError("The tool failed inside Context Registry.", "See the server's log")
            return reply(name, {"success": False, "error": bug.as_dict()})

    async def _call_alias(
        self, name: str, alias: Alias, arguments: dict[str, Any], context: Context[Any, Any] | None
    ) -> CallToolResult | InputRequiredResult:
        """Call the tool that goes by this name, too; the answer has the name that was called."""
        if missing := [field for field in alias.required if field not in arguments]:
            problems = [{"type": "missing", "loc": (field,), "input": arguments} for field in missing]
            return await self._refuse(alias.tool, arguments, problems, context)
        answer = await self.call_tool(alias.tool, alias.arguments(arguments), context)
        if isinstance(answer, CallToolResult) and answer.structured_content:
            return as_answer({**answer.structured_content, "tool": name}, is_error=bool(answer.is_error))
        return answer

    async def _refuse(
        self,
        name: str,
        arguments: dict[str, Any],
        problems: Sequence[Mapping[str, Any]],
        context: Context[Any, Any] | None,
    ) -> CallToolResult:
        """The orchestrator refuses, so that this is recorded too."""
        client = client_name(context)
        return reply(
            name, await self.run_operation(refusal(name, invalid_request(problems), client, arguments), client)
        )

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        """A prompt's messages; an unknown name or argument is the caller's mistake (-32602), not a fault of ours."""
        try:
            return await super().get_prompt(name, arguments, context)
        except ValueError as exc:
            raise MCPError(INVALID_PARAMS, str(exc)) from exc


@contextmanager
def _reporting(context: Context[Any, Any] | None) -> Iterator[None]:
    """Meanwhile a client that sent a progress token is told how far its call is."""
    if context is None or "progress_token" not in (context.request_context.meta or {}):
        yield
        return
    before = TOLD.set(context.report_progress)
    try:
        yield
    finally:
        TOLD.reset(before)


def _nothing() -> None:
    """No tool of that name was kept back."""


def no_such_tool(name: str) -> InvalidRequest:
    """Return the error for a tool that does not exist or is not switched on."""
    if toolset := next((toolset for toolset, tools in SWITCHED_ON.items() if name in tools), None):
        return InvalidRequest(
            f"The {toolset} tools are not switched on.",
            f"tool: given {name!r}; allowed where the user starts the server with them: "
            f"ctxr mcp --toolsets default,{toolset}",
        )
    near = get_close_matches(name.lower(), sorted(TOOLSETS["all"]), 1, 0.0)[0]
    allowed = ", ".join(tool for tool in TOOLS if tool in _ALWAYS)
    return InvalidRequest("No such tool.", f"tool: given {name!r}; allowed: {allowed}; nearest: {example(near)}")


def create_server(
    run: RunOperation,
    toolsets: Collection[str] = (DEFAULT,),
    project: str | None = None,
    *,
    is_local: bool = False,
    grown: GrownChannels | None = None,
    client: Client | None = None,
) -> RegistryServer:
    """A server over an orchestrator's `run`, for stdio, HTTP or tests.

    `toolsets`: which of TOOLSETS to publish. `project`: the folder that `current` means, where it is known.
    `is_local`: only this machine's user can call it, as over stdio; others may not have files written here.
    `grown`: tells which channels grow; without it nobody can subscribe to them.
    `client`: whose model reads the answers, where the server was started for one (`ctxr mcp --client`).
    """
    return RegistryServer(run, toolsets, project, is_local=is_local, grown=grown, client=client)


MAX_BODY = 64 * 1024 * 1024


def http_app(server: MCPServer[Any], host: str, known_as: str = "") -> Starlette:
    """The server over streamable HTTP, as an application to be served beside others.

    `host`: what the server listens on; `known_as`: the host by which a proxy makes it known.
    """
    # The SDK knows one host only. Whoever serves us behind a proxy checks hosts and origins before us.
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False) if known_as else None
    return server.streamable_http_app(
        stateless_http=True,
        json_response=True,
        max_request_body_size=MAX_BODY,
        host=host,
        transport_security=security,
    )
