"""Test two people's laptops and one registry elsewhere: each gets the other's shared chats, and no others."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from orchestrator.service import Orchestrator
from registry.access import Access, Level
from registry.ingest.merge_channels import merge_channels
from registry.storage.conversations.channels import find_channel, open_channel
from registry.storage.database import WriteTransaction
from registry.storage.paging import invalidate_feed_positions
from registry.storage.safety.tokens import create_token, revoke_token
from tests.orchestrator.remote.laptops import Laptop, Laptops, Line, ask, texts_by_channel

pytestmark = pytest.mark.anyio

TWO = ("kim", "lee")


@pytest.fixture(autouse=True)
async def each_with_a_token(elsewhere: Orchestrator, laptops: Laptops) -> None:
    """Give the first laptop kim's token, the second one lee's."""
    for laptop, name in zip(laptops, TWO, strict=True):
        made = await elsewhere.registry.write(lambda tx, name=name: create_token(tx, name, Level.WRITE))  # type: ignore[misc]
        laptop.token = made.secret


async def test_a_laptop_receives_its_persons_chats_and_shared_ones(elsewhere: Orchestrator, laptops: Laptops) -> None:
    kims, lees = laptops
    await kims.log("plans", "only mine", "yes")
    await kims.log("harbour", "the report", "here it is")
    await lees.log("lees", "hello", "hello lee")
    await kims.share("harbour")
    for laptop in (*laptops, *laptops):
        await laptop.push()
        await laptop.pull()
    assert (await texts_by_channel(lees.orchestrator)).keys() == {"lees", "harbour"}
    assert (await texts_by_channel(kims.orchestrator)).keys() == {"plans", "harbour"}
    assert (await texts_by_channel(elsewhere)).keys() == {"plans", "harbour", "lees"}
    await lees.ask("tag", "harbour", title="Lee was here")
    assert "may not touch that channel" in str((await lees.push()).why)


@pytest.fixture
async def admins_laptop(elsewhere: Orchestrator, laptops: Laptops) -> Laptop:
    """Return Kim's laptop with an admin's token, after Lee has sent a private chat."""
    kims, lees = laptops
    made = await elsewhere.registry.write(lambda tx: create_token(tx, "kims-admin", Level.ADMIN, owner="kim"))
    kims.token = made.secret
    await lees.log("standup", "why I leave in May", "I see")
    await lees.push()
    return kims


async def test_an_admins_laptop_receives_and_sends_no_private_chat_of_others(
    elsewhere: Orchestrator, admins_laptop: Laptop
) -> None:
    await admins_laptop.pull()
    await admins_laptop.log("standup", "what do we ship today?", start=5)
    await admins_laptop.share("standup")
    await admins_laptop.exchange()
    colleague = Access("ann", Level.READ, owner="ann")
    sessions = (await elsewhere.run({"operation": "list", "query": {}}, access=colleague))["sessions"]
    assert [one["message_count"] for one in sessions] == [1]
    assert await texts_by_channel(admins_laptop.orchestrator) == {"standup": ["what do we ship today?"]}


async def test_an_admins_edit_of_a_chat_that_was_never_sent_does_not_change_another_persons_chat_of_that_name(
    elsewhere: Orchestrator, admins_laptop: Laptop
) -> None:
    await admins_laptop.log("standup", "what do we ship today?")
    [own] = await admins_laptop.orchestrator.registry.get_conversations("standup")
    await admins_laptop.ask("delete", id=own["id"])
    await admins_laptop.share("standup")
    await admins_laptop.ask("tag", "standup", title="Today")
    await admins_laptop.exchange()
    [session] = (await ask(elsewhere, "list"))["sessions"]
    assert (session["owner"], session.get("shared_with"), session["title"]) == ("lee", None, None)


async def test_an_edit_changes_only_ones_own_of_two_shared_chats_with_the_same_name_and_words(
    elsewhere: Orchestrator, laptops: Laptops
) -> None:
    for laptop in laptops:
        await laptop.log("basket", "why does it lose items?", "the session expires")
        await laptop.push()
    kims, lees = laptops
    await kims.share("basket")
    await kims.ask("tag", "basket", nickname="kims-basket", tags=["shop"])
    await kims.push()
    await lees.pull()
    session = (await lees.ask("list"))["sessions"][0]
    assert (session.get("shared_with"), session["nickname"], session["tags"]) == (None, None, [])
    await lees.share("basket")
    await lees.ask("tag", "basket", title="Lee's basket")
    assert (await lees.push()).why is None
    sessions = (await ask(elsewhere, "list"))["sessions"]
    known = {one["owner"]: (one["shared_with"], one["nickname"], one["title"]) for one in sessions}
    assert known == {"kim": ("team", "kims-basket", None), "lee": ("team", None, "Lee's basket")}
    await kims.ask("delete", "basket")
    await kims.push()
    await lees.pull()
    assert (await texts_by_channel(lees.orchestrator)).keys() == {"basket"}
    await kims.ask("restore", "basket")
    await lees.ask("delete", "basket")
    await kims.push()
    assert (await lees.push()).why is None
    assert (await texts_by_channel(elsewhere)).keys() == {"basket"}


async def test_a_shared_chat_is_not_mixed_into_ones_own_chat_of_that_name(
    elsewhere: Orchestrator, laptops: Laptops
) -> None:
    for laptop, name in zip(laptops, TWO, strict=True):
        await laptop.log("basket", f"why does {name}'s lose items?", "the session expires")
        await laptop.push()
    kims, lees = laptops
    await kims.share("basket")
    await kims.log("basket", "and kim's cookie?")
    await kims.push()
    await lees.pull()
    await lees.log("basket", "and lee's cookie?")
    for laptop in (*laptops, *laptops):
        await laptop.push()
        await laptop.pull()
    for laptop, name in zip(laptops, TWO, strict=True):
        [(channel, texts)] = (await texts_by_channel(laptop.orchestrator)).items()
        expected = {f"why does {name}'s lose items?", "the session expires", f"and {name}'s cookie?"}
        assert (channel, len(texts), set(texts)) == ("basket", 3, expected)
    assert sorted(len(texts) for texts in (await texts_by_channel(elsewhere)).values()) == [3, 3]


@pytest.mark.parametrize("level", [Level.WRITE, pytest.param(Level.ADMIN, marks=pytest.mark.both_databases)])
async def test_forgetting_a_shared_chat_takes_nothing_of_ones_own_chat_of_that_name_that_was_not_yet_sent(
    elsewhere: Orchestrator, laptops: Laptops, level: Level
) -> None:
    kims, lees = laptops
    made = await elsewhere.registry.write(lambda tx: create_token(tx, "lees-other", level, owner="lee"))
    lees.token = made.secret
    await kims.log("basket", "why does kim's lose items?", "the session expires")
    await kims.share("basket")
    await kims.push()
    await lees.log("basket", "why does lee's lose items?", "ask kim", start=5)
    await lees.exchange()
    await ask(elsewhere, "delete", "basket", soft=False)
    await lees.exchange()
    assert await texts_by_channel(lees.orchestrator) == {"basket": ["why does lee's lose items?", "ask kim"]}


@pytest.mark.both_databases
async def test_a_shared_chat_is_not_mixed_into_ones_own_that_is_called_so_no_more(
    elsewhere: Orchestrator, laptops: Laptops
) -> None:
    for laptop, name in zip(laptops, TWO, strict=True):
        await laptop.log("basket", f"why does {name}'s lose items?", "the session expires")
        await laptop.push()
    kims, lees = laptops
    [renamed] = (await texts_by_channel(elsewhere)).keys() - {"basket"}

    def merge(tx: WriteTransaction) -> None:  # as if a client's session turned out to be this chat
        own = find_channel(tx, renamed)
        assert own
        into = open_channel(tx, "lees-session", own.source, own.created_at)
        merge_channels(tx, own.number, into.number)

    await elsewhere.registry.seen_by(Access("lee", Level.WRITE, owner="lee")).write(merge)
    await kims.share("basket")
    await kims.push()
    await lees.pull()
    assert "kim's" not in str(await texts_by_channel(lees.orchestrator))
    await lees.log("basket", "and lee's cookie?", start=5)
    await lees.push()
    assert (await texts_by_channel(elsewhere)).keys() == {"basket", "lees-session"}


@pytest.mark.parametrize("group", ["nobody", pytest.param("team", marks=pytest.mark.both_databases)])
async def test_an_edit_of_a_chat_that_has_another_name_there_is_applied_there(
    elsewhere: Orchestrator, laptops: Laptops, group: str
) -> None:
    for laptop in laptops:
        await laptop.log("basket", "why does it lose items?", "the session expires")
        await laptop.push()
    kims, lees = laptops
    await kims.share("basket", group)
    await kims.push()
    await lees.log("basket-two", "and the vouchers?")
    await lees.ask("tag", "basket", nickname="lees", tags=["shop"])
    assert ((await lees.push()).edits, (await lees.push()).why) == (2, None)
    sessions = (await ask(elsewhere, "list"))["sessions"]
    [lees_name] = [one["channel"] for one in sessions if one["nickname"] == "lees"]
    assert lees_name.startswith("basket_")
    assert [one["tags"] for one in sessions if one["owner"] == "kim"] == [[]]
    await lees.ask("delete", "basket")
    await lees.push()
    assert (await texts_by_channel(elsewhere)).keys() == {"basket", "basket-two"}


async def test_a_chat_that_has_another_name_there_is_one_on_all_machines_of_its_person(
    elsewhere: Orchestrator, laptops: Laptops, line: Line, sqlite_template: Path, tmp_path: Path
) -> None:
    for laptop in laptops:
        await laptop.log("basket", "why does it lose items?", "the session expires")
        await laptop.push()
    lees, desk = laptops[1], Laptop(Path(shutil.copy(sqlite_template, tmp_path / "desk.db")), line)
    desk.token = lees.token
    await desk.pull()
    [there] = await texts_by_channel(desk.orchestrator)
    await desk.log(there, "said at the desk", start=5)
    await desk.push()
    await lees.pull()
    assert [*await texts_by_channel(lees.orchestrator)] == ["basket"]
    assert (await texts_by_channel(lees.orchestrator))["basket"] == (await texts_by_channel(desk.orchestrator))[there]
    await desk.ask("delete", there)
    await desk.push()
    await lees.pull()
    assert await texts_by_channel(lees.orchestrator) == {}
    desk.orchestrator.registry.close()


async def share_harbour(kims: Laptop, lees: Laptop) -> None:
    """Give Lee's laptop a chat of Kim's that is shared with the team."""
    await kims.log("harbour", "the report", "here it is")
    await kims.share("harbour")
    await kims.push()
    await lees.pull()


async def test_a_forgotten_message_of_a_shared_chat_goes_from_every_machine(
    elsewhere: Orchestrator, laptops: Laptops
) -> None:
    kims, lees = laptops
    await share_harbour(kims, lees)
    await ask(elsewhere, "delete", soft=False, matching="report")
    for laptop in laptops:
        await laptop.pull()
        assert (await texts_by_channel(laptop.orchestrator)) == {"harbour": ["here it is"]}


async def test_a_remembered_sentence_that_was_replaced_is_dropped_on_every_machine(
    laptops: Laptops,
) -> None:
    lees, desk = laptops
    desk.token = lees.token
    [kept] = await remembered(lees, text="we use tabs")
    await lees.push()
    await desk.pull()
    [here] = await remembered(desk)
    assert here["text"] == kept["text"]
    await remembered(desk, text="we use spaces", replaces=here["id"])
    await desk.push()
    await lees.pull()
    assert [one["text"] for one in await remembered(lees)] == ["we use spaces"]


async def remembered(laptop: Laptop, **query: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = (await laptop.ask("remember", **query))["remembered"]
    return found


async def test_a_sentence_that_another_person_remembers_and_shares_is_not_ones_own(laptops: Laptops) -> None:
    kims, lees = laptops
    await remembered(kims, text="we use tabs")
    await remembered(lees, text="answer in Korean")
    await kims.share("remembered")
    await kims.push()
    await lees.pull()
    assert [one["text"] for one in await remembered(lees)] == ["answer in Korean"]


@pytest.mark.parametrize("is_sent", [True, pytest.param(False, marks=pytest.mark.both_databases)])
async def test_own_words_in_a_shared_chat_stay_when_it_is_forgotten(
    elsewhere: Orchestrator, laptops: Laptops, is_sent: bool
) -> None:
    kims, lees = laptops
    await share_harbour(kims, lees)
    await lees.log("harbour", "and the figures?", start=5)
    if is_sent:
        await lees.push()
        await lees.pull()
        assert (await texts_by_channel(lees.orchestrator)) == {
            "harbour": ["the report", "here it is", "and the figures?"]
        }
    await ask(elsewhere, "delete", "harbour", soft=False)
    await lees.exchange()
    await lees.exchange()
    assert (await texts_by_channel(lees.orchestrator)) == {"harbour": ["and the figures?"]}
    assert [*(await texts_by_channel(elsewhere)).values()] == [["and the figures?"]]


async def test_a_chat_that_is_shared_after_a_machine_read_past_it_comes_whole(
    elsewhere: Orchestrator, laptops: Laptops
) -> None:
    kims, lees = laptops
    await kims.log("harbour", "the report", "here it is")
    await kims.log("plans", "only mine")
    await kims.push()
    await lees.log("lees", "hello")
    for _ in range(2):
        await lees.exchange()
    for share_with, expected in (("nobody", {}), ("team", {"harbour": ["the report", "here it is"]})):
        await kims.share("harbour", share_with)
        await kims.push()
        await lees.exchange()
        assert await texts_by_channel(lees.orchestrator) == {"lees": ["hello"], **expected}
    await lees.exchange()
    assert (await texts_by_channel(elsewhere)).keys() == {"harbour", "plans", "lees"}


async def test_a_copy_of_a_chat_that_is_shared_no_more_is_not_sent_as_ones_own(
    elsewhere: Orchestrator, laptops: Laptops
) -> None:
    kims, lees = laptops
    await share_harbour(kims, lees)
    await lees.log("lees", "only mine")
    await lees.push()
    await kims.share("harbour", "nobody")
    await kims.push()
    await elsewhere.registry.write(invalidate_feed_positions)  # as a restored backup or `ctxr db copy` does
    for laptop in (lees, kims, lees):
        await laptop.exchange()
    sessions = (await ask(elsewhere, "list"))["sessions"]
    assert {one["channel"]: one["owner"] for one in sessions} == {"harbour": "kim", "lees": "lee"}
    assert [one.get("shared_with") for one in sessions] == [None, None]


@pytest.mark.parametrize("edit", ["share", "delete"])
async def test_an_edit_of_a_shared_chat_does_not_change_what_another_person_said_in_it_after_a_restore(
    elsewhere: Orchestrator, laptops: Laptops, edit: str
) -> None:
    kims, lees = laptops
    await share_harbour(kims, lees)
    await kims.ask(edit, "harbour", **{"with": "team"} if edit == "share" else {})
    await kims.push()
    await lees.pull()
    await lees.log("harbour", "and my salary?", start=5)
    await lees.push()
    await elsewhere.registry.write(invalidate_feed_positions)
    await lees.exchange()
    sessions = (await ask(elsewhere, "list"))["sessions"]
    assert [one.get("shared_with") for one in sessions if one["owner"] == "lee"] == [None]


async def test_an_edit_of_a_copy_of_a_shared_chat_does_not_change_what_another_person_said_in_it(
    elsewhere: Orchestrator, laptops: Laptops
) -> None:
    kims, lees = laptops
    await share_harbour(kims, lees)
    messages = [{"role": "user", "text": "and my salary?"}]
    said_elsewhere = {"operation": "conversation_log", "channel": "harbour", "source": "cursor", "messages": messages}
    at_the_server = Orchestrator(elsewhere.registry.seen_by(Access("lee", Level.WRITE, owner="lee")))
    assert (await at_the_server.run(said_elsewhere))["success"]
    await lees.pull()
    await lees.share("harbour")
    assert "may not touch that channel" in str((await lees.push()).why)
    await lees.ask("delete", "harbour")
    assert "may not touch that channel" in str((await lees.push()).why)
    sessions = (await ask(elsewhere, "list"))["sessions"]
    assert {one["owner"]: one.get("shared_with") for one in sessions} == {"kim": "team", "lee": None}


async def test_own_words_stay_when_another_person_deletes_a_chat_of_that_name(
    elsewhere: Orchestrator, laptops: Laptops
) -> None:
    kims, lees = laptops
    await lees.log("basket", "why does it lose items?", start=5)
    await lees.share("basket")
    await lees.push()
    await kims.log("basket", "what did I put in?")
    await lees.ask("delete", "basket")
    await lees.push()
    await kims.pull()
    await kims.push()
    assert await texts_by_channel(kims.orchestrator) == {"basket": ["what did I put in?"]}
    assert list((await texts_by_channel(elsewhere)).values()) == [["what did I put in?"]]


async def test_what_a_person_erased_goes_from_a_machine_that_gets_a_new_token_later(
    elsewhere: Orchestrator, laptops: Laptops
) -> None:
    kims, _ = laptops
    await kims.log("diary", "nobody shall read this")
    await kims.push()
    await elsewhere.registry.write(lambda tx: revoke_token(tx, "kim"))
    kim = Access("oauth:kim", Level.WRITE, owner="kim")
    erased = {"operation": "delete", "query": {"soft": False, "owner": "kim"}}
    assert (await elsewhere.run(erased, access=kim))["success"]
    made = await elsewhere.registry.write(lambda tx: create_token(tx, "kim-new", Level.WRITE, owner="kim"))
    kims.token = made.secret
    await kims.pull()
    assert await texts_by_channel(kims.orchestrator) == {}


async def test_a_shared_continuation_of_ones_own_chat_is_not_mixed_into_it(
    elsewhere: Orchestrator, laptops: Laptops
) -> None:
    kims, lees = laptops
    await kims.log("harbour", "the report", "here it is", session_id="session-of-harbour")
    await kims.share("harbour")
    await kims.push()
    await lees.pull()
    await lees.log("harbour", "and on the phone?", start=5)
    await lees.share("harbour")
    for laptop in (lees, kims, lees, kims):
        await laptop.exchange()
    [own, continued] = (await texts_by_channel(kims.orchestrator)).values()
    assert sorted([len(own), len(continued)]) == [2, 3]
    assert sorted(map(len, (await texts_by_channel(elsewhere)).values())) == [2, 3]
