"""The stdio transport: MCP as lines of JSON on stdin and stdout, or on a connection of the local process."""

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
    """Serve until stdin (or the connection that takes its place) closes; InvalidRequest for an unusable configuration.

    `project`: the folder that `current` means; by default the one the server was started in. `client`: whose model
    reads the answers, where that is known.
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
    """Answer the handshake first, open the registry behind it."""
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
    await serve_lines(server, _lines_of(reader), _Outgoing(writer))


async def _lines_of(reader: asyncio.StreamReader) -> AsyncIterator[str]:
    while line := await reader.readline():
        yield line.decode("utf-8", "replace")


class _Outgoing:
    """Writes the SDK's lines to a connection."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def write(self, text: str) -> None:
        self._writer.write(text.encode("utf-8", "replace"))

    async def flush(self) -> None:
        with suppress(OSError):  # the window has gone; the end of its lines shows it
            await self._writer.drain()


async def serve_lines(server: Server[Any], incoming: Any = None, outgoing: Any = None) -> None:
    """Serve one connection until it ends: over stdin and stdout, or over the given lines, several at a time.

    `incoming` yields lines; `outgoing` has `write` and `flush`. The SDK names files here, and asks of them only this.
    It skips lines that it cannot read; here they are answered with an error.
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


async def first_answers(server: Server[Any]) -> dict[str, str]:
    """Return the results of the handshake and the lists as JSON, by `revision method`: what a cold window answers."""
    answers: dict[str, str] = {}
    for revision in (*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS):
        dialogue = _Dialogue(revision)
        await serve_lines(server, dialogue.lines(), dialogue)
        answers |= {f"{revision} {method}": result for method, result in dialogue.results.items()}
    return answers


class _Dialogue:
    """A client that sends its first requests one by one, and keeps the results."""

    def __init__(self, revision: str) -> None:
        self._revision = revision
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.results: dict[str, str] = {}

    async def lines(self) -> AsyncIterator[str]:
        about = {"capabilities": {}, "clientInfo": {"name": "context-registry", "version": "1"}}
        params: dict[str, Any] = {}
        first, hello = "initialize", {"protocolVersion": self._revision, **about}
        if self._revision in MODERN_PROTOCOL_VERSIONS:
            prefix = "io.modelcontextprotocol/"
            meta = {f"{prefix}protocolVersion": self._revision, f"{prefix}clientInfo": about["clientInfo"]}
            params = hello = {"_meta": {**meta, f"{prefix}clientCapabilities": {}}}
            first = "server/discover"
        for method in (first, *LISTS):
            given = hello if method == first else params
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
        """Do nothing: `write` holds nothing back."""
