"""A message that was sent while its client still wrote it: it is whole everywhere in the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.remote.client import RemoteRegistry
from orchestrator.service import Orchestrator
from orchestrator.sync.sync import sync
from registry.storage.exchange.remote import waiting_for
from sources.base import Places
from sources.readers import READERS
from tests.orchestrator.remote.laptops import URL, Laptop, Line, said
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, write

pytestmark = pytest.mark.anyio


async def read_so_far(laptop: Laptop, folder: Path, answer: str) -> None:
    dialogue = Dialogue(session_id(1))
    dialogue.user("What about the basket?")
    dialogue.says(answer, "m1")
    write(folder / "account" / ".claude", dialogue)
    await sync(laptop.orchestrator, READERS, Places(folder / "account", {}))


async def test_an_answer_that_was_sent_half_written_is_whole_everywhere(
    laptops: tuple[Laptop, Laptop], elsewhere: Orchestrator, tmp_path: Path
) -> None:
    one, two = laptops
    for answer in ("It is kept", "It is kept for a week, and then", "It is kept for a week, and then it goes."):
        await read_so_far(one, tmp_path, answer)
        await one.push()
        await two.pull()
    whole = ["What about the basket?", "It is kept for a week, and then it goes."]
    for machine in (elsewhere, *(laptop.orchestrator for laptop in laptops)):
        assert list((await said(machine)).values()) == [whole]
    one.line.requests.clear()
    for laptop in (*laptops, *laptops, *laptops):
        await laptop.pull()
        await laptop.push()
    before = len(one.line.requests)
    for laptop in laptops:
        await laptop.pull()
        await laptop.push()
    assert [path for path in one.line.requests[before:] if path.startswith("POST")] == []


async def test_an_answer_that_was_sent_in_the_middle_of_a_secret_is_whole_everywhere(
    laptops: tuple[Laptop, Laptop], elsewhere: Orchestrator, tmp_path: Path
) -> None:
    one, two = laptops
    for answer in ("Set password: hunter2-bas", "Set password: hunter2-basket-9 and start again."):
        await read_so_far(one, tmp_path, answer)
        await one.push()
        await two.pull()
    texts = await said(one.orchestrator)
    [[_, answer]] = texts.values()
    assert answer.startswith("Set password: [secret:password:")
    assert answer.endswith("] and start again.")
    assert await said(elsewhere) == await said(two.orchestrator) == texts


async def test_who_reads_a_message_only_when_it_is_whole_asks_for_nothing_more(
    laptops: tuple[Laptop, Laptop], line: Line, tmp_path: Path
) -> None:
    one, two = laptops
    for answer in ("It is kept", "It is kept for a week"):
        await read_so_far(one, tmp_path, answer)
        await one.push()
    line.requests.clear()
    await two.pull()
    assert list((await said(two.orchestrator)).values()) == [["What about the basket?", "It is kept for a week"]]
    assert [path for path in line.requests if "/bo/conversations/" in path] == []


async def test_what_has_grown_waits_by_itself_only_where_it_was_sent_before(
    laptops: tuple[Laptop, Laptop], tmp_path: Path
) -> None:
    one, _ = laptops

    async def waiting() -> tuple[int, int]:
        found = await one.orchestrator.registry.read(lambda tx: waiting_for(tx, URL))
        return found.waiting, found.edits

    await read_so_far(one, tmp_path, "It is kept")
    await read_so_far(one, tmp_path, "It is kept for a week")
    assert await waiting() == (2, 0)
    await one.push()
    await read_so_far(one, tmp_path, "It is kept for a week, and then it goes.")
    assert await waiting() == (0, 1)
    await one.push()
    assert await waiting() == (0, 0)


async def test_an_older_release_takes_a_grown_message_for_a_word_on_a_channel_that_it_lacks(
    laptops: tuple[Laptop, Laptop], elsewhere: Orchestrator, line: Line
) -> None:
    one, _ = laptops
    await one.log("basket", "Why does the basket lose items?", "The session")
    await one.push()
    [_, stored] = await elsewhere.registry.get_conversations("basket")
    message = {"role": "assistant", "text": "The session expires.", "stored_id": stored["id"]}
    given = {"operation": "conversation_log", "channel": "basket", "messages": [message], "source": "cursor"}
    assert (await elsewhere.run({**given, "grows": stored["id"]}))["success"]
    async with RemoteRegistry(URL, transport=line) as remote:
        [told] = (await remote.edits(0)).items
    assert (told.field, told.value["id"]) == ("text", stored["id"])
    assert not any((told.message_id, told.names, told.session_id))  # by these it would look for something to do


async def test_only_more_words_of_a_message_from_elsewhere_are_taken(
    laptops: tuple[Laptop, Laptop], elsewhere: Orchestrator
) -> None:
    one, _ = laptops
    await one.log("basket", "Why does the basket lose items?", "The session expires.")
    await one.push()
    [_, stored] = await elsewhere.registry.get_conversations("basket")
    message = {"role": "assistant", "text": "Nothing is lost.", "stored_id": stored["id"]}
    given = {"operation": "conversation_log", "channel": "basket", "messages": [message], "source": "cursor"}
    await elsewhere.run(given)
    texts = (await said(elsewhere))["basket"]
    assert texts == ["Why does the basket lose items?", "The session expires.", "Nothing is lost."]
    refused = await elsewhere.run({**given, "messages": [{**message, "text": "So?"}], "grows": stored["id"]})
    assert refused["error"]["code"] == "INVALID_REQUEST"
    assert (await said(elsewhere))["basket"] == texts
