"""/bo/events: stored messages and finished executions as they happen, as Server-Sent Events."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Annotated
from weakref import WeakKeyDictionary

from fastapi import APIRouter, Depends, Header, Query
from fastapi.responses import StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from pydantic import BaseModel, ConfigDict, Field

from backoffice.dependencies import Stored
from registry.errors import StorageError
from registry.registry import Registry
from registry.storage.exchange import arrivals
from registry.storage.exchange.arrivals import Arrivals, arrivals_of
from registry.storage.exchange.change_feed import Event, Listener, Place, newest_place
from registry.storage.paging import Seal, seal_of

RETRY_S = 3.0
"""How long to wait when the registry could not be asked."""
KEEP_ALIVE_S = 15.0
"""Proxies close a connection that stays silent."""
HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
EXAMPLE = 'event: message\ndata: {"id": "conv_…", "channel": "cursor_session_1", …}\nid: 121.48\n\n'

PLACE = r"^\d{1,18}\.\d{1,18}$"

router = APIRouter(prefix="/bo", tags=["events"])


class EventsQuery(BaseModel):
    """Where to begin, for who cannot send a header."""

    model_config = ConfigDict(extra="forbid")

    after: str | None = Field(None, pattern=PLACE, description="the same; `Last-Event-ID` goes before it")


async def _start(
    registry: Stored,
    query: Annotated[EventsQuery, Query()],
    last_seen: Annotated[
        str | None,
        Header(
            alias="Last-Event-ID",
            pattern=PLACE,
            description="the `id` of the last event seen: what happened since is sent first",
            examples=["120.48"],
        ),
    ] = None,
) -> Place:
    """Where the stream begins. Known before the answer does, so that nothing is missed after it."""
    seal = await registry.read(seal_of)
    place = last_seen or query.after
    return Place.parse(place, seal) if place else await registry.read(newest_place)


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"example": EXAMPLE}}, "description": "an endless stream"}},
)
async def stream_events(registry: Stored, start: Annotated[Place, Depends(_start)]) -> StreamingResponse:
    """Events `message` and `execution`; `data` is the item as the lists show it, `id` resumes the stream."""
    # Not FastAPI's own event streams: they fail when a client leaves while events are on their way.
    seal = await registry.read(seal_of)
    return StreamingResponse(_stream(registry, start, seal), headers=HEADERS, media_type="text/event-stream")


async def _stream(registry: Registry, place: Place, seal: Seal) -> AsyncIterator[bytes]:
    """Everything that happens after a place, and a sign of life when nothing does; without end."""
    listener = Listener(place)
    written_at = time.monotonic()
    with arrivals_of(registry).awaited(registry) as waiting:
        while True:
            wait_s, events = await _news(registry, listener, _newest_of(registry))
            for event in events:
                yield _written(event, seal)
            if events:
                written_at = time.monotonic()
                continue
            if time.monotonic() - written_at >= KEEP_ALIVE_S:
                written_at = time.monotonic()
                yield KEEPALIVE_COMMENT
            await waiting.wait(wait_s)


class _Newest:
    """Whether anything has happened: one look for all listeners of this process, and one of them reads at a time.

    However many there are, they never take more than one of the threads that read.
    """

    def __init__(self, told: Arrivals) -> None:
        self.turn = asyncio.Lock()
        self._told = told
        self._place = Place()
        self._looked_at = float("-inf")

    async def newest(self, registry: Registry) -> Place:
        """The place where nothing has happened since, as of a moment ago."""
        began = time.monotonic()
        if began - self._looked_at >= arrivals.POLL_S or self._looked_at < self._told.at:
            self._place = await registry.read(newest_place)
            self._looked_at = began
        return self._place


_NEWEST: WeakKeyDictionary[Registry, _Newest] = WeakKeyDictionary()


def _newest_of(registry: Registry) -> _Newest:
    return _NEWEST.setdefault(registry, _Newest(arrivals_of(registry)))


async def _news(registry: Registry, listener: Listener, shared: _Newest) -> tuple[float | None, list[Event]]:
    """What has happened, and how long to wait at most if it was nothing; None: as long as for whatever comes."""
    try:
        async with shared.turn:
            if listener.has_all_up_to(await shared.newest(registry)):
                return None, []
            return arrivals.POLL_S, await registry.read(listener.news)
    except StorageError:  # who reads has told the log
        return RETRY_S, []


def _written(event: Event, seal: Seal) -> bytes:
    data = json.dumps(event.item, ensure_ascii=False, separators=(",", ":"))
    return format_sse_event(event=event.kind, id=event.place.shown(seal), data_str=data)
