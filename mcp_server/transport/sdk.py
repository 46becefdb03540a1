"""What the MCP SDK has no public name for: all of its private names that we use are in this file.

What cannot be read it passes over in silence: that is answered here, too, since every request gets an answer.

The next minor version may change these names, so pyproject.toml caps the SDK below it. Who raises the cap looks here.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol, Self, TypeVar, cast

from mcp.server import MCPServer, ServerRequestContext
from mcp.server.connection import Connection
from mcp.server.elicitation import AcceptedElicitation
from mcp.server.mcpserver.tools import Tool
from mcp.server.stdio import stdio_server
from mcp.shared._context_streams import ContextReceiveStream, ContextSendStream
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import BaseModel, ValidationError

Params = TypeVar("Params", bound=BaseModel)
Handler = Callable[[ServerRequestContext[Any, Any], Params], Awaitable[Any]]
ACCEPTED = AcceptedElicitation[Any]
"""What the SDK wraps every resolved parameter in. Pydantic forgets a model that nobody holds, and would make it anew
for each call of a tool that has such parameters."""


class TextSink(Protocol):
    """A connection's output of text lines."""

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
    """Reads the client's messages. Answers unreadable ones itself, because the SDK drops them silently."""

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


def answer_to(problem: Exception) -> JSONRPCError | None:
    """The error that tells what was wrong, under the request's own id where it can be made out; None for no words."""
    line = _line_of(problem)
    if not line.strip():
        return None
    request_id, is_json = _request_id(line)
    code, said = (INVALID_REQUEST, "not a JSON-RPC message") if is_json else (PARSE_ERROR, "not JSON in UTF-8")
    return JSONRPCError(
        jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=f"The line is {said}: {_reason(problem)}")
    )


def _line_of(problem: Exception) -> str:
    given = problem.errors()[0].get("input") if isinstance(problem, ValidationError) else ""
    return given if isinstance(given, str) else json.dumps(given)


def _request_id(line: str) -> tuple[int | str | None, bool]:
    """The id, and whether the line is JSON that others can read, too: Python's reader takes half a character."""
    try:
        given: Any = json.loads(line)
        found = given.get("id") if isinstance(given, dict) else None
        is_id = isinstance(found, int | str) and not isinstance(found, bool)
        json.dumps([found, given], ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return found if is_id and str(found).isascii() else None, False
    except (ValueError, RecursionError):
        return None, False
    return found if is_id else None, True


def _reason(problem: Exception) -> str:
    return problem.errors(include_url=False)[0]["msg"] if isinstance(problem, ValidationError) else str(problem)
