"""Sync progress of another registry is stored under the address at which it was first reached."""

from __future__ import annotations

import pytest

from registry.registry import Registry
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.exchange.remote import known_address, note_answer, note_registry, sync_progress

pytestmark = [pytest.mark.anyio, pytest.mark.both_databases]

HOME, PORT, NAME = "http://127.0.0.1:8765", "http://127.0.0.1:9999", "https://memory.example.org"


async def test_progress_stays_under_the_registrys_first_address(registry: Registry) -> None:

    def meet(tx: WriteTransaction) -> list[str]:
        note_answer(tx, HOME, place=7)
        met = [(HOME, "one"), (PORT, "one"), (PORT, "one"), (HOME, "two"), (NAME, "two"), (HOME, "one"), (NAME, "one")]
        return [note_registry(tx, address, id_) for address, id_ in met]

    assert await registry.write(meet) == [HOME, HOME, HOME, "two", "two", HOME, HOME]

    def places(tx: ReadTransaction) -> list[int]:
        return [sync_progress(tx, known_address(tx, address)).place for address in (HOME, PORT, NAME)]

    assert await registry.read(places) == [7, 7, 7]
    assert await registry.read(lambda tx: sync_progress(tx, "two").place) == 0


async def test_another_registry_at_the_same_address_begins_without_progress(registry: Registry) -> None:

    def meet(tx: WriteTransaction) -> list[str]:
        for address, place in ((HOME, 7), (PORT, 8)):  # stored before registries had ids
            note_answer(tx, address, place=place)
        met = [(HOME, "one"), (PORT, "one"), (PORT, "two"), (PORT, "one"), (PORT, "two")]
        return [note_registry(tx, address, id_) for address, id_ in met]

    assert await registry.write(meet) == [HOME, HOME, "two", HOME, "two"]
    assert await registry.read(lambda tx: sync_progress(tx, known_address(tx, PORT)).place) == 0
