"""Notify subscribers of a channel when it grows, by the current and the older revisions of the protocol.

Clients of revision 2026-07-28 open a stream (`subscriptions/listen`), over stdio or HTTP. Older ones subscribe by URI
and are notified on their connection; they cannot subscribe over HTTP, where we keep no connections.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from datetime import datetime
from urllib.parse import quote

from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated, ServerEvent
from mcp.types import EmptyResult, SubscribeRequestParams, UnsubscribeRequestParams

from mcp_server.envelope import Context
from mcp_server.resources import CHANNELS, uri_of
from orchestrator.lazy import GrownChannels
from registry.access import CURRENT_ACCESS, Access
from registry.domain import now

logger = logging.getLogger(__name__)

Unsubscribe = Callable[[], None]


class ChannelBus(InMemorySubscriptionBus):
    """Notifies each subscriber of changed resources that its token may see."""

    def __init__(self, grown: GrownChannels) -> None:
        super().__init__()
        self._grown = grown
        self._watched: dict[Access | None, WatchedRegistry] = {}

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Unsubscribe:
        return self._watched.setdefault(CURRENT_ACCESS.get(), WatchedRegistry(self._grown)).subscribe(listener)


class WatchedRegistry(InMemorySubscriptionBus):
    """Watches the registry with one token, in the context of its first subscriber, while there are subscribers."""

    def __init__(self, grown: GrownChannels) -> None:
        super().__init__()
        self._grown = grown
        self._subscribers: set[object] = set()
        self._watching: asyncio.Task[None] | None = None

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Unsubscribe:
        unsubscribe_from_bus = super().subscribe(listener)
        subscriber = object()
        self._subscribers.add(subscriber)
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch(now()))

        def unsubscribe() -> None:
            unsubscribe_from_bus()
            self._subscribers.discard(subscriber)
            if not self._subscribers and self._watching:
                self._watching.cancel()
                self._watching = None

        return unsubscribe

    async def _watch(self, since: datetime) -> None:
        try:
            async for names in self._grown(since):
                await self.publish(ResourceUpdated(CHANNELS))
                for uri in sorted({uri for name in names for uri in uris_of(name)}):
                    await self.publish(ResourceUpdated(uri))
        except Exception:  # the task is not awaited: the server continues without notifications
            logger.exception("Watching the registry failed: subscribers get no more notifications")


def uris_of(name: str) -> Iterator[str]:
    """Yield the URIs of the resources that change when a channel grows, in all spellings that clients use."""
    for uri in {uri_of(name), f"{CHANNELS}/{quote(name)}", f"{CHANNELS}/{name}"}:
        yield from (uri, f"{uri}/summary")


class LegacySubscriptions:
    """Subscriptions by URI, of clients of older protocol revisions. Each ends with its connection."""

    def __init__(self, bus: ChannelBus) -> None:
        self._bus = bus
        self._subscriptions: dict[tuple[int, str], Unsubscribe] = {}

    async def subscribe(self, ctx: Context, params: SubscribeRequestParams) -> EmptyResult:
        uri, session, connection = str(params.uri), ctx.session, ctx.lifespan_context
        sending: set[asyncio.Task[None]] = set()

        def notify(event: ServerEvent) -> None:
            if event == ResourceUpdated(uri):
                task = asyncio.create_task(session.send_resource_updated(uri))
                sending.add(task)
                task.add_done_callback(sending.discard)

        key = id(connection), uri
        if key not in self._subscriptions:
            self._subscriptions[key] = self._bus.subscribe(notify)
            connection.callback(self._end, key)
        return EmptyResult()

    async def unsubscribe(self, ctx: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        self._end((id(ctx.lifespan_context), str(params.uri)))
        return EmptyResult()

    def _end(self, key: tuple[int, str]) -> None:
        if unsubscribe_from_bus := self._subscriptions.pop(key, None):
            unsubscribe_from_bus()
