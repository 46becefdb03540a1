"""Check, repair, copy, mask and count the registry as a whole, for the terminal and the server's start."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from registry.ingest.intake import Keeping
from registry.ingest.redact_existing import Held as Held
from registry.ingest.redact_existing import note_scanned as note_scanned
from registry.ingest.redact_existing import redact as redact
from registry.ingest.redact_existing import scan as scan
from registry.ingest.redact_existing import scanned as scanned
from registry.monitor.problems import recurring_problems
from registry.monitor.recalls import recall_figures
from registry.registry import Registry
from registry.settings import Settings
from registry.storage.conversations.facets import registry_totals
from registry.storage.database import Database as Database
from registry.storage.database import ReadTransaction
from registry.storage.exchange.edits import tell_again
from registry.storage.exchange.remote import send_again, waiting_for
from registry.storage.index.rebuild_index import reindex as reindex
from registry.storage.migrate import migrate as migrate
from registry.storage.migrations import HEAD as HEAD
from registry.storage.upkeep.copying import copy_registry as copy_registry
from registry.storage.upkeep.inspection import behind as behind
from registry.storage.upkeep.inspection import has_fts5 as has_fts5
from registry.storage.upkeep.inspection import inspect_database as inspect_database
from registry.storage.upkeep.integrity import damage_of as damage_of
from registry.storage.upkeep.integrity import is_sound as is_sound
from registry.storage.upkeep.integrity import was_left_open as was_left_open
from registry.storage.upkeep.salvage import salvage as salvage
from registry.text.privacy.rules import load_rules as load_rules
from registry.text.privacy.rules import use_own_rules as use_own_rules

T = TypeVar("T")


def with_registry(settings: Settings, work: Callable[[Registry], Coroutine[Any, Any, T]]) -> T:
    """Open the configured registry, run some work on it, and close it."""
    registry = Registry(settings.url, keeping=Keeping(settings.unmasked_projects, settings.never_keep))
    try:
        return asyncio.run(work(registry))
    finally:
        registry.close()


def registry_figures(tx: ReadTransaction, days: Sequence[datetime], utc_offset_minutes: int) -> dict[str, Any]:
    """Return what `ctxr stats` shows: totals, messages per day, what was recalled, and recurring problems."""
    return {
        **registry_totals(tx, days),
        **recall_figures(tx, utc_offset_minutes),
        "problems": recurring_problems(tx),
    }


async def exchange_status(registry: Database, url: str) -> dict[str, Any]:
    """Return how much waits for the registry at `url`, and whether answers come from the local copy."""
    from orchestrator.remote.background_exchange import copy_of

    waiting = (await registry.read(lambda tx: waiting_for(tx, url))).as_dict()
    return {**waiting, "local_copy": await copy_of(registry, url) is not None}


async def retry_refused(registry: Registry, url: str) -> None:
    """Send again what the registry at `url` refused: it may accept it by now."""
    for again in (tell_again, send_again):
        await registry.write(partial(again, url=url))
