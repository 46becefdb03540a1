"""The stdio transport: MCP as JSON lines on stdin and stdout, or on a connection of the local process."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Collection
from contextlib import suppress
from typing import Any

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
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


def answer_to(problem: Exception) -> JSONRPCError | None:
    """Return the error for an invalid line, with the request's id if it can be parsed; None for an empty line."""
    if not isinstance(problem, ValidationError):
        return None
    first = problem.errors(include_url=False)[0]
    line = first["input"]
    if isinstance(line, str) and not line.strip():
        return None
    code, reason = INVALID_REQUEST, "not a JSON-RPC message"
    if first["type"] == "json_invalid":
        code, reason = PARSE_ERROR, "not JSON in UTF-8"
        with suppress(ValueError, RecursionError):  # Python accepts lone surrogates
            line = json.loads(line)
    found = line.get("id") if isinstance(line, dict) else None
    is_id = isinstance(found, int | str) and not isinstance(found, bool) and str(found).isascii()
    error = ErrorData(code=code, message=f"The line is {reason}: {first['msg']}")
    return JSONRPCError(jsonrpc="2.0", id=found if is_id else None, error=error)


async def first_answers(server: Server[Any]) -> dict[str, str]:
    """Return the results of handshake and lists as JSON, by `revision method`, to answer them from a cache."""
    answers: dict[str, str] = {}
    for revision in (*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS):
        dialogue = _Dialogue(revision)
        await serve_lines(server, dialogue.lines(), dialogue)
        answers |= {f"{revision} {method}": result for method, result in dialogue.results.items()}
    return answers


class _Dialogue:
    """A client that sends the handshake and the list requests one by one, and stores the results."""

    def __init__(self, revision: str) -> None:
        self._revision = revision
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.results: dict[str, str] = {}

    async def lines(self) -> AsyncIterator[str]:
        about = {"capabilities": {}, "clientInfo": {"name": "context-registry", "version": "1"}}
        params: dict[str, Any] = {}
        first, handshake = "initialize", {"protocolVersion": self._revision, **about}
        if self._revision in MODERN_PROTOCOL_VERSIONS:
            prefix = "io.modelcontextprotocol/"
            meta = {f"{prefix}protocolVersion": self._revision, f"{prefix}clientInfo": about["clientInfo"]}
            params = handshake = {"_meta": {**meta, f"{prefix}clientCapabilities": {}}}
            first = "server/discover"
        for method in (first, *LISTS):
            given = handshake if method == first else params
            yield json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": given}) + "\n"
            answer = await self._answers.get()
            if "result" in answer:
                self.results[method] = json.dumps(answer["result"], separators=(",", ":"))
            if method == "initialize":
                yield json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n"

    async def write(self, text: str) -> None:
        for line in text.splitlines():
            message = json.loads(line)
            if "id" in message:
                self._answers.put_nowait(message)

    async def flush(self) -> None:
        """Do nothing, because `write` has no buffer."""
