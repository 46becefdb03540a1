"""Record which conversations of other people an administrator has read, so that their owners can see it."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from orchestrator.recording.recorder import Recorder, Records
from registry.access import Access, Level
from registry.registry import Registry
from registry.storage.conversations.belonging import owned_by_others
from registry.storage.records.executions import Door

_WORDS = frozenset({"text", "messages", "matches", "line"})
"""Keys of what quotes a conversation; a list of titles is no reading."""


async def note_readings(
    records: Records, registry: Registry, told: Any, access: Access | None, run: Recorder, door: Door
) -> None:
    """Keep a run of `fetch` for each channel of another person that an answer quotes, besides the run's own."""
    if access is None or access.owner is None or access.level is not Level.ADMIN:
        return
    owner, names = access.owner, set(_quoted(told)) - {run.channel}
    readings = []
    for name in await registry.read(lambda tx: owned_by_others(tx, names, owner)) if names else ():
        reading = Recorder("fetch", run.source, run.client, name)
        reading.token, reading.door, reading.request = access.name, door, {"by": run.operation}
        readings.append(reading.finished({}))
    await asyncio.gather(*map(records.store, readings))


def _quoted(told: Any) -> Iterator[str]:
    if is_dataclass(told):
        told = {field.name: getattr(told, field.name) for field in fields(told)}
    if isinstance(told, Mapping):
        if isinstance(told.get("channel"), str) and not _WORDS.isdisjoint(told):
            yield told["channel"]
        told = list(told.values())
    if isinstance(told, list | tuple):
        for part in told:
            yield from _quoted(part)
