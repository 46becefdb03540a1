"""Exchange with the remote registry in the background, and report the age of the local copy.

Several processes may exchange for one registry at once: messages that are sent or received twice are recognised.
"""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from orchestrator.remote.client import AccessRefused, RemoteRegistry, Unreachable
from orchestrator.remote.exchange import Exchanged
from orchestrator.remote.pull import pull
from orchestrator.remote.push import push
from orchestrator.state import LocalCopy
from registry.domain import format_time, now
from registry.registry import Registry
from registry.settings import Settings
from registry.storage.database import Database
from registry.storage.exchange.edits import resend_refused_edits
from registry.storage.exchange.remote import exchange_counts, known_address, resend_refused_messages, sync_progress

if TYPE_CHECKING:
    from orchestrator.service import Orchestrator

logger = logging.getLogger(__name__)

INTERVAL_S = 5.0  # seconds between two exchanges
MAX_BACKOFF_S = 60.0  # seconds, while the remote registry does not answer


async def local_copy_note(registry: Database, url: str) -> LocalCopy | None:
    """Return the note for answers from the local copy; None if the remote registry answered within the last minute."""
    moment = await registry.read(lambda tx: sync_progress(tx, known_address(tx, url)).answered_at)
    if moment and abs(now() - moment) < timedelta(seconds=60.0):  # `abs`: the clock may have been set back
        return None
    return {"of": url, "as_of": format_time(moment) if moment else None}


async def keep_exchanging(orchestrator: Orchestrator, settings: Settings) -> None:
    """Exchange with the remote registry until cancelled."""
    pause, pushes_at, is_reconnected = INTERVAL_S, time.monotonic(), True
    async with RemoteRegistry(settings.remote_url, settings.token.get_secret_value()) as remote:
        while True:
            try:
                done = Exchanged()
                await pull(orchestrator, remote, done)
                if is_reconnected:  # the token or the server may accept refused edits by now
                    await orchestrator.registry.write(partial(resend_refused_edits, url=remote.notes_url))
                    is_reconnected = False
                if time.monotonic() >= pushes_at:
                    try:
                        await push(orchestrator, remote, done)
                    except AccessRefused as exc:  # the token allows only reading
                        logger.warning("The remote registry accepts nothing from here: %s", exc)
                        pushes_at = time.monotonic() + MAX_BACKOFF_S
                pause = INTERVAL_S
            except Unreachable as exc:
                problem = "refuses access" if isinstance(exc, AccessRefused) else "does not answer"
                logger.warning("The remote registry %s: %s", problem, exc)
                pause, is_reconnected = min(2 * pause, MAX_BACKOFF_S), True
            except Exception:  # unsent messages stay until the next attempt
                logger.exception("The exchange with the remote registry failed")
                pause = min(2 * pause, MAX_BACKOFF_S)
            await asyncio.sleep(pause)


async def exchange_status(registry: Database, url: str) -> dict[str, Any]:
    """Return how much is still to be sent to the registry at `url`, and whether answers come from the local copy."""
    waiting = await registry.read(lambda tx: exchange_counts(tx, known_address(tx, url)))
    return {**waiting, "local_copy": await local_copy_note(registry, url) is not None}


async def retry_refused(registry: Registry, url: str) -> None:
    """Mark everything that the registry at `url` refused as unsent: it may accept it by now."""
    notes_url = await registry.read(lambda tx: known_address(tx, url))
    for again in (resend_refused_edits, resend_refused_messages):
        await registry.write(partial(again, url=notes_url))
