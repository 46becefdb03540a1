"""The MCP server over streamable HTTP, as an application to be served beside others."""

from __future__ import annotations

from typing import Any

from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette

MAX_BODY = 64 * 1024 * 1024


def http_app(server: MCPServer[Any], host: str, known_as: str = "") -> Starlette:
    """The application. `host`: what the server listens on; `known_as`: the host by which a proxy makes it known."""
    # The SDK knows one host only. Whoever serves us behind a proxy checks hosts and origins before us.
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False) if known_as else None
    return server.streamable_http_app(
        stateless_http=True,
        json_response=True,
        max_request_body_size=MAX_BODY,
        host=host,
        transport_security=security,
    )
