"""Serve MCP over lines of text: stdin and stdout, or a local connection.

The SDK skips lines that it cannot read; here they are answered with an error.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError


async def serve_lines(server: Server[Any], incoming: Any = None, outgoing: Any = None) -> None:
    """Serve one connection until it ends: over stdin and stdout, or over the given lines, several at a time.

    `incoming` yields lines; `outgoing` has `write` and `flush`. The SDK names files here, and asks of them only this.
    """
    async with stdio_server(incoming, outgoing) as (read, write):
        readable, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)

        async def pass_on() -> None:
            async with readable:
                async for item in read:
                    if not isinstance(item, Exception):
                        await readable.send(item)
                    elif answer := answer_to(item):
                        await write.send(SessionMessage(answer))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pass_on)
            await server.run(messages, write, server.create_initialization_options())
            tasks.cancel_scope.cancel()


def answer_to(problem: Exception) -> JSONRPCError | None:
    """Return the error for an unreadable line, under the request's id if it can be read; None for an empty line."""
    if not isinstance(problem, ValidationError):
        return None
    first = problem.errors(include_url=False)[0]
    line = first["input"]
    if isinstance(line, str) and not line.strip():
        return None
    code, said = INVALID_REQUEST, "not a JSON-RPC message"
    if first["type"] == "json_invalid":
        code, said = PARSE_ERROR, "not JSON in UTF-8"
        with suppress(ValueError, RecursionError):  # Python accepts lone surrogates
            line = json.loads(line)
    found = line.get("id") if isinstance(line, dict) else None
    is_id = isinstance(found, int | str) and not isinstance(found, bool) and str(found).isascii()
    error = ErrorData(code=code, message=f"The line is {said}: {first['msg']}")
    return JSONRPCError(jsonrpc="2.0", id=found if is_id else None, error=error)
