"""The smallest servers one can write with the MCP SDK: what the protocol costs without a product.

Usage: python -m benchmarks.setup.bare_server {empty | stdio | http PORT}
"""

from __future__ import annotations

import sys
from typing import Any

from mcp.server import MCPServer

MAX_BODY = 64 * 1024 * 1024
server = MCPServer("bare", version="1.0", log_level="WARNING")


def add_tools() -> None:
    """The two baselines: give everything back, or only say that it came."""

    @server.tool()
    async def echo(
        channel: str, messages: list[dict[str, Any]] | None = None, query: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Answer with the arguments."""
        return {"channel": channel, "messages": messages, "query": query}

    @server.tool()
    async def acknowledge(
        channel: str, messages: list[dict[str, Any]] | None = None, query: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Answer with a number."""
        return {"received": len(messages or ())}


def serve_http(port: int) -> None:
    """Serve in the product's HTTP mode until killed: no sessions, plain JSON answers."""
    import uvicorn  # only here: the stdio servers are measured from their first import on

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
