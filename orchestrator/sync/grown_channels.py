"""Telling which channels grow, whichever process stores the messages."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import datetime

from registry.errors import StorageError
from registry.registry import Registry
from registry.storage.exchange.change_feed import UpdatedChannels

logger = logging.getLogger(__name__)

POLL_S = 0.5
"""The registry is asked this often, while anybody listens."""
RETRY_S = 3.0
"""How long to wait when it could not be asked."""


async def grown_channels(registry: Registry, since: datetime) -> AsyncIterator[set[str]]:
    """The names of channels that gained messages since a moment, without end; of each channel all its names."""
    updated: UpdatedChannels | None = None
    while True:
        try:
            if updated is None:
                updated = await registry.read(lambda tx: UpdatedChannels(tx, since))
            names = await registry.read(updated.names)
        except StorageError as exc:
            logger.warning("The registry could not be asked for news: %s", exc.details)
            await asyncio.sleep(RETRY_S)
            continue
        if names:
            yield names
        else:
            await asyncio.sleep(POLL_S)
