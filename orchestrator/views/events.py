"""Stream stored messages and finished executions; list messages and edits for registries that follow this one."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

from registry.errors import StorageError
from registry.registry import Registry
from registry.storage.database import ReadTransaction
from registry.storage.exchange import change_feed, edits
from registry.storage.exchange.change_feed import Event, Listener, UpdatedChannels, newest_position
from registry.storage.exchange.change_feed import FeedPosition as FeedPosition
from registry.storage.safety.visibility import see_as_person

RETRY_S = 3.0  # pause after the registry could not be read


async def check_readable(registry: Registry) -> None:
    """Raise StorageError or OperationTimeout if the registry cannot be read."""
    await registry.read(newest_position)


async def start_of(registry: Registry, position: str | None) -> FeedPosition:
    """Parse the given position; without one, return the newest."""
    return FeedPosition.parse(position) if position else await registry.read(newest_position)


async def follow(registry: Registry, start: FeedPosition, silence_s: float) -> AsyncIterator[list[Event]]:
    """Yield events after a position, forever; an empty list after `silence_s` seconds without events."""
    listener = Listener(start)
    yielded_at = time.monotonic()
    while True:
        wait_s = change_feed.POLL_S
        try:
            events = await _events_since(registry, listener)
        except StorageError:  # already logged
            wait_s, events = RETRY_S, []
        if events or time.monotonic() - yielded_at >= silence_s:
            yielded_at = time.monotonic()
            yield events
        if not events:
            await asyncio.sleep(wait_s)


class _NewestPosition:
    """Cache of the newest position for all listeners of this process.

    One listener reads at a time, so that they occupy only one of the reader threads.
    """

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self._position = FeedPosition()
        self._read_at = float("-inf")

    async def get(self, registry: Registry) -> FeedPosition:
        """Return the position after the last event, at most POLL_S old."""
        began = time.monotonic()
        if began - self._read_at >= change_feed.POLL_S:
            self._position = await registry.read(newest_position)
            self._read_at = began
        return self._position


_NEWEST: WeakKeyDictionary[Registry, _NewestPosition] = WeakKeyDictionary()


async def _events_since(registry: Registry, listener: Listener) -> list[Event]:
    newest = _NEWEST.setdefault(registry, _NewestPosition())
    async with newest.turn:
        has_all = listener.has_all_up_to(await newest.get(registry))
        return [] if has_all else await registry.read(listener.news)


def list_changes(tx: ReadTransaction, after: int) -> change_feed.Changes[dict[str, Any]]:
    """Return messages in the order they were stored; `after`: the `place` of the last answer."""
    see_as_person(tx)
    return change_feed.changes_after(tx, after)


def list_edits(tx: ReadTransaction, after: int) -> dict[str, Any]:
    """Return edits (names, tags, deletions) in the order they arrived here."""
    see_as_person(tx)
    found = edits.edits_after(tx, after)
    return {"items": [edit.as_dict() for edit in found.items], "place": found.place, "is_all": found.is_all}


async def grown_channels(registry: Registry, since: datetime) -> AsyncIterator[set[str]]:
    """Yield all names of channels with messages newer than a moment, forever."""
    updated: UpdatedChannels | None = None
    while True:
        try:
            if updated is None:
                updated = await registry.read(lambda tx: UpdatedChannels(tx, since))
            names = await registry.read(updated.names)
        except StorageError:  # already logged
            await asyncio.sleep(RETRY_S)
            continue
        if names:
            yield names
        else:
            await asyncio.sleep(change_feed.POLL_S)
