"""Test that a registry is known by its id: a new address gets nothing again, and a new registry gets everything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from orchestrator.remote.background_exchange import exchange_status, local_copy_note
from orchestrator.remote.client import Unreachable
from orchestrator.service import Orchestrator
from registry.registry import Registry
from registry.storage.exchange import change_feed
from registry.storage.upkeep.table_export import copy_registry
from tests.orchestrator.remote.laptops import URL, Laptop, Laptops, Line, texts_by_channel

pytestmark = pytest.mark.anyio

OTHER_PORT = "http://127.0.0.1:9999"
TEXTS = ["Why does the basket lose items?", "The cookie expires."]


@pytest.fixture
def another_registry(tmp_path: Path) -> Iterator[Orchestrator]:
    registry = Registry(f"sqlite:///{tmp_path / 'another.db'}")  # a copy of the template would have the same id
    yield Orchestrator(registry)
    registry.close()


async def exchange_each(*laptops: Laptop) -> None:
    for laptop in laptops:
        await laptop.exchange()


async def test_at_another_address_nothing_is_sent_or_received_again(
    laptops: Laptops, elsewhere: Orchestrator, line: Line
) -> None:
    one, two = laptops
    await one.log("basket", *TEXTS)
    await two.log("kettle", "Which kettle?", "The blue one.")
    assert (await one.exchange()).sent == 2
    assert (await two.exchange()).received == 2
    assert (await one.exchange()).received == 2
    for address in (OTHER_PORT, URL, OTHER_PORT):
        one.address, line.requests, line.sent_bytes = address, [], 0
        done = await one.exchange()
        assert (done.sent, done.received, done.edits) == (0, 0, 0)
        assert not [request for request in line.requests if request.startswith("POST")]
        standing = await exchange_status(one.orchestrator.registry, address)
        assert (standing["sent"], standing["waiting"], standing["local_copy"]) == (4, 0, False)
    await one.log("basket", "And on the phone?", start=5)
    assert (await one.exchange()).sent == 1
    assert (await texts_by_channel(elsewhere))["basket"] == [*TEXTS, "And on the phone?"]


async def test_positions_stored_before_registries_had_ids_are_used(
    laptops: Laptops, elsewhere: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = laptops
    await one.log("basket", *TEXTS)
    with monkeypatch.context() as patch:
        patch.setattr("registry.storage.exchange.change_feed.registry_id", lambda _tx: "")
        assert (await one.exchange()).sent == 2
    assert (await one.exchange()).sent == 0
    one.address = OTHER_PORT
    assert (await one.exchange()).sent == 0
    assert await local_copy_note(one.orchestrator.registry, OTHER_PORT) is None
    assert await texts_by_channel(elsewhere) == {"basket": TEXTS}


async def test_another_registry_at_the_same_address_gets_everything_and_the_first_one_nothing_twice(
    laptops: Laptops, elsewhere: Orchestrator, line: Line, another_registry: Orchestrator
) -> None:
    one, _ = laptops
    await one.log("basket", *TEXTS)
    for there, expected in ((line, 2), (Line(another_registry), 2), (line, 0), (Line(another_registry), 0)):
        one.line = there
        assert (await one.exchange()).sent == expected
    assert await texts_by_channel(another_registry) == await texts_by_channel(elsewhere) == {"basket": TEXTS}
    await one.log("basket", "And on the phone?", start=5)
    assert (await one.push()).sent == 1  # as in the middle of an outage: without pulling first
    for address, there, expected in ((OTHER_PORT, Line(another_registry), 0), (URL, line, 1)):
        one.address, one.line = address, there
        assert (await one.exchange()).sent == expected


async def test_forgetting_is_sent_to_the_other_address(laptops: Laptops, elsewhere: Orchestrator) -> None:
    one, _ = laptops
    await one.log("basket", *TEXTS)
    await one.exchange()
    one.address = OTHER_PORT
    await one.ask("delete", "basket", soft=False)
    await one.exchange()
    assert await texts_by_channel(elsewhere) == {}


async def test_a_copy_of_the_registry_gets_messages_and_deletions_that_the_original_got_after_the_copy(
    laptops: Laptops, elsewhere: Orchestrator, database_url: str, tmp_path: Path
) -> None:
    one, two = laptops
    await one.log("basket", *TEXTS)
    await one.log("diary", "Where is the key?")
    await exchange_each(one, two, one)
    target = f"sqlite:///{tmp_path / 'copy.db'}"
    copy_registry(database_url, target)
    await two.log("kettle", "Which kettle?", "The blue one.")
    await two.ask("delete", "diary", soft=False)
    await exchange_each(two)
    copy = Orchestrator(Registry(target))
    try:
        one.line = two.line = Line(copy)
        await one.log("phone", "And on the phone?", "There, too.", "Really?", "Yes.")
        await exchange_each(one, two, one)
        everything = {
            "basket": TEXTS,
            "kettle": ["Which kettle?", "The blue one."],
            "phone": ["And on the phone?", "There, too.", "Really?", "Yes."],
        }
        for machine in (copy, one.orchestrator, two.orchestrator):
            assert await texts_by_channel(machine) == everything
        one.line.requests.clear()
        await exchange_each(one, two)
        assert not [request for request in one.line.requests if request.startswith("POST")]
    finally:
        copy.registry.close()


async def test_a_pull_ends_when_another_registry_answers(
    laptops: Laptops, line: Line, another_registry: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = laptops
    await one.log("basket", *TEXTS)
    await one.exchange()
    monkeypatch.setattr(change_feed, "MAX_ROWS", 1)  # messages in an answer
    there = Line(another_registry)

    async def by_turns(request: httpx.Request) -> httpx.Response:
        is_later = request.url.path == "/bo/changes" and request.url.params["after"] != "0"
        return await (there if is_later else line).handle_async_request(request)

    with monkeypatch.context() as patch:
        patch.setattr(two, "line", httpx.MockTransport(by_turns))
        with pytest.raises(Unreachable, match="another registry answers"):
            await two.pull()
    assert await texts_by_channel(two.orchestrator) == {"basket": TEXTS[:1]}
    assert (await two.pull()).received == 1
