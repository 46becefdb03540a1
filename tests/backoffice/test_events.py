"""Test /bo/events: events as they happen, and those that a listener missed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import httpx
import pytest

import backoffice.events
from orchestrator.views import events
from registry.errors import StorageError
from registry.registry import Registry
from registry.storage.exchange import change_feed
from tests.backoffice.conftest import Log
from tests.backoffice.event_stream import Open

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def fast_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_feed, "POLL_S", 0.01)
    monkeypatch.setattr(events, "RETRY_S", 0.01)
    monkeypatch.setattr(backoffice.events, "KEEP_ALIVE_S", 0.02)


async def test_a_stored_message_and_its_execution_are_sent_as_the_lists_show_them(
    http: httpx.AsyncClient, log: Log, listening: Open
) -> None:
    async with listening() as stream:
        [id] = await log("c", "첫 줄\n둘째 줄\u2028끝")
        kind, _, message = await stream.next()
        assert (kind, message) == ("message", (await http.get(f"/bo/conversations/{id}")).json())
        kind, _, execution = await stream.next()
        assert kind == "execution"
        assert execution == (await http.get("/bo/ao/executions")).json()["items"][0]


async def test_a_new_listener_gets_only_new_events(log: Log, listening: Open) -> None:
    await log("c", "before")
    async with listening() as stream:
        await log("c", "after", start="2025-09-30T00:00")
        assert (await stream.next())[2]["text"] == "after"


@pytest.mark.parametrize("told", [lambda place: {"last_event_id": place}, lambda place: {"query": f"after={place}"}])
async def test_a_listener_that_reconnects_gets_just_the_events_it_missed(
    log: Log, listening: Open, told: Callable[[str], dict[str, str]]
) -> None:
    async with listening() as stream:
        await log("c", "one")
        await stream.next()
        _, last_seen, _ = await stream.next()
    await log("c", "two", start="2025-09-29T15:00")
    await log("c", "three", start="2025-09-29T16:00")
    async with listening(**told(last_seen)) as stream:
        missed = [await stream.next() for _ in range(4)]
        assert [item["text"] for kind, _, item in missed if kind == "message"] == ["two", "three"]
        assert [item["operation"] for kind, _, item in missed if kind == "execution"] == ["conversation_log"] * 2
        await log("c", "four", start="2025-09-29T17:00")
        assert (await stream.next())[2]["text"] == "four"


async def test_missed_events_are_sent_in_one_piece_so_that_few_are_sent_to_a_listener_that_left(
    log: Log, listening: Open
) -> None:
    async with listening() as stream:
        await log("c", "one")
        _, first, _ = await stream.next()
    await log("c", "two", "three", start="2025-09-29T15:00")
    async with listening(first) as stream:
        sent = await stream.chunk()
        assert (sent.count("event: message"), sent.count("event: execution")) == (2, 2)


async def test_a_listener_disconnected_between_two_events_misses_neither_kind(log: Log, listening: Open) -> None:
    async with listening() as stream:
        await log("c", "one", "two")
        _, after_the_first, item = await stream.next()
        assert item["text"] == "one"
    async with listening(after_the_first) as stream:
        rest = [await stream.next() for _ in range(2)]
        assert [kind for kind, _, _ in rest] == ["message", "execution"]


@pytest.mark.both_databases
async def test_messages_that_another_process_stores_are_sent_too(database_url: str, listening: Open) -> None:
    other = Registry(database_url)
    async with listening() as stream:
        await other.save_conversation("c", [{"role": "user", "text": "from elsewhere"}], "cursor")
        assert (await stream.next())[2]["text"] == "from elsewhere"
    other.close()


async def test_an_outage_of_the_registry_does_not_end_the_stream(
    log: Log, listening: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with listening() as stream:
        read, failed = Registry.read, anyio.Event()

        async def lost_once(self: Registry, work: Any) -> Any:
            if failed.is_set():
                return await read(self, work)
            failed.set()
            raise StorageError("Could not read the registry.")

        monkeypatch.setattr(Registry, "read", lost_once)
        await failed.wait()
        await log("c", "after the outage")
        assert (await stream.next())[2]["text"] == "after the outage"


async def test_an_idle_stream_sends_comments(listening: Open) -> None:
    async with listening() as stream:
        assert (await stream.block()).startswith(":")


async def test_a_stream_ends_when_its_client_disconnects(listening: Open) -> None:
    async with listening() as stream:
        stream.leave()
        await stream.ended.wait()


async def test_an_invalid_last_event_id_is_refused(http: httpx.AsyncClient) -> None:
    for given in ["x", "1", "1.", "-1.2", "1.2.3", "1.99999999999999999999"]:
        answer = await http.get("/bo/events", headers={"Last-Event-ID": given})
        assert answer.status_code == 400
        assert answer.json()["error"]["details"].startswith("Last-Event-ID: ")
