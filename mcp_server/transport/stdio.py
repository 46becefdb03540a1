"""The MCP server on stdin and stdout, as a client starts it for every chat window."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection

import anyio

from mcp_server.server import DEFAULT, RegistryServer, create_server
from mcp_server.transport.connection import serve_connection
from mcp_server.transport.lines import serve_lines
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
