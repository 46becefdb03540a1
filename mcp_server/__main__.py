"""`python -m mcp_server`: the same as `ctxr mcp`."""

from mcp_server.transport.stdio import run_stdio

run_stdio()
