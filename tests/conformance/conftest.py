"""Node and the servers the official clients are pointed at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.node import Node, Unavailable, install
from tests.conformance.servers import HTTP, http_server


@pytest.fixture(scope="session")
def node() -> Node:
    """Node with the official packages; the tests are skipped where it cannot be had."""
    try:
        return install()
    except Unavailable as exc:
        pytest.skip(str(exc))


@pytest.fixture(scope="session")
def product_url(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The MCP endpoint of a running `ctxr serve`."""
    with http_server(HTTP, tmp_path_factory.mktemp("home")) as url:
        yield url
