"""Serve a connection of the local process, and record the answers to a client's first requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from mcp.server import Server
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from mcp_server.server import LISTS
from mcp_server.transport.lines import serve_lines


async def serve_connection(server: Server[Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve one connection until it ends."""
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
