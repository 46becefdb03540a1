"""The smallest servers that the MCP SDK allows: they show the cost of the protocol alone.

Usage: python -m benchmarks.setup.bare_server {empty | stdio | http PORT}
"""

from __future__ import annotations

import sys
from typing import Any

from mcp.server import MCPServer

MAX_BODY = 64 * 1024 * 1024
server = MCPServer("bare", version="1.0", log_level="WARNING")


def add_tools() -> None:
    """Add the two baselines: one returns its arguments, the other only a count."""

    @server.tool()
    async def echo(
        channel: str, messages: list[dict[str, Any]] | None = None, query: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the arguments."""
        return {"channel": channel, "messages": messages, "query": query}

    @server.tool()
    async def acknowledge(
        channel: str, messages: list[dict[str, Any]] | None = None, query: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the number of messages."""
        return {"received": len(messages or ())}


def serve_http(port: int) -> None:
    """Serve over HTTP until killed, as the product does: without sessions, with plain JSON answers."""
    import uvicorn  # imported here because it would slow the start of the stdio servers

    app = server.streamable_http_app(stateless_http=True, json_response=True, max_request_body_size=MAX_BODY)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", http="h11")


if __name__ == "__main__":
    mode, *rest = sys.argv[1:]
    if mode != "empty":
        add_tools()
    if mode == "http":
        serve_http(int(rest[0]))
    else:
        server.run()
