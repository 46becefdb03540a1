"""Fixtures: Node, and the server for the official clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.node import Node, Unavailable, install
from tests.conformance.servers import HTTP, http_server


@pytest.fixture(scope="session")
def node() -> Node:
    """Return Node with the official packages; skip the tests if it cannot be installed."""
    try:
        return install()
    except Unavailable as exc:
        pytest.skip(str(exc))


@pytest.fixture(scope="session")
def product_url(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the MCP endpoint of a running `ctxr serve`."""
    with http_server(HTTP, tmp_path_factory.mktemp("home")) as url:
        yield url
