"""Test messages that were sent half written: every machine has the whole text in the end."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path

import anyio
import httpx
import pytest

from orchestrator.background import running
from orchestrator.remote import background_exchange
from orchestrator.remote.background_exchange import keep_exchanging
from orchestrator.remote.client import RemoteRegistry
from orchestrator.service import Orchestrator
from orchestrator.sync.sync import sync
from registry.domain import now
from registry.settings import Settings
from registry.storage.exchange import edits
from registry.storage.exchange.remote import exchange_counts
from sources.base import Paths
from sources.readers import READERS
from tests.orchestrator.remote.laptops import URL, Laptop, Laptops, Line, body_of, exchange_twice, texts_by_channel
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, write

pytestmark = pytest.mark.anyio


async def read_so_far(laptop: Laptop, folder: Path, answer: str) -> None:
    dialogue = Dialogue(session_id(1))
    dialogue.user("What about the basket?")
    dialogue.says(answer, "m1")
    write(folder / "account" / ".claude", dialogue)
    await sync(laptop.orchestrator, READERS, Paths(folder / "account", {}))


async def test_an_answer_sent_half_written_is_whole_on_all_machines(
    laptops: Laptops, elsewhere: Orchestrator, tmp_path: Path
) -> None:
    one, two = laptops
    for answer in ("It is kept", "It is kept for a week, and then", "It is kept for a week, and then it goes."):
        await read_so_far(one, tmp_path, answer)
        await one.push()
        await two.pull()
    whole = ["What about the basket?", "It is kept for a week, and then it goes."]
    for machine in (elsewhere, *(laptop.orchestrator for laptop in laptops)):
        assert list((await texts_by_channel(machine)).values()) == [whole]
    one.line.requests.clear()
    await exchange_twice(*laptops)
    before = len(one.line.requests)
    await exchange_twice(*laptops)
    assert [path for path in one.line.requests[before:] if path.startswith("POST")] == []


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(days=1)], ids=["clock-right", "clock-a-day-ahead"])
async def test_a_turn_that_was_undone_after_it_was_sent_is_marked_on_all_machines(
    laptops: Laptops, elsewhere: Orchestrator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: timedelta
) -> None:
    one, two = laptops
    talk = Dialogue(session_id(1))
    talk.user("What about the basket?")
    begun = talk.says("It is lost.", "m1")
    talk.user("Delete it, please.")
    asked = list(talk.records)
    again = Dialogue(session_id(1), records=list(asked), parent=begun, at=talk.at)
    again.user("Keep it, please.")
    for records, undone in ((asked, []), (again.records, ["Delete it, please."]), (asked, [])):
        write(tmp_path / "account" / ".claude", Dialogue(session_id(1), records=records))
        with monkeypatch.context() as patch:
            if undone:
                patch.setattr(edits, "now", lambda: now() + ahead)
            await sync(one.orchestrator, READERS, Paths(tmp_path / "account", {}))
        await one.push()
        await two.pull()
        for machine in (one.orchestrator, elsewhere, two.orchestrator):
            [channel] = await texts_by_channel(machine)
            messages = await machine.registry.get_conversations(channel)
            assert [one["text"] for one in messages if one["payload"].get("superseded")][:1] == undone
    one.line.requests.clear()
    await exchange_twice(*laptops)
    before = len(one.line.requests)
    await exchange_twice(*laptops)
    assert [path for path in one.line.requests[before:] if path.startswith("POST")] == []


async def test_an_answer_sent_in_the_middle_of_a_secret_is_whole_on_all_machines(
    laptops: Laptops, elsewhere: Orchestrator, tmp_path: Path
) -> None:
    one, two = laptops
    for answer in ("Set password: hunter2-bas", "Set password: hunter2-basket-9 and start again."):
        await read_so_far(one, tmp_path, answer)
        await one.push()
        await two.pull()
    texts = await texts_by_channel(one.orchestrator)
    [[_, answer]] = texts.values()
    assert answer.startswith("Set password: [secret:password:")
    assert answer.endswith("] and start again.")
    assert await texts_by_channel(elsewhere) == await texts_by_channel(two.orchestrator) == texts


async def test_a_machine_that_receives_a_message_when_it_is_whole_asks_for_nothing_more(
    laptops: Laptops, line: Line, tmp_path: Path
) -> None:
    one, two = laptops
    for answer in ("It is kept", "It is kept for a week"):
        await read_so_far(one, tmp_path, answer)
        await one.push()
    line.requests.clear()
    await two.pull()
    assert list((await texts_by_channel(two.orchestrator)).values()) == [
        ["What about the basket?", "It is kept for a week"]
    ]
    assert [path for path in line.requests if "/bo/conversations/" in path] == []


async def test_a_message_that_grew_is_sent_as_an_edit_only_if_it_was_sent_before(
    laptops: Laptops, tmp_path: Path
) -> None:
    one, _ = laptops

    async def waiting() -> tuple[int, int]:
        found = await one.orchestrator.registry.read(lambda tx: exchange_counts(tx, URL))
        return found["waiting"], found["edits"]

    await read_so_far(one, tmp_path, "It is kept")
    await read_so_far(one, tmp_path, "It is kept for a week")
    assert await waiting() == (2, 0)
    await one.push()
    await read_so_far(one, tmp_path, "It is kept for a week, and then it goes.")
    assert await waiting() == (0, 1)
    await one.push()
    assert await waiting() == (0, 0)


@pytest.mark.parametrize("is_watched", [True, False])
async def test_a_refused_edit_is_sent_again_after_an_outage_or_a_restart(
    laptops: Laptops,
    elsewhere: Orchestrator,
    line: Line,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_watched: bool,
) -> None:
    one, _ = laptops
    error = {"code": "INVALID_REQUEST", "message": "The request is not valid.", "details": "not now"}
    answering, is_asked, is_sent = line.handle_async_request, anyio.Event(), anyio.Event()

    async def refusing(request: httpx.Request) -> httpx.Response:
        if b'"grows"' not in body_of(request):
            return await answering(request)
        is_asked.set()
        return httpx.Response(400, json={"ok": False, "error": error})

    async def taking(request: httpx.Request) -> httpx.Response:
        if outage:
            raise outage.pop()
        answer = await answering(request)
        if b'"grows"' in body_of(request):
            is_sent.set()
        return answer

    outage = [httpx.ConnectError("it is replaced")] if is_watched else []
    monkeypatch.setattr(background_exchange, "RemoteRegistry", partial(RemoteRegistry, transport=line))
    monkeypatch.setattr(background_exchange, "INTERVAL_S", 0.01)
    await read_so_far(one, tmp_path, "It is kept")
    await one.push()
    await read_so_far(one, tmp_path, "It is kept for a week.")
    monkeypatch.setattr(line, "handle_async_request", refusing)
    assert "not now" in str((await one.push()).why)
    assert "not now" in str((await one.orchestrator.registry.read(lambda tx: exchange_counts(tx, URL)))["edit_refused"])
    is_asked = anyio.Event()
    with anyio.fail_after(60):
        if not is_watched:
            monkeypatch.setattr(line, "handle_async_request", taking)
        async with running(keep_exchanging(one.orchestrator, Settings(remote_url=URL))):
            if is_watched:
                await is_asked.wait()
                monkeypatch.setattr(line, "handle_async_request", taking)
            await is_sent.wait()
    assert list((await texts_by_channel(elsewhere)).values()) == [["What about the basket?", "It is kept for a week."]]


async def test_a_longer_text_is_not_sent_again_if_the_message_differs_elsewhere(
    laptops: Laptops, elsewhere: Orchestrator, line: Line, tmp_path: Path
) -> None:
    one, _ = laptops
    await read_so_far(one, tmp_path, "It is kept")
    await one.push()
    await elsewhere.registry.write(
        lambda tx: tx.exec_driver_sql("UPDATE conversation SET text = 'Lost' WHERE role = 'assistant'")
    )
    await read_so_far(one, tmp_path, "It is kept for a week.")
    await one.push()
    standing = await one.orchestrator.registry.read(lambda tx: exchange_counts(tx, URL))
    assert (standing["edits"], standing["edit_refused"]) == (0, None)


async def test_an_edit_of_a_message_from_elsewhere_is_taken_only_if_it_lengthens_the_text(
    laptops: Laptops, elsewhere: Orchestrator
) -> None:
    one, _ = laptops
    await one.log("basket", "Why does the basket lose items?", "The session expires.")
    await one.push()
    [_, stored] = await elsewhere.registry.get_conversations("basket")
    message = {"role": "assistant", "text": "Nothing is lost.", "stored_id": stored["id"]}
    given = {"operation": "conversation_log", "channel": "basket", "messages": [message], "source": "cursor"}
    await elsewhere.run(given)
    texts = (await texts_by_channel(elsewhere))["basket"]
    assert texts == ["Why does the basket lose items?", "The session expires.", "Nothing is lost."]
    refused = await elsewhere.run({**given, "messages": [{**message, "text": "So?"}], "grows": stored["id"]})
    assert refused["error"]["code"] == "INVALID_REQUEST"
    assert (await texts_by_channel(elsewhere))["basket"] == texts
