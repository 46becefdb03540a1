"""The product's MCP server with the conformance suite's fixtures on top: `{shipped|sessions} PORT`."""

from __future__ import annotations

import sys

import uvicorn

from mcp_server.server import create_server
from orchestrator.lazy import LazyOrchestrator
from registry.settings import read_settings
from tests.conformance.suite_fixtures import add_suite_fixtures


def main(transport: str, port: int) -> None:
    """Serve until killed: `shipped` as the product does, `sessions` so that it may ask its client."""
    server = create_server(LazyOrchestrator(read_settings()).run)
    add_suite_fixtures(server)
    one_shot = transport == "shipped"
    app = server.streamable_http_app(stateless_http=one_shot, json_response=one_shot)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", http="h11")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
