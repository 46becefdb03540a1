"""Open an orchestrator over the configured registry, with its background work."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from orchestrator.background import running
from orchestrator.operations.resume import remove_imported
from orchestrator.semantic.meaning import open_meaning
from orchestrator.service import Orchestrator
from orchestrator.state import ExternalAction, LocalFiles
from orchestrator.sync.drain import drain
from orchestrator.sync.spool import share_masking
from orchestrator.sync.sync import Freshness
from registry.ingest.intake import StorageRules
from registry.ingest.redact_existing import rescan_if_rules_changed
from registry.monitor.prices import use_prices
from registry.registry import Registry
from registry.settings import Settings
from registry.storage.connections import keep_private, private_files_of
from registry.storage.database import Limits
from registry.storage.safety.masking import find_key
from registry.storage.upkeep.inspection import is_sound, log_was_left
from registry.temporary_folder import remove_leftovers
from registry.text.privacy.rules import use_own_rules
from sources.base import Paths
from sources.readers import READERS

if TYPE_CHECKING:
    from orchestrator.outside.language_model import LanguageModel

T = TypeVar("T")

logger = logging.getLogger(__name__)


@asynccontextmanager
async def open_orchestrator(settings: Settings) -> AsyncIterator[Orchestrator]:
    """Open an orchestrator over the configured registry, and close it at the end.

    An embedded registry keeps up with the stores of this machine. A shared one gets them only by `ctxr sync`.
    """
    keep_private(private_files_of(settings.home))
    for folder in (None, settings.home / "backups"):
        remove_leftovers(folder)
    use_own_rules(settings.home)
    use_prices(settings.home, are_shown=settings.prices == "on")
    limits = Limits(lock_s=10.0, statement_s=settings.timeout_s)
    storage_rules = StorageRules(settings.unmasked_projects, settings.never_keep)
    registry = await asyncio.to_thread(Registry, settings.url, limits, storage_rules, settings.database_read_url)
    with suppress(OSError):  # hooks write nothing into a read-only folder either
        key: bytes | None = await registry.read(find_key)
        share_masking(str(settings.home), key or b"", settings.unmasked_projects)
    meaning = open_meaning(settings, registry)
    writer = _writer(settings)
    actions: list[ExternalAction] = []
    if settings.actions:
        from orchestrator.outside.tools import McpAction

        actions += [McpAction(one) for one in settings.actions]
    paths = Paths(Path.home(), os.environ)
    orchestrator = Orchestrator(
        registry,
        timeout_s=settings.timeout_s,
        meaning=meaning,
        actions=actions,
        writer=writer,
        local_files=LocalFiles(settings.home / "backups", READERS, paths, settings.home / "resume"),
    )
    freshness = Freshness(orchestrator, settings.home, READERS, paths)
    if registry.syncs_automatically:
        orchestrator.before_reading = freshness.refresh
    if registry.is_read_only:
        logger.warning("The registry is read only: nothing new is stored, and nothing is recorded.")
    if meaning and not registry.is_read_only:
        orchestrator.background.append(meaning.embedding)
    if registry.is_embedded and not registry.is_read_only:
        orchestrator.background.append(lambda: running(rescan_if_rules_changed(registry, settings.home)))
    if settings.remote_url and not registry.is_read_only:
        # imports an HTTP client, which is only needed here
        from orchestrator.remote.background_exchange import keep_exchanging, local_copy_note

        orchestrator.remote_url = settings.remote_url
        orchestrator.local_copy = partial(local_copy_note, registry, settings.remote_url)
        orchestrator.background.append(lambda: running(keep_exchanging(orchestrator, settings)))
    try:
        if not registry.is_read_only:
            await drain(orchestrator, settings.home)
            await registry.read(lambda tx: remove_imported(tx, settings.home / "resume"))
        yield orchestrator
    finally:
        await freshness.close()
        await orchestrator.settle()
        if meaning:
            await meaning.close()
        if writer:
            await writer.close()
        await asyncio.to_thread(registry.close)


def _writer(settings: Settings) -> LanguageModel | None:
    if not settings.llm_base_url:
        return None
    from orchestrator.outside.language_model import LanguageModel  # imports an HTTP client

    key = settings.llm_api_key.get_secret_value()
    return LanguageModel(settings.llm_base_url, settings.llm_model, key, timeout_s=settings.llm_timeout_s)


def was_left_open(settings: Settings) -> bool:
    return settings.url.startswith("sqlite") and log_was_left(Path(settings.url.removeprefix("sqlite:///")))


async def check_after_kill(registry: Registry) -> None:
    if not await is_sound(registry):
        logger.error(
            "The registry is damaged. `ctxr doctor --deep` shows the damage, `ctxr db salvage` saves what can be read."
        )


def with_registry(settings: Settings, work: Callable[[Registry], Coroutine[Any, Any, T]]) -> T:
    """Open the configured registry alone, run some work on it, and close it."""
    registry = Registry(settings.url, storage_rules=StorageRules(settings.unmasked_projects, settings.never_keep))
    try:
        return asyncio.run(work(registry))
    finally:
        registry.close()
