"""Who is calling."""

from __future__ import annotations

from typing import Any

from mcp.server import ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.types import Implementation


def client_name(context: Context[Any, Any] | None) -> str | None:
    """Name and version of the client program, where it told them."""
    params = context.session.client_params if context else None
    return _named(params.client_info) if params else None


def client_of(context: ServerRequestContext[Any, Any]) -> str | None:
    """The same of any request, also of the first one, which is about to tell it."""
    params = context.session.client_params
    if params:
        return _named(params.client_info)
    told = (context.params or {}).get("clientInfo")
    return _named(Implementation.model_validate(told)) if told else None


def _named(info: Implementation) -> str:
    return f"{info.name} {info.version}".strip()
