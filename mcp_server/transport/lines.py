"""Serve MCP over lines of text: stdin and stdout, or a local connection.

The SDK skips lines that it cannot read; here they are answered with an error.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Protocol, cast

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError


class TextSink(Protocol):
    """A connection's output of text lines."""

    async def write(self, text: str) -> object:
        """Take some text."""

    async def flush(self) -> None:
        """Send what was taken."""


async def serve_lines(
    server: Server[Any], incoming: AsyncIterator[str] | None = None, outgoing: TextSink | None = None
) -> None:
    """Serve one connection until it ends: over stdin and stdout, or over the given lines, several at a time."""
    # The SDK names files here, and asks of them only this.
    async with stdio_server(cast("Any", incoming), cast("Any", outgoing)) as (read, write):
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
    """Return the id, and whether the line is JSON for other readers too: Python accepts lone surrogates."""
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
