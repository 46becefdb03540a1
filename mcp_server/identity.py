"""Who is calling."""

from __future__ import annotations

from typing import Any

from mcp.server.mcpserver import Context


def client_name(context: Context[Any, Any] | None) -> str | None:
    """Name and version of the client program, where it told them."""
    params = context.session.client_params if context else None
    info = params.client_info if params else None
    return f"{info.name} {info.version}".strip() if info else None
