"""Test edits on several machines (names, tags, deletions, forgetting): all apply them, and the latest wins."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from orchestrator.remote.client import Unreachable
from orchestrator.service import Orchestrator
from orchestrator.sync.sync import sync
from registry.errors import StorageError
from registry.storage.conversations.belonging import pinned_channels
from registry.storage.exchange import edits, forgetting_elsewhere
from registry.storage.exchange.remote import exchange_counts
from registry.storage.paging import Page
from registry.storage.records.executions import list_executions
from sources.base import Paths
from sources.readers import READERS
from tests.orchestrator.remote.laptops import URL, Laptop, Laptops, ask, body_of, texts_by_channel
from tests.sources.claude_code.claude_code_files import BEGIN, Dialogue, session_id, write

pytestmark = pytest.mark.anyio

QUESTION, ANSWER = "Why does the basket lose items?", "The session expires."


async def name(laptop: Laptop, channel: str = "basket", **query: Any) -> None:
    await laptop.ask("tag", channel, **query)


async def exchange(*laptops: Laptop) -> None:
    """Exchange on each laptop, then again on all but the last, which receive its edits."""
    for laptop in (*laptops, *laptops[:-1]):
        await laptop.pull()
        await laptop.push()


async def names(orchestrator: Orchestrator) -> list[tuple[str | None, str | None, list[str]]]:
    sessions = (await ask(orchestrator, "list"))["sessions"]
    return sorted((one["title"], one["nickname"], one["tags"]) for one in sessions)


async def pinned(orchestrator: Orchestrator) -> int:
    return len(await orchestrator.registry.read(lambda tx: pinned_channels(tx, 10)))


@pytest.fixture
async def both(laptops: Laptops) -> Laptops:
    """Return the laptops after both have received one conversation."""
    one, two = laptops
    await one.log("basket", QUESTION, ANSWER)
    await exchange(one, two)
    return laptops


async def test_names_tags_and_pins_travel_both_ways(both: Laptops, elsewhere: Orchestrator) -> None:
    one, two = both
    await name(one, title="Lost basket", nickname="basket1", add_tags=["shop"], pinned=True)
    await exchange(one, two)
    assert [await pinned(some) for some in (one.orchestrator, two.orchestrator, elsewhere)] == [1, 1, 1]
    await name(two, remove_tags=["shop"], add_tags=["web"], pinned=False)
    await exchange(two, one)
    for orchestrator in (one.orchestrator, two.orchestrator, elsewhere):
        assert await names(orchestrator) == [("Lost basket", "basket1", ["web"])]
    assert [await pinned(some) for some in (one.orchestrator, two.orchestrator, elsewhere)] == [0, 0, 0]


async def test_the_later_edit_wins_in_any_order_of_arrival(both: Laptops, elsewhere: Orchestrator) -> None:
    one, two = both
    await name(one, nickname="early", add_tags=["early", "both"])
    await name(two, nickname="late", add_tags=["late", "both"])
    await name(one, remove_tags=["both"])
    await exchange(two, one)
    for orchestrator in (one.orchestrator, two.orchestrator, elsewhere):
        assert await names(orchestrator) == [(None, "late", ["early", "late"])]


async def test_a_title_given_later_stays_when_a_machine_that_does_not_know_it_sends_a_message(
    both: Laptops, elsewhere: Orchestrator
) -> None:
    one, two = both
    await name(one, title="Early")
    await exchange(one, two)
    await name(two, title="Late")
    await two.push()
    await one.orchestrator.registry.save_conversation("basket", [{"role": "user", "text": "And then?"}], "cursor")
    await one.push()
    await exchange(one, two)
    for orchestrator in (one.orchestrator, two.orchestrator, elsewhere):
        assert await names(orchestrator) == [("Late", None, [])]


async def test_a_channel_that_gave_its_nickname_away_keeps_its_next_one(both: Laptops, elsewhere: Orchestrator) -> None:
    one, two = both
    await name(one, "basket", nickname="shop")
    await exchange(one, two)
    await two.log("phone", "Why is the phone silent?", "It is muted.")
    for channel, nickname in (("basket", "old shop"), ("phone", "shop"), ("basket", "first shop")):
        await name(two, channel, nickname=nickname)
    await exchange(two, one)
    for machine in (elsewhere, one.orchestrator, two.orchestrator):
        sessions = (await ask(machine, "list"))["sessions"]
        assert {one["channel"]: one["nickname"] for one in sessions} == {"basket": "first shop", "phone": "shop"}


@pytest.mark.both_databases
async def test_of_two_channels_with_one_nickname_the_later_has_it(laptops: Laptops, elsewhere: Orchestrator) -> None:
    one, two = laptops
    await one.log("basket", QUESTION, title="A")
    await two.log("phone", "And on the phone?", title="B")
    await name(one, "basket", nickname="shop")
    await name(two, "phone", nickname="Shop")
    await exchange(one, two)
    for orchestrator in (one.orchestrator, two.orchestrator, elsewhere):
        assert await names(orchestrator) == [("A", None, []), ("B", "Shop", [])]


async def test_a_deleted_message_is_deleted_everywhere_and_comes_back(both: Laptops, elsewhere: Orchestrator) -> None:
    one, two = both
    [_, second] = await one.orchestrator.registry.get_conversations("basket")
    await one.ask("delete", id=second["id"])
    await exchange(one, two)
    for orchestrator in (one.orchestrator, two.orchestrator, elsewhere):
        assert await texts_by_channel(orchestrator) == {"basket": [QUESTION]}
    await one.ask("restore", id=second["id"])
    await exchange(one, two)
    for orchestrator in (one.orchestrator, two.orchestrator, elsewhere):
        assert await texts_by_channel(orchestrator) == {"basket": [QUESTION, ANSWER]}


@pytest.mark.parametrize("is_deletion_first", [True, False])
async def test_a_message_restored_after_its_conversation_was_deleted_stays(
    both: Laptops, elsewhere: Orchestrator, is_deletion_first: bool
) -> None:
    one, two = both
    [_, second] = await two.orchestrator.registry.get_conversations("basket")
    await two.ask("delete", id=second["id"])
    await one.ask("delete", "basket")
    await two.ask("restore", id=second["id"])
    await exchange(*(both if is_deletion_first else (two, one)))
    for orchestrator in (one.orchestrator, two.orchestrator, elsewhere):
        assert await texts_by_channel(orchestrator) == {"basket": [ANSWER]}


@pytest.mark.parametrize("is_known_as_deleted", [True, False])
async def test_a_message_restored_before_its_conversation_was_deleted_goes(
    both: Laptops, elsewhere: Orchestrator, is_known_as_deleted: bool
) -> None:
    one, two = both
    [_, second] = await two.orchestrator.registry.get_conversations("basket")
    await two.ask("delete", id=second["id"])
    if is_known_as_deleted:
        await exchange(two, one)
    await two.ask("restore", id=second["id"])
    await one.ask("delete", "basket")
    await exchange(two, one)
    for orchestrator in (one.orchestrator, two.orchestrator, elsewhere):
        assert await texts_by_channel(orchestrator) == {}
    await one.ask("restore", "basket")
    await exchange(one, two)
    for orchestrator in (one.orchestrator, two.orchestrator, elsewhere):
        assert await texts_by_channel(orchestrator) == {"basket": [QUESTION, ANSWER]}


async def test_an_edit_that_could_not_be_stored_is_applied_the_next_time(
    both: Laptops, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = both
    await one.ask("delete", "basket")
    await one.push()

    def full(*_: object, **__: object) -> None:
        raise StorageError("Could not write the registry.", "disk full")

    with monkeypatch.context() as patch:
        patch.setattr("orchestrator.operations.delete.delete_channel", full)
        with pytest.raises(StorageError):
            await two.pull()
    assert await texts_by_channel(two.orchestrator) == {"basket": [QUESTION, ANSWER]}
    await two.pull()
    assert await texts_by_channel(two.orchestrator) == {}


@pytest.mark.both_databases
async def test_a_conversation_deleted_elsewhere_goes_and_what_is_said_later_stays(
    both: Laptops, elsewhere: Orchestrator
) -> None:
    one, two = both
    await one.ask("delete", "basket")
    later = {"role": "user", "text": "And on the phone?"}  # has the present time, which is after the deletion
    await two.orchestrator.registry.save_conversation("basket", [later], "cursor")
    await exchange(one, two)
    for orchestrator in (one.orchestrator, two.orchestrator, elsewhere):
        assert await texts_by_channel(orchestrator) == {"basket": ["And on the phone?"]}


async def say_with_a_clock_ahead(laptop: Laptop, text: str) -> None:
    said = {"role": "user", "text": text, "timestamp": (datetime.now(UTC) + timedelta(hours=3)).isoformat()}
    await laptop.orchestrator.registry.save_conversation("basket", [said], "cursor")


@pytest.mark.both_databases
@pytest.mark.parametrize("restorer", [0, 1])
async def test_a_conversation_deleted_before_the_date_of_its_last_message_goes_and_comes_back_whole(
    both: Laptops, elsewhere: Orchestrator, restorer: int
) -> None:
    one, two = both
    await say_with_a_clock_ahead(two, "Since when?")
    await exchange(two, one)
    await one.ask("delete", "basket")
    later = {"role": "user", "text": "And on the phone?"}
    await two.orchestrator.registry.save_conversation("basket", [later], "cursor")
    await exchange(one, two)
    for orchestrator in (one.orchestrator, two.orchestrator, elsewhere):
        assert await texts_by_channel(orchestrator) == {"basket": ["And on the phone?"]}
    await both[restorer].ask("restore", "basket")
    await exchange(one, two)
    for orchestrator in (one.orchestrator, two.orchestrator, elsewhere):
        [texts] = (await texts_by_channel(orchestrator)).values()
        assert texts == [QUESTION, ANSWER, "And on the phone?", "Since when?"]


async def test_a_conversation_restored_before_another_machine_heard_of_its_deletion_is_whole_there(
    both: Laptops, elsewhere: Orchestrator
) -> None:
    one, two = both
    await say_with_a_clock_ahead(two, "Since when?")
    await exchange(two, one)
    for operation in ("delete", "restore"):
        await one.ask(operation, "basket")
        await one.push()
    await exchange(two, one)
    for orchestrator in (one.orchestrator, two.orchestrator, elsewhere):
        assert await texts_by_channel(orchestrator) == {"basket": [QUESTION, ANSWER, "Since when?"]}


async def test_a_late_message_goes_if_it_is_older_than_the_deletion_and_one_said_later_stays(
    both: Laptops, elsewhere: Orchestrator
) -> None:
    one, two = both
    await two.log("basket", "Since when?", start=9)
    await two.push()
    await one.ask("delete", "basket")
    later = {"role": "user", "text": "And on the phone?"}
    await two.orchestrator.registry.save_conversation("basket", [later], "cursor")
    await two.push()
    await exchange(one, two)
    for orchestrator in (one.orchestrator, two.orchestrator, elsewhere):
        assert await texts_by_channel(orchestrator) == {"basket": ["And on the phone?"]}
    await two.ask("restore", "basket")
    await exchange(two, one)
    for orchestrator in (one.orchestrator, two.orchestrator, elsewhere):
        assert sorted((await texts_by_channel(orchestrator))["basket"]) == sorted(
            [QUESTION, ANSWER, "Since when?", "And on the phone?"]
        )


async def test_what_is_sent_after_a_deletion_that_its_machine_does_not_know_goes_if_it_was_said_before(
    both: Laptops, elsewhere: Orchestrator
) -> None:
    one, two = both
    await two.log("basket", "Since when?", start=9)
    await one.ask("delete", "basket")
    await one.push()
    later = {"role": "user", "text": "And on the phone?"}
    await two.orchestrator.registry.save_conversation("basket", [later], "cursor")
    await two.push()
    assert await texts_by_channel(elsewhere) == {"basket": ["And on the phone?"]}
    await exchange(one, two)
    for orchestrator in (one.orchestrator, two.orchestrator, elsewhere):
        assert await texts_by_channel(orchestrator) == {"basket": ["And on the phone?"]}


async def test_names_given_while_a_conversation_is_deleted_elsewhere_hold_when_it_is_restored(
    both: Laptops, elsewhere: Orchestrator
) -> None:
    one, two = both
    await two.ask("delete", "basket")
    await two.push()
    await name(one, title="The basket", nickname="shop", add_tags=["api"])
    await one.ask("share", "basket", **{"with": "team"})
    await exchange(one, two)
    assert await names(elsewhere) == []
    await one.ask("restore", "basket")
    await exchange(one, two)
    for machine in (elsewhere, one.orchestrator, two.orchestrator):
        assert await names(machine) == [("The basket", "shop", ["api"])]
        assert (await ask(machine, "list"))["sessions"][0]["shared_with"] == "team"


async def test_edits_of_a_chat_that_was_not_sent_are_sent_once_another_machine_has_sent_it(
    laptops: Laptops, elsewhere: Orchestrator
) -> None:
    one, two = laptops
    await one.log("basket", QUESTION)
    await name(one, title="The basket", nickname="shop", add_tags=["api"])
    await one.ask("delete", "basket")
    await exchange(one)
    assert (await one.orchestrator.registry.read(lambda tx: exchange_counts(tx, URL)))["edits"] == 0
    await two.log("basket", QUESTION, ANSWER)
    await exchange(two, one)
    for machine in (elsewhere, one.orchestrator, two.orchestrator):
        assert await texts_by_channel(machine) == {}
    await two.ask("restore", "basket")
    await exchange(two, one)
    for machine in (elsewhere, one.orchestrator, two.orchestrator):
        assert await texts_by_channel(machine) == {"basket": [QUESTION, ANSWER]}
        assert await names(machine) == [("The basket", "shop", ["api"])]


async def test_a_conversation_restored_before_another_machine_received_it_is_sent_there(
    laptops: Laptops, elsewhere: Orchestrator
) -> None:
    one, two = laptops
    await one.log("basket", QUESTION, ANSWER)
    await one.push()
    await ask(elsewhere, "delete", "basket")
    await exchange(one, two)
    assert await texts_by_channel(one.orchestrator) == await texts_by_channel(two.orchestrator) == {}
    await ask(elsewhere, "restore", "basket")
    await exchange(one, two)
    for laptop in laptops:
        assert await texts_by_channel(laptop.orchestrator) == {"basket": [QUESTION, ANSWER]}


@pytest.mark.both_databases
async def test_a_conversation_restored_before_it_was_sent_is_sent(laptops: Laptops, elsewhere: Orchestrator) -> None:
    one, _ = laptops
    await one.log("basket", QUESTION)
    await one.log("lamp", "Which lamp for the cellar?")
    [message] = await one.orchestrator.registry.get_conversations("lamp")
    deleted: tuple[dict[str, Any], ...] = ({"channel": "basket"}, {"id": message["id"]})
    for meant in deleted:
        await one.ask("delete", **meant)
    await one.log("phone", "And on the phone?")
    await exchange(one)
    await one.orchestrator.registry.write(lambda tx: tx.exec_driver_sql("UPDATE remote SET sent = 1000000"))
    for meant in deleted:
        await one.ask("restore", **meant)
    await exchange(one)
    all_of_it = {"basket": [QUESTION], "lamp": ["Which lamp for the cellar?"], "phone": ["And on the phone?"]}
    assert await texts_by_channel(elsewhere) == all_of_it


async def test_a_conversation_forgotten_here_is_forgotten_everywhere_without_sending_its_text(
    both: Laptops, elsewhere: Orchestrator
) -> None:
    one, two = both
    await one.log("lamp", "Which lamp for the cellar?", "A green one.")
    await exchange(one, two)
    [_, second] = await one.orchestrator.registry.get_conversations("lamp")
    await one.ask("delete", "basket", soft=False)
    await one.ask("delete", id=second["id"], soft=False)
    rows = await one.orchestrator.registry.read(lambda tx: str(tx.exec_driver_sql("SELECT * FROM edit").all()))
    assert "conv_" in rows
    assert "basket" not in rows
    await exchange(one, two)
    for orchestrator in (two.orchestrator, elsewhere):
        assert await orchestrator.registry.get_conversations("basket", include_deleted=True) == []
    await two.log("basket", QUESTION, ANSWER)
    await two.log("lamp", "Which lamp for the cellar?", "A green one.")
    await exchange(two, one)
    for orchestrator in (one.orchestrator, two.orchestrator, elsewhere):
        assert await texts_by_channel(orchestrator) == {"lamp": ["Which lamp for the cellar?"]}


async def test_messages_forgotten_together_are_forgotten_elsewhere_by_one_rewriting_of_the_file(
    both: Laptops, elsewhere: Orchestrator
) -> None:
    one, two = both
    await one.log("lamp", "Mr. Grunwald rang", "Grunwald, noted", "Grunwald again", "A green lamp.")
    await exchange(one, two)
    await one.ask("delete", soft=False, matching="Grunwald")
    await exchange(one, two)
    for orchestrator in (two.orchestrator, elsewhere):
        assert (await texts_by_channel(orchestrator))["lamp"] == ["A green lamp."]
        forgettings = await orchestrator.registry.read(lambda tx: list_executions(tx, {"operation": "delete"}, Page()))
        assert len(forgettings["items"]) == 1


@pytest.mark.both_databases
@pytest.mark.parametrize("is_sent", [True, False])
async def test_words_that_another_machine_wrote_in_a_channel_while_it_was_forgotten_stay_and_only_they(
    both: Laptops, elsewhere: Orchestrator, is_sent: bool
) -> None:
    one, two = both
    await two.log("basket", "And on the phone?", start=5)
    if is_sent:
        await two.push()
    await one.ask("delete", "basket", soft=False)
    for _ in range(2):
        await exchange(one, two)
    await one.log("basket", QUESTION, ANSWER)  # its client sends the conversation again
    await exchange(one, two)
    for orchestrator in (one.orchestrator, two.orchestrator, elsewhere):
        assert await texts_by_channel(orchestrator) == {"basket": ["And on the phone?"]}


async def test_of_a_long_conversation_only_the_words_that_the_machine_had_which_forgot_it_go(
    laptops: Laptops, elsewhere: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting_elsewhere, "MAX_IDS", 12)
    one, two = laptops
    for channel in ("basket", "phone"):
        texts = [f"Why does the {channel} lose item {at}?" for at in range(30)]
        messages = [{"role": "user", "text": text} for text in texts]
        await one.orchestrator.registry.save_conversation(channel, messages, "cursor", {"title": f"The {channel}"})
    await exchange(one, two)
    await two.log("basket", "And on the phone?")
    for channel in ("basket", "phone"):
        await one.ask("delete", channel, soft=False)
    await exchange(one, two)
    for orchestrator in (one.orchestrator, two.orchestrator, elsewhere):
        assert await texts_by_channel(orchestrator) == {"basket": ["And on the phone?"]}
        stored = await orchestrator.registry.read(lambda tx: tx.exec_driver_sql("SELECT name FROM channel").all())
        assert [name for [name] in stored] == ["basket"]


async def test_forgetting_many_long_conversations_fits_through_a_proxy(
    laptops: Laptops, elsewhere: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edits, "MAX_FORGOTTEN_IDS", 3)
    one, _ = laptops
    for at in range(4):
        await one.log(f"basket {at}", QUESTION, ANSWER)
    await one.exchange()
    for at in range(4):
        await one.ask("delete", f"basket {at}", soft=False)

    def is_too_large(request: httpx.Request) -> bool:
        return request.url.path == "/bo/edits" and request.method == "POST" and body_of(request).count(b"conv_") > 4

    with one.line.answered_by(lambda: httpx.Response(413, text="Request Entity Too Large"), is_too_large):
        await one.push()
    assert await texts_by_channel(elsewhere) == {}


@pytest.mark.parametrize("meant", ["message", "channel"])
@pytest.mark.parametrize("soft", [True, False])
async def test_what_is_deleted_or_forgotten_after_the_answer_to_its_push_was_lost_goes_elsewhere_too(
    both: Laptops, elsewhere: Orchestrator, meant: str, soft: bool
) -> None:
    one, two = both
    await one.log("basket", "And on the phone?", start=5)
    one.line.cuts = lambda: "after"
    with suppress(Unreachable):
        await one.push()
    one.line.cuts = lambda: ""
    await two.pull()
    [*_, message] = await one.orchestrator.registry.get_conversations("basket")
    await one.ask("delete", **({"id": message["id"]} if meant == "message" else {"channel": "basket"}), soft=soft)
    await one.push()
    for _ in range(2):
        await exchange(one, two)
    for orchestrator in (one.orchestrator, two.orchestrator, elsewhere):
        assert await texts_by_channel(orchestrator) == ({"basket": [QUESTION, ANSWER]} if meant == "message" else {})


SAID = (
    *("continue", "Where were we?"),
    *("Why does the basket lose its items after login?", "The session id changes, and the basket hangs on it."),
    *("And what about guests who never log in at all?", "Guests keep theirs for a week in a cookie."),
)


@pytest.fixture
async def merged(laptops: Laptops, elsewhere: Orchestrator, tmp_path: Path) -> str:
    """Let both laptops have two channels that are one elsewhere; return its name there. The other is `mine`."""
    one, two = laptops
    dialogue = Dialogue(session_id(1))
    for at, text in enumerate(SAID):
        dialogue.says(text, f"m{at}") if at % 2 else dialogue.user(text)
    write(tmp_path / ".claude", dialogue)
    await sync(elsewhere, READERS, Paths(tmp_path, {}))
    for machine, texts in ((one.orchestrator, SAID[:2]), (elsewhere, SAID)):
        messages = [
            {"role": "assistant" if at % 2 else "user", "text": text, "timestamp": BEGIN + timedelta(seconds=at)}
            for at, text in enumerate(texts)
        ]
        given = {"operation": "conversation_log", "channel": "mine", "messages": messages, "source": "claude-code"}
        assert (await machine.run(given))["success"]
        await exchange(one, two)
    [name] = await texts_by_channel(elsewhere)
    for laptop in laptops:
        assert (await texts_by_channel(laptop.orchestrator)).keys() == {name, "mine"}
    return name


async def test_two_channels_that_are_one_elsewhere_keep_a_name_and_go_whole_from_where_they_are_two(
    merged: str, laptops: Laptops, elsewhere: Orchestrator
) -> None:
    one, two = laptops
    await name(one, "mine", nickname="shop")
    for _ in range(2):
        await exchange(one, two)
    for orchestrator in (one.orchestrator, two.orchestrator, elsewhere):
        sessions = (await ask(orchestrator, "list"))["sessions"]
        assert [one["nickname"] for one in sessions if one["nickname"]] == ["shop"]
    await ask(elsewhere, "delete", merged)
    await exchange(*laptops)
    assert [await texts_by_channel(laptop.orchestrator) for laptop in laptops] == [{}, {}]
    await ask(elsewhere, "restore", merged)
    await exchange(*laptops)
    for laptop in laptops:
        assert (await texts_by_channel(laptop.orchestrator)).keys() == {merged, "mine"}
    await ask(elsewhere, "delete", merged, soft=False)
    await exchange(*laptops)
    assert [await texts_by_channel(laptop.orchestrator) for laptop in laptops] == [{}, {}]


async def test_of_two_channels_that_are_merged_the_later_edits_stay(elsewhere: Orchestrator, tmp_path: Path) -> None:
    async def log(texts: Sequence[str]) -> None:
        messages = [{"role": "assistant" if at % 2 else "user", "text": text} for at, text in enumerate(texts)]
        given = {"operation": "conversation_log", "channel": "mine", "messages": messages, "source": "claude-code"}
        assert (await elsewhere.run(given))["success"]

    dialogue = Dialogue(session_id(1), at=datetime.now(UTC) - timedelta(hours=1))
    for at, text in enumerate(SAID):
        dialogue.says(text, f"m{at}") if at % 2 else dialogue.user(text)
    write(tmp_path / ".claude", dialogue)
    await sync(elsewhere, READERS, Paths(tmp_path, {}))
    await log(SAID[:2])
    [session] = {*await texts_by_channel(elsewhere)} - {"mine"}
    await ask(elsewhere, "tag", "mine", tags=["shop"], nickname="early")
    await ask(elsewhere, "tag", session, title="Early", tags=["login"], pinned=True)
    await ask(elsewhere, "tag", session, nickname="late")
    await ask(elsewhere, "tag", "mine", title="Late", tags=["login"])
    await ask(elsewhere, "tag", "mine", tags=[], pinned=False)
    await log(SAID)
    assert await names(elsewhere) == [("Late", "late", [])]
    assert await pinned(elsewhere) == 0


async def test_a_known_edit_is_applied_once(both: Laptops, elsewhere: Orchestrator) -> None:
    one, two = both
    await name(one, nickname="shop")
    await exchange(one, two)
    runs = await elsewhere.registry.read(lambda tx: tx.exec_driver_sql("SELECT count(*) FROM execution").scalar())
    await exchange(one, two, one)
    standing = await one.orchestrator.registry.read(lambda tx: exchange_counts(tx, URL))
    assert (standing["edits"], standing["edit_refused"]) == (0, None)
    assert runs == await elsewhere.registry.read(
        lambda tx: tx.exec_driver_sql("SELECT count(*) FROM execution").scalar()
    )


async def state_of(orchestrator: Orchestrator) -> dict[str, tuple[str | None, list[str], list[str]]]:
    """Return the nickname, tags and texts of each channel that has messages."""
    texts = await texts_by_channel(orchestrator)
    sessions = (await ask(orchestrator, "list", limit=100))["sessions"]
    return {
        one["channel"]: (one["nickname"], one["tags"], sorted(texts[one["channel"]]))
        for one in sessions
        if texts[one["channel"]]
    }


async def test_after_failures_of_the_connection_all_machines_agree(laptops: Laptops, elsewhere: Orchestrator) -> None:
    chance = random.Random(1)
    said_by_now: dict[str, int] = {}

    async def do_something(laptop: Laptop) -> None:
        channel = chance.choice(("basket", "phone", "login"))
        known = await laptop.orchestrator.registry.get_conversations(channel)
        match chance.choice(("say", "say", "say", "tag", "untag", "call", "delete", "restore")):
            case "say":
                number = said_by_now[channel] = said_by_now.get(channel, 0) + 1
                message = {"role": "user", "text": f"Question {number} about the {channel}?"}
                await laptop.orchestrator.registry.save_conversation(channel, [message], "cursor")
            case "tag" if known:
                await name(laptop, channel, add_tags=[chance.choice("abc")])
            case "untag" if known:
                await name(laptop, channel, remove_tags=[chance.choice("abc")])
            case "call" if known:
                await name(laptop, channel, nickname=f"{channel}-{chance.randrange(3)}")
            case "delete" if known:
                await laptop.ask("delete", id=chance.choice(known)["id"])
            case "restore" if known:
                await laptop.ask("restore", channel)

    for laptop in laptops:
        laptop.line.cuts = lambda: chance.choice(("", "", "before", "after"))
    for _ in range(15):
        laptop = chance.choice(laptops)
        await do_something(laptop)
        with suppress(Unreachable):
            await chance.choice((laptop.pull, laptop.push))()
        if chance.random() < 0.2:
            laptop.crash()
    for laptop in laptops:
        laptop.line.cuts = lambda: ""
    await exchange(*laptops)
    states = [await state_of(one) for one in (elsewhere, *(laptop.orchestrator for laptop in laptops))]
    assert states[0] == states[1] == states[2]
    assert states[0]
