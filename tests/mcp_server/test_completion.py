"""Test completion of arguments: a client offers the registry's names while its user types."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from mcp import Client
from mcp.types import PromptReference, ResourceTemplateReference

from mcp_server.server import create_server
from orchestrator.service import Orchestrator

pytestmark = pytest.mark.anyio

LOAD, TAG, SEARCH = (PromptReference(type="ref/prompt", name=name) for name in ("load", "tag", "search"))


@pytest.fixture
async def client(orchestrator: Orchestrator) -> AsyncIterator[Client]:
    for channel in ("shop-basket", "shop-login", "other"):
        said = {"operation": "save", "channel": channel, "messages": [{"role": "user", "text": "hello there"}]}
        assert (await orchestrator.run(said))["success"]
    names = {"nickname": "Auth-design", "add_tags": ["api", "auth"]}
    assert (await orchestrator.run({"operation": "tag", "channel": "shop-login", "query": names}))["success"]
    async with Client(create_server(orchestrator.run)) as connected:
        yield connected


CHANNEL = ResourceTemplateReference(type="ref/resource", uri="registry://channels/{channel}")
OFFERED: list[tuple[PromptReference | ResourceTemplateReference, str, str, list[str]]] = [
    (LOAD, "nickname", "auth", ["Auth-design"]),
    (LOAD, "nickname", "shop", ["shop-login", "shop-basket"]),
    (LOAD, "nickname", "100%", []),
    (TAG, "tags", "a", ["api", "auth"]),
    (TAG, "tags", "api,au", ["api,auth"]),
    (SEARCH, "query", "shop", []),
    (CHANNEL, "channel", "o", ["other"]),
]


async def test_names_that_begin_with_the_typed_text_are_offered(client: Client, subtests: pytest.Subtests) -> None:
    for ref, argument, typed, offered in OFFERED:
        with subtests.test(argument=argument, typed=typed):
            found = await client.complete(ref, {"name": argument, "value": typed})
            assert sorted(found.completion.values) == sorted(offered)
