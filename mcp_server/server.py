"""The MCP server: the SDK's, with our envelope around every outcome. Nothing is remembered between requests."""

from __future__ import annotations

import logging
from importlib.metadata import version
from typing import Any

from mcp import MCPError
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import INVALID_PARAMS, CallToolResult, InputRequiredResult
from pydantic import ValidationError

from mcp_server.envelope import reply
from mcp_server.schemas import slim
from mcp_server.tools import INSTRUCTIONS, add_tools, client_name
from orchestrator.calls import RESULTS, as_request
from orchestrator.lazy import RunOperation
from registry.errors import StorageError

logger = logging.getLogger(__name__)

NAME = "context-registry"


class RegistryServer(MCPServer[Any]):
    """An MCP server whose every tool call ends in the envelope of contract 2."""

    def __init__(self, run: RunOperation) -> None:
        super().__init__(
            NAME,
            title="Context Registry",
            version=version(NAME),
            instructions=INSTRUCTIONS,
            log_level="WARNING",
        )
        self._run = run
        add_tools(self, run)
        for tool in self._tool_manager.list_tools():
            tool.parameters = {**slim(tool.parameters), "additionalProperties": False}
            tool.fn_metadata.output_schema = slim(tool.fn_metadata.output_schema or {})

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool. Arguments that do not fit are refused by the orchestrator, so that this is recorded too."""
        tool = self._tool_manager.get_tool(name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {name}")
        if name not in RESULTS:
            return await super().call_tool(name, arguments, context)
        if arguments.keys() - tool.parameters["properties"].keys():
            return await self._run_unchecked(name, arguments, context)
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as exc:
            if isinstance(exc.__cause__, ValidationError):
                return await self._run_unchecked(name, arguments, context)
            logger.exception("Tool %s failed", name)
            bug = StorageError("The tool failed inside Context Registry.", "See the server's log")
            return reply(name, {"success": False, "error": bug.as_dict()})

    async def _run_unchecked(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None
    ) -> CallToolResult:
        client = client_name(context)
        return reply(name, await self._run(as_request(name, arguments, client), client))


def create_server(run: RunOperation) -> RegistryServer:
    """A server over an orchestrator's `run`, for stdio, HTTP or tests."""
    return RegistryServer(run)
