"""Watch which channels grow, whichever process stores the messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime

from registry.errors import StorageError
from registry.registry import Registry
from registry.storage.exchange import change_feed
from registry.storage.exchange.change_feed import UpdatedChannels


async def grown_channels(registry: Registry, since: datetime) -> AsyncIterator[set[str]]:
    """Yield the names of channels that gained messages since a moment, without end; of each channel all its names."""
    updated: UpdatedChannels | None = None
    while True:
        try:
            if updated is None:
                updated = await registry.read(lambda tx: UpdatedChannels(tx, since))
            names = await registry.read(updated.names)
        except StorageError:  # logged by the database
            await asyncio.sleep(3)
            continue
        if names:
            yield names
        else:
            await asyncio.sleep(change_feed.POLL_S)
