"""Test the exchange with a registry elsewhere: each message is on every machine once, despite failures."""

from __future__ import annotations

import gzip
import random
import shutil
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from backoffice.middleware import MAX_BODY
from orchestrator.background import running
from orchestrator.remote.background_exchange import keep_exchanging
from orchestrator.remote.client import RemoteRegistry, Unreachable
from orchestrator.service import Orchestrator
from orchestrator.sync.sync import sync
from orchestrator.views.conversations import rail
from registry.domain import now
from registry.errors import StorageError
from registry.ingest import intake
from registry.ingest.intake import StorageRules
from registry.settings import Settings
from registry.storage.exchange.remote import exchange_counts
from sources.base import Paths
from sources.readers import READERS
from tests.orchestrator.remote.laptops import URL, Laptops, Line, body_of, exchange_twice, texts_by_channel
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, write

pytestmark = pytest.mark.anyio


async def test_a_message_of_one_laptop_is_found_on_the_other(laptops: Laptops) -> None:
    one, two = laptops
    await one.log("basket", "Why does the basket lose items?", "The session expires.", title="Lost basket")
    await one.push()
    assert (await two.pull()).received == 2
    answer = await two.orchestrator.run({"operation": "extract", "query": {"text": "basket loses items"}})
    assert [message["text"] for message in answer["messages"]] == [
        "Why does the basket lose items?",
        "The session expires.",
    ]
    listed = await two.orchestrator.run({"operation": "list", "query": {}})
    assert listed["sessions"][0]["title"] == "Lost basket"


async def test_a_conversation_is_continued_on_both_laptops(laptops: Laptops, elsewhere: Orchestrator) -> None:
    one, two = laptops
    await one.log("basket", "Why does the basket lose items?", "The session expires.")
    await one.push()
    await two.pull()
    await two.log("basket", "And on the phone?", "There it is kept.", start=2)
    await two.push()
    await one.pull()
    whole = [
        *("Why does the basket lose items?", "The session expires.", "And on the phone?", "There it is kept."),
        *("continue", "Done.", "continue", "Done again."),
    ]
    await one.log("basket", *whole)
    await one.push()
    await two.pull()
    assert [await texts_by_channel(each) for each in (one.orchestrator, two.orchestrator, elsewhere)] == 3 * [
        {"basket": whole}
    ]


async def test_repeated_messages_are_sent_as_often_as_they_were_said(laptops: Laptops, elsewhere: Orchestrator) -> None:
    turns = ["continue", "done"] * 9
    for count in range(2, len(turns) + 1, 2):
        await laptops[0].log("basket", *turns[:count])
        assert (await laptops[0].push()).sent == 2
    assert await texts_by_channel(elsewhere) == {"basket": turns}


@pytest.mark.both_databases
async def test_a_clone_on_another_machine_is_the_same_project(
    laptops: Laptops, elsewhere: Orchestrator, tmp_path: Path
) -> None:
    there, here = tmp_path / "one" / "shop", tmp_path / "two" / "basket"
    for folder in (there, here):
        (folder / ".git").mkdir(parents=True)
        (folder / ".git" / "HEAD").touch()
        (folder / ".git" / "config").write_text('[remote "origin"]\n\turl = git@example.org:me/shop.git\n')
    await laptops[0].log("carts", "Why does the cart lose items?", project=str(there))
    await laptops[1].log("baskets", "Why is the basket slow?", start=1, project=str(here))
    shutil.rmtree(there)
    for laptop in (*laptops, *laptops):
        await laptop.push()
        await laptop.pull()
    shutil.rmtree(here / ".git")
    for orchestrator in (laptops[1].orchestrator, elsewhere):
        for folder in (there, here):
            listed = await orchestrator.run({"operation": "list", "query": {"project": str(folder)}})
            assert {session["channel"] for session in listed["sessions"]} == {"carts", "baskets"}
        projects = (await orchestrator.view(rail))["projects"]
        assert [(project["path"], project["channels"]) for project in projects] == [(str(here), 2)]


async def test_received_messages_are_not_sent_back(laptops: Laptops, line: Line) -> None:
    one, two = laptops
    await one.log("basket", "Why does the basket lose items?", "The session expires.")
    await one.push()
    await two.pull()
    line.requests.clear()
    assert (await two.push()).sent == 0
    assert (await one.pull()).received == 0
    assert line.requests == ["GET /bo/changes", "GET /bo/edits"]


async def test_two_laptops_with_the_same_history_end_with_one_channel(
    laptops: Laptops, elsewhere: Orchestrator
) -> None:
    one, two = laptops
    texts = "Why does the basket lose items?", "The session expires.", "And on the phone?", "There it is kept."
    await one.log("cursor_session_1", *texts, session_id="s-1")
    await two.log("cursor_session_0001", *texts[:2], session_id="s-1")
    await one.push()
    await two.push()
    await two.pull()
    assert await texts_by_channel(elsewhere) == {"cursor_session_1": list(texts)}
    assert await texts_by_channel(two.orchestrator) == {"cursor_session_0001": list(texts)}


async def test_a_failing_connection_loses_and_doubles_nothing(
    laptops: Laptops, elsewhere: Orchestrator, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.remote.push.MAX_MESSAGES", 3)
    one, two = laptops
    chance = random.Random(0)
    expected: dict[str, list[str]] = {}
    for number in range(4):
        texts = [f"What about item {at} of {number}?" if at % 4 else "continue" for at in range(7)]
        await one.log(f"basket {number}", *texts)
        expected[f"basket {number}"] = texts
    for laptop, way in ((one, "push"), (two, "pull")):
        line.cuts = lambda: chance.choice(("", "before", "after"))
        for _ in range(200):
            try:
                await getattr(laptop, way)()
            except Unreachable:
                continue
            break
        line.cuts = lambda: ""
        await getattr(laptop, way)()
    assert await texts_by_channel(elsewhere) == expected
    assert await texts_by_channel(two.orchestrator) == expected


async def test_a_refused_message_delays_no_other(
    laptops: Laptops, elsewhere: Orchestrator, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = laptops
    await one.log("long", "Why does the basket lose items?", "x" * 500)
    await one.log("basket", "And on the phone?")
    too_long = httpx.Response(413, json={"error": {"code": "INVALID_REQUEST", "message": "Too long", "details": ""}})
    with line.answered_by(lambda: too_long, lambda request: b"xxxxx" in body_of(request)):
        done = await one.push()
    assert (done.sent, done.refused) == (2, 1)
    assert "Too long" in str(done.why)
    assert await texts_by_channel(elsewhere) == {
        "long": ["Why does the basket lose items?"],
        "basket": ["And on the phone?"],
    }
    standing = await one.orchestrator.registry.read(lambda tx: exchange_counts(tx, URL))
    assert (standing["sent"], standing["refused"], standing["waiting"]) == (2, 1, 0)
    await one.log("long", "Why does the basket lose items?", "x" * 500, "continue", "It is kept.", "continue")
    monkeypatch.setattr("orchestrator.remote.push.MAX_MESSAGES", 2)
    with line.answered_by(lambda: too_long, lambda request: b"xxxxx" in body_of(request)):
        assert (await one.push()).refused == 0
    kept = ["Why does the basket lose items?", "continue", "It is kept.", "continue"]
    assert (await texts_by_channel(elsewhere))["long"] == kept


async def test_a_channel_that_was_deleted_elsewhere_delays_no_other(laptops: Laptops, line: Line) -> None:
    one, two = laptops
    await one.log("basket", "Why does the basket lose items?")
    await one.log("phone", "And on the phone?")
    await one.push()
    gone = httpx.Response(404, json={"error": {"code": "NOT_FOUND", "message": "No such channel", "details": ""}})
    with line.answered_by(lambda: gone, lambda request: request.url.path.endswith("/channels/basket")):
        done = await two.pull()
    assert (done.received, done.refused) == (1, 1)
    assert await texts_by_channel(two.orchestrator) == {"phone": ["And on the phone?"]}


async def test_a_message_that_could_not_be_stored_is_received_the_next_time(
    laptops: Laptops, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = laptops
    await one.log("basket", "Why does the basket lose items?")
    await one.push()

    def full(*_: object, **__: object) -> None:
        raise StorageError("Could not write the registry.", "disk full")

    with monkeypatch.context() as patch:
        patch.setattr("orchestrator.operations.conversation_log.ingest_from_tool", full)
        with pytest.raises(StorageError):
            await two.pull()
    assert (await two.pull()).received == 1
    assert await texts_by_channel(two.orchestrator) == {"basket": ["Why does the basket lose items?"]}


@pytest.mark.parametrize("other", ["pull", "push"])
async def test_two_processes_of_a_machine_that_exchange_at_once_double_nothing(
    laptops: Laptops,
    elsewhere: Orchestrator,
    line: Line,
    other: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, two = laptops
    texts = [f"{'Is' if at % 2 else 'Why is'} item {at} in the basket?" for at in range(12)]
    sender = one if other == "pull" else two
    await sender.log("basket", *texts)
    cuts = iter(("after",))
    line.cuts = lambda: next(cuts, "")
    with pytest.raises(Unreachable):
        await sender.push()
    assert await texts_by_channel(elsewhere) == {"basket": texts}
    answering = line.handle_async_request

    async def meanwhile(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/bo/channels/basket":
            monkeypatch.undo()
            await getattr(two, other)()
        return await answering(request)

    monkeypatch.setattr(line, "handle_async_request", meanwhile)
    await two.pull()
    assert [await texts_by_channel(each) for each in (two.orchestrator, elsewhere)] == 2 * [{"basket": texts}]
    await one.push()
    assert await texts_by_channel(elsewhere) == {"basket": texts}


async def test_messages_in_another_order_are_recognised_by_their_ids(elsewhere: Orchestrator) -> None:
    minutes = iter(range(60))

    def message(text: str) -> dict[str, str]:
        return {"role": "user", "text": text, "timestamp": f"2026-03-02T10:{next(minutes):02}:00Z"}

    async def log(messages: list[dict[str, str]]) -> dict[str, Any]:
        return await elsewhere.run({"operation": "conversation_log", "channel": "basket", "messages": messages})

    stored = [message(text) for text in ("And on the phone?", "Is it empty?", "Why is it red?", "Who sees it?")]
    ids = (await log(stored))["stored_ids"]
    named = [{**one, "stored_id": id_} for one, id_ in zip(stored, ids, strict=True)]
    unacknowledged, new = stored[1], message("Where is it?")
    answer = await log([named[2], named[0], named[3], unacknowledged, new])
    assert answer["stored_ids"][:4] == [ids[2], ids[0], ids[3], ids[1]]
    assert answer["new_count"] == 1
    [last] = [row for row in await elsewhere.registry.get_conversations("basket") if row["text"] == "Where is it?"]
    assert "stored_id" not in last["payload"]
    assert sorted((await texts_by_channel(elsewhere))["basket"]) == sorted(one["text"] for one in [*stored, new])


async def test_an_exchange_that_fails_with_an_unexpected_error_is_tried_again(
    laptops: Laptops, elsewhere: Orchestrator, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = laptops
    await one.log("basket", "Why does the basket lose items?")
    answering = line.handle_async_request
    faults, arrived = iter([RuntimeError("nobody thought of this")]), anyio.Event()

    async def fail_once(request: httpx.Request) -> httpx.Response:
        if fault := next(faults, None):
            raise fault
        answer = await answering(request)
        if request.method == "POST":
            arrived.set()
        return answer

    monkeypatch.setattr(line, "handle_async_request", fail_once)
    monkeypatch.setattr(
        "orchestrator.remote.background_exchange.RemoteRegistry", partial(RemoteRegistry, transport=line)
    )
    monkeypatch.setattr("orchestrator.remote.background_exchange.INTERVAL_S", 0.01)
    async with running(keep_exchanging(one.orchestrator, Settings(remote_url=URL))):
        with anyio.fail_after(60):
            await arrived.wait()
    assert await texts_by_channel(elsewhere) == {"basket": ["Why does the basket lose items?"]}


async def test_requests_are_compressed_and_repeat_little_of_what_was_sent(
    laptops: Laptops, elsewhere: Orchestrator, line: Line
) -> None:
    one, _ = laptops
    texts = [f"What about item {at}? {at * 7} of us have it in the basket, {at * 13} on the phone" for at in range(40)]
    await one.log("basket", *texts)
    await one.push()
    whole = sum(map(len, texts))
    assert line.sent_bytes < whole / 2
    line.sent_bytes = 0
    await one.log("basket", *texts, "continue")
    await one.push()
    assert line.sent_bytes < whole / 4
    assert (await texts_by_channel(elsewhere))["basket"][-3:] == [*texts[-2:], "continue"]


async def test_a_damaged_or_oversized_compressed_body_is_refused(line: Line) -> None:
    async with httpx.AsyncClient(transport=line, base_url=URL) as client:
        headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
        answers = [
            (await client.post("/bo/conversations", content=content, headers=headers)).status_code
            for content in (b"no gzip at all", gzip.compress(b"{}")[:10], gzip.compress(bytes(MAX_BODY + 1), 1))
        ]
    assert answers == [400, 400, 413]


async def test_two_laptops_that_read_the_same_client_account_end_with_one_channel_each(
    laptops: Laptops, elsewhere: Orchestrator, tmp_path: Path
) -> None:
    dialogue = Dialogue(session_id(1))
    for at, login in enumerate(("", " password: hunter2-basket", " password: hunter3-basket")):
        dialogue.user(f"What about item {at} of the basket?{login}")  # each laptop masks it with a different mark
        dialogue.says(f"Item {at} is kept for a week.", f"m{at}")
    write(tmp_path / "account" / ".claude", dialogue)
    for laptop in laptops:
        await sync(laptop.orchestrator, READERS, Paths(tmp_path / "account", {}))
    await exchange_twice(*laptops)
    for machine in (elsewhere, *(laptop.orchestrator for laptop in laptops)):
        [texts] = (await texts_by_channel(machine)).values()
        assert len(texts) == 6
        assert ["[secret:password:" in text for text in texts] == [False, False, True, False, True, False]


async def test_the_same_words_with_another_secret_are_another_message_at_any_time(
    laptops: Laptops, elsewhere: Orchestrator
) -> None:
    one, two = laptops
    await one.log("basket", "Log in. password: hunter2-a-basket")
    await two.log("basket", "Log in. password: hunter3-b-basket")
    await one.log("basket", "Log in. password: hunter4-c-basket", start=5)
    await exchange_twice(*laptops)
    for machine in (elsewhere, *(laptop.orchestrator for laptop in laptops)):
        assert len((await texts_by_channel(machine))["basket"]) == 3


async def test_messages_stored_unmasked_are_sent_masked_and_stored_once(
    laptops: Laptops, elsewhere: Orchestrator, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = laptops
    one.crash(StorageRules(unmasked=("/home/ann/open",)))
    answering = line.handle_async_request
    left: list[bytes] = []

    async def listening(request: httpx.Request) -> httpx.Response:
        left.append(body_of(request))
        return await answering(request)

    monkeypatch.setattr(line, "handle_async_request", listening)
    await one.log("login", "Log in. password: hunter2-a-basket", "Done.", project="/home/ann/open")
    cuts = iter(("after",))
    line.cuts = lambda: next(cuts, "")
    with pytest.raises(Unreachable):
        await one.push()
    await exchange_twice(*laptops)
    assert left
    assert not any(b"hunter2" in body for body in left)
    assert await texts_by_channel(one.orchestrator) == {"login": ["Log in. password: hunter2-a-basket", "Done."]}
    [texts] = (await texts_by_channel(elsewhere)).values()
    assert texts[0].startswith("Log in. password: [secret:password:")
    assert texts[1:] == ["Done."]
    assert await texts_by_channel(two.orchestrator) == {"login": texts}


async def test_messages_sent_again_after_a_servers_clock_was_behind_are_stored_once_with_their_times(
    laptops: Laptops, elsewhere: Orchestrator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = laptops
    talk = Dialogue(session_id(1), at=now() - timedelta(hours=1))
    talk.user("Why does the basket lose items?")
    talk.says("The session expires.", "m1")
    write(tmp_path / ".claude", talk)
    for laptop in laptops:
        await sync(laptop.orchestrator, READERS, Paths(tmp_path, {}))
    with monkeypatch.context() as patch:
        patch.setattr(intake, "now", lambda: now() - timedelta(days=3))
        await one.push()
    await two.push()
    [channel] = await texts_by_channel(elsewhere)
    said = [
        [(row["text"], row["timestamp"]) for row in await machine.registry.get_conversations(channel)]
        for machine in (elsewhere, one.orchestrator)
    ]
    assert said[0] == said[1]


async def test_a_server_whose_clock_is_days_behind_neither_doubles_messages_nor_changes_their_times(
    laptops: Laptops, elsewhere: Orchestrator, line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = line.handle_async_request

    async def days_behind(request: httpx.Request) -> httpx.Response:
        with monkeypatch.context() as patch:
            patch.setattr(intake, "now", lambda: now() - timedelta(days=3))
            return await handle(request)

    monkeypatch.setattr(line, "handle_async_request", days_behind)
    one, two = laptops
    talk = Dialogue(session_id(1), at=now() - timedelta(hours=1))
    texts = []
    for turn in range(4):
        talk.user(f"Question {turn}?")
        talk.says(f"Answer {turn}.", f"m{turn}")
        texts += [f"Question {turn}?", f"Answer {turn}."]
        write(tmp_path / ".claude", talk)
        if turn:  # the first turn comes from the other laptop only
            await sync(two.orchestrator, READERS, Paths(tmp_path, {}))
        await sync(one.orchestrator, READERS, Paths(tmp_path, {}))
        for laptop in (one, two, one):
            await laptop.exchange()
    for machine in (elsewhere, one.orchestrator, two.orchestrator):
        assert list((await texts_by_channel(machine)).values()) == [texts]
    [channel] = await texts_by_channel(one.orchestrator)
    times = [
        [row["timestamp"] for row in await laptop.orchestrator.registry.get_conversations(channel)]
        for laptop in laptops
    ]
    assert times[0] == times[1]
