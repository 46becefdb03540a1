"""What the MCP SDK has no public name for: all of its private names that we use are in this file.

The next minor version may change them, so pyproject.toml caps the SDK below it. Who raises the cap looks here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol, Self, TypeVar, cast

from mcp.server import MCPServer, ServerRequestContext
from mcp.server.connection import Connection
from mcp.server.mcpserver.tools import Tool
from mcp.server.stdio import stdio_server
from mcp.shared._context_streams import ContextReceiveStream, ContextSendStream
from mcp.shared.message import SessionMessage
from pydantic import BaseModel

from mcp_server.transport.unreadable import answer_to

Params = TypeVar("Params", bound=BaseModel)
Handler = Callable[[ServerRequestContext[Any, Any], Params], Awaitable[Any]]


class TextSink(Protocol):
    """Where the lines of a connection go."""

    async def write(self, text: str) -> object:
        """Take some text."""

    async def flush(self) -> None:
        """Send what was taken."""


def tool_named(server: MCPServer[Any], name: str) -> Tool | None:
    """The registered tool of that name."""
    return server._tool_manager.get_tool(name)


def add_made_tool(server: MCPServer[Any], tool: Tool, fn: Callable[..., Any]) -> None:
    """Register a tool that another server made, with this server's function behind it."""
    server._tool_manager._tools[tool.name] = tool.model_copy(update={"fn": fn})


def answer_method(server: MCPServer[Any], method: str, params: type[Params], handler: Handler[Params]) -> None:
    """Let the server answer one more method of the protocol, and announce what follows from it."""
    server._lowlevel_server.add_request_handler(method, params, handler)


def connection_of(context: ServerRequestContext[Any, Any]) -> Connection:
    """The client's connection: it lasts longer than the session object of a single request."""
    return context.session._connection


class AnsweredStream(ContextReceiveStream[SessionMessage | Exception]):
    """What a client sends. What cannot be read is answered here: the SDK itself passes it over in silence."""

    def __init__(
        self, read: ContextReceiveStream[SessionMessage | Exception], write: ContextSendStream[SessionMessage]
    ) -> None:
        super().__init__(read._inner)
        self._write = write

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        return self

    async def receive(self) -> SessionMessage | Exception:
        """The next message that can be read."""
        while isinstance(item := await super().receive(), Exception):
            if answer := answer_to(item):
                await self._write.send(SessionMessage(answer))
        return item


async def serve_lines(
    server: MCPServer[Any], incoming: AsyncIterator[str] | None = None, outgoing: TextSink | None = None
) -> None:
    """Serve one connection over lines of text until they end: stdin and stdout, or others, several at a time."""
    protocol = server._lowlevel_server
    # The SDK names files here, and asks of them only this.
    async with stdio_server(cast("Any", incoming), cast("Any", outgoing)) as (read, write):
        await protocol.run(AnsweredStream(read, write), write, protocol.create_initialization_options())
