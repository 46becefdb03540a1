"""The product's MCP server with the conformance suite's fixtures on top, on a port."""

from __future__ import annotations

import asyncio
import sys

import uvicorn

from mcp_server.server import create_server
from orchestrator.opening import open_orchestrator
from registry.settings import read_settings
from tests.conformance.suite_fixtures import add_suite_fixtures


async def main(port: int) -> None:
    """Serve until killed.

    The registry is opened first: the suite waits only 10 s for an answer.
    """
    async with open_orchestrator(read_settings()) as orchestrator:
        server = create_server(orchestrator.run)
        add_suite_fixtures(server)
        app = server.streamable_http_app(stateless_http=True, json_response=True)
        await uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning", http="h11")).serve()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
