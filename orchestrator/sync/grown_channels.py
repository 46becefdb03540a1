"""Telling which channels grow, whichever process stores the messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime

from registry.errors import StorageError
from registry.registry import Registry
from registry.storage.exchange import arrivals
from registry.storage.exchange.arrivals import arrivals_of
from registry.storage.exchange.change_feed import UpdatedChannels

RETRY_S = 3.0
"""How long to wait when it could not be asked."""


async def grown_channels(registry: Registry, since: datetime) -> AsyncIterator[set[str]]:
    """The names of channels that gained messages since a moment, without end; of each channel all its names."""
    updated: UpdatedChannels | None = None
    with arrivals_of(registry).awaited(registry) as waiting:
        while True:
            try:
                if updated is None:
                    updated = await registry.read(lambda tx: UpdatedChannels(tx, since))
                names = await registry.read(updated.names)
            except StorageError:  # who reads has told the log
                await asyncio.sleep(RETRY_S)
                continue
            if names:
                yield names
            else:
                await waiting.wait(None if updated.is_whole else arrivals.POLL_S)
