"""Test subscriptions: a client is notified when a channel grows, whichever process stores the message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from functools import partial
from typing import Any

import pytest
from mcp import Client
from mcp.types import ResourceUpdatedNotification

from mcp_server.resources import uri_of
from mcp_server.server import create_server
from mcp_server.subscriptions import ChannelBus
from orchestrator.service import Orchestrator
from orchestrator.views.events import grown_channels
from registry.access import CURRENT_ACCESS, Access, Level
from registry.registry import Registry

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")]

AUTH = "인증 대화/1"
QUESTIONS = ("Why does the basket lose its items after login?", "And what about guests who never log in at all?")


@pytest.fixture
async def elsewhere(sqlite_url: str) -> AsyncIterator[Registry]:
    """Open the same registry as another process does."""
    registry = Registry(sqlite_url)
    yield registry
    registry.close()


async def say(registry: Registry, channel: str, *texts: str, **about: Any) -> None:
    await registry.save_conversation(channel, [{"role": "user", "text": text} for text in texts], "cursor", about)


class Notifications:
    """Message handler of an older client; collects the addresses of changed resources."""

    def __init__(self) -> None:
        self.uris: asyncio.Queue[str] = asyncio.Queue()

    async def __call__(self, message: object) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            self.uris.put_nowait(str(message.params.uri))

    async def next(self) -> str:
        return await asyncio.wait_for(self.uris.get(), 10)


@pytest.fixture(autouse=True)
def frequent_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("registry.storage.exchange.change_feed.POLL_S", 0.01)


def server(orchestrator: Orchestrator, **about: Any) -> Any:
    return create_server(orchestrator.run, grown=partial(grown_channels, orchestrator.registry), **about)


@pytest.mark.parametrize("uri", [uri_of(AUTH), f"registry://channels/{AUTH}", f"{uri_of(AUTH)}/summary"])
async def test_a_stream_notifies_of_a_channel_that_grew(
    orchestrator: Orchestrator, elsewhere: Registry, uri: str
) -> None:
    await say(elsewhere, AUTH, "first")
    async with Client(server(orchestrator)) as client, client.listen(resource_subscriptions=[uri]) as news:
        await say(elsewhere, "another", "not asked for")
        await say(elsewhere, AUTH, "first", "second")
        event = await asyncio.wait_for(anext(aiter(news)), 10)
        assert event.uri == uri  # type: ignore[union-attr]


async def test_an_older_client_is_notified_until_it_unsubscribes(
    orchestrator: Orchestrator, elsewhere: Registry
) -> None:
    notifications = Notifications()
    async with Client(server(orchestrator, is_local=True), mode="legacy", message_handler=notifications) as client:
        assert client.server_capabilities.resources
        assert client.server_capabilities.resources.subscribe
        for name in (AUTH, "last"):
            await client.subscribe_resource(uri_of(name))
        await say(elsewhere, AUTH, "first")
        assert await notifications.next() == uri_of(AUTH)
        await client.unsubscribe_resource(uri_of(AUTH))
        await say(elsewhere, AUTH, "first", "second")
        await say(elsewhere, "last", "one")
        assert await notifications.next() == uri_of("last")


async def test_a_channel_that_was_merged_into_another_still_notifies_under_its_old_name(
    orchestrator: Orchestrator, elsewhere: Registry
) -> None:
    await say(elsewhere, "session", *QUESTIONS, session_id="c-1")
    uri = uri_of("cursor_session_mine")
    async with Client(server(orchestrator)) as client, client.listen(resource_subscriptions=[uri]) as news:
        await say(elsewhere, "cursor_session_mine", *QUESTIONS, "third")
        event = await asyncio.wait_for(anext(aiter(news)), 10)
        assert event.uri == uri  # type: ignore[union-attr]


async def test_the_registry_is_polled_only_while_a_client_listens(orchestrator: Orchestrator) -> None:
    began, ended = asyncio.Queue[None](), asyncio.Queue[None]()

    async def grown(since: datetime) -> AsyncIterator[set[str]]:
        began.put_nowait(None)
        try:
            async for names in grown_channels(orchestrator.registry, since):
                yield names
        finally:
            ended.put_nowait(None)

    async with Client(create_server(orchestrator.run, grown=grown)) as client:
        for _ in range(2):
            async with client.listen(resource_subscriptions=["registry://a"]), client.listen(prompts_list_changed=True):
                await asyncio.wait_for(began.get(), 10)
            await asyncio.wait_for(ended.get(), 10)
    assert began.empty()


async def test_the_subscription_of_an_older_client_ends_with_its_connection(orchestrator: Orchestrator) -> None:
    ended = asyncio.Event()

    async def grown(_since: datetime) -> AsyncIterator[set[str]]:
        try:
            yield await asyncio.Future[set[str]]()
        finally:
            ended.set()

    served = create_server(orchestrator.run, is_local=True, grown=grown)
    async with Client(served, mode="legacy") as client:
        await client.subscribe_resource(uri_of("a"))
        await client.list_tools()
    await asyncio.wait_for(ended.wait(), 10)


async def test_a_subscriber_is_notified_only_of_channels_its_token_sees(orchestrator: Orchestrator) -> None:
    registry = orchestrator.registry

    async def grown(since: datetime) -> AsyncIterator[set[str]]:
        async for names in grown_channels(registry.seen_by(CURRENT_ACCESS.get()), since):
            yield names

    bus, notifications = ChannelBus(grown), asyncio.Queue[str]()
    asking = CURRENT_ACCESS.set(Access("a", Level.READ, ("mine*",)))
    leave = bus.subscribe(lambda event: notifications.put_nowait(getattr(event, "uri", "")))
    CURRENT_ACCESS.reset(asking)
    for channel in ("theirs", "mine"):
        await say(registry, channel, "hello")
    uris = [await asyncio.wait_for(notifications.get(), 10) for _ in range(3)]
    assert uris[:2] == ["registry://channels", uri_of("mine")]
    assert not any("theirs" in uri for uri in uris)
    leave()
