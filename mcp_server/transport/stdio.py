"""The stdio transport: MCP as JSON lines on stdin and stdout, or on a connection of the local process."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import suppress
from typing import Any

import anyio
from mcp import types
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from mcp_server.server import DEFAULT, LISTS, RegistryServer, create_server
from orchestrator.lazy import LazyOrchestrator
from orchestrator.requests.calls import working_folder
from registry.log import set_up_logging
from registry.settings import read_settings
from sources.client import Client


def run_stdio(
    toolsets: Collection[str] = (DEFAULT,),
    project: str | None = None,
    client: Client | None = None,
    is_captured: bool = False,
    connection: socket.socket | None = None,
) -> None:
    """Serve until stdin, or `connection` instead of it, closes. Raises InvalidRequest for unusable settings.

    `project`: the folder of the project `current`; by default the working folder. `client`: the client, if it is known.
    """
    set_up_logging()
    orchestrator = LazyOrchestrator(read_settings())
    server = create_server(
        orchestrator.run,
        toolsets,
        project or working_folder(),
        is_local=True,
        grown=orchestrator.grown_channels,
        client=client,
        is_captured=is_captured,
    )
    asyncio.run(_serve(server, orchestrator, connection))


async def _serve(server: RegistryServer, orchestrator: LazyOrchestrator, connection: socket.socket | None) -> None:
    """Answer the handshake immediately, and open the registry in the background."""
    try:
        warming = asyncio.create_task(orchestrator.warm_up())
        if connection:
            await serve_connection(server, *await asyncio.open_connection(sock=connection, limit=1 << 28))
        else:
            await serve_lines(server)
        warming.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await orchestrator.close()


async def serve_connection(server: Server[Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await serve_lines(server, _read_lines(reader), _LineWriter(writer))


async def _read_lines(reader: asyncio.StreamReader) -> AsyncIterator[str]:
    while line := await reader.readline():
        yield line.decode("utf-8", "replace")


class _LineWriter:
    """Writes the SDK's lines to a connection."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def write(self, text: str) -> None:
        self._writer.write(text.encode("utf-8", "replace"))

    async def flush(self) -> None:
        with suppress(OSError):  # the client has closed the connection; reading notices it
            await self._writer.drain()


async def serve_lines(server: Server[Any], incoming: Any = None, outgoing: Any = None) -> None:
    """Serve one connection until it ends, by default over stdin and stdout. Several can be served at once.

    `incoming` yields lines; `outgoing` has `write` and `flush`, which is all that the SDK uses of its files. The SDK
    skips invalid lines; we answer them with an error.
    """
    async with stdio_server(incoming, outgoing) as (read, write):
        readable, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)

        async def forward() -> None:
            async with readable:
                async for item in read:
                    if not isinstance(item, Exception):
                        await readable.send(item)
                    elif answer := answer_to(item):
                        await write.send(SessionMessage(answer))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(forward)
            await server.run(messages, write, server.create_initialization_options())
            tasks.cancel_scope.cancel()


def answer_to(problem: Exception) -> types.JSONRPCError | None:
    """Return the error for an invalid line, with the request's id if it can be parsed; None for an empty line."""
    if not isinstance(problem, ValidationError):
        return None
    first = problem.errors(include_url=False)[0]
    line = first["input"]
    if isinstance(line, str) and not line.strip():
        return None
    code, reason = types.INVALID_REQUEST, "not a JSON-RPC message"
    if first["type"] == "json_invalid":
        code, reason = types.PARSE_ERROR, "not JSON in UTF-8"
        with suppress(ValueError, RecursionError):  # Python accepts lone surrogates
            line = json.loads(line)
    found = line.get("id") if isinstance(line, dict) else None
    is_id = isinstance(found, int | str) and not isinstance(found, bool) and str(found).isascii()
    error = types.ErrorData(code=code, message=f"The line is {reason}: {first['msg']}")
    return types.JSONRPCError(jsonrpc="2.0", id=found if is_id else None, error=error)


async def first_answers(server: Server[Any]) -> dict[str, str]:
    """Return the results of handshake and lists as JSON, by `revision method`, to answer them from a cache."""
    answers: dict[str, str] = {}
    for revision in (*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS):
        async with (
            create_client_server_memory_streams() as ((read, write), streams),
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(server.run, *streams, server.create_initialization_options())
            for method, params in _first_requests(revision):
                await write.send(
                    SessionMessage(types.JSONRPCRequest(jsonrpc="2.0", id=1, method=method, params=params))
                )
                answer = await read.receive()
                if isinstance(answer, SessionMessage) and isinstance(answer.message, types.JSONRPCResponse):
                    answers[f"{revision} {method}"] = json.dumps(answer.message.result, separators=(",", ":"))
                if method == "initialize":
                    initialized = types.JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")
                    await write.send(SessionMessage(initialized))
            tasks.cancel_scope.cancel()
    return answers


def _first_requests(revision: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield method and parameters of the requests with which a client of this revision begins."""
    about = {"protocolVersion": revision, "clientInfo": {"name": "context-registry", "version": "1"}}
    if revision in MODERN_PROTOCOL_VERSIONS:
        named = {**about, "clientCapabilities": {}}
        params = {"_meta": {f"io.modelcontextprotocol/{name}": value for name, value in named.items()}}
        yield from ((method, params) for method in ("server/discover", *LISTS))
    else:
        yield "initialize", {**about, "capabilities": {}}
        yield from ((method, {}) for method in LISTS)
