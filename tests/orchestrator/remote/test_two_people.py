"""Two people's laptops and one registry elsewhere: what is shared on a laptop reaches the other's."""

from __future__ import annotations

import pytest

from orchestrator.service import Orchestrator
from registry.access import Level
from registry.storage.safety.tokens import create_token
from tests.orchestrator.remote.laptops import Laptop, said

pytestmark = pytest.mark.anyio

TWO = ("kim", "lee")


@pytest.fixture(autouse=True)
async def each_with_a_token(elsewhere: Orchestrator, laptops: tuple[Laptop, Laptop]) -> None:
    """The first laptop is kim's, the second lee's."""
    for laptop, name in zip(laptops, TWO, strict=True):
        made = await elsewhere.registry.write(lambda tx, name=name: create_token(tx, name, Level.WRITE))  # type: ignore[misc]
        laptop.token = made.secret


async def test_a_laptop_brings_in_its_persons_chats_and_those_that_were_shared(
    elsewhere: Orchestrator, laptops: tuple[Laptop, Laptop]
) -> None:
    kims, lees = laptops
    await kims.log("plans", "only mine", "yes")
    await kims.log("harbour", "the report", "here it is")
    await lees.log("lees", "hello", "hello lee")
    shared = {"operation": "share", "channel": "harbour", "query": {"with": "team"}}
    assert (await kims.orchestrator.run(shared))["success"]
    for laptop in (*laptops, *laptops):
        await laptop.push()
        await laptop.pull()
    assert (await said(lees.orchestrator)).keys() == {"lees", "harbour"}
    assert (await said(kims.orchestrator)).keys() == {"plans", "harbour"}
    assert (await said(elsewhere)).keys() == {"plans", "harbour", "lees"}
    taken = {"operation": "tag", "channel": "harbour", "query": {"title": "Lee was here"}}
    assert (await lees.orchestrator.run(taken))["success"]
    assert "may not touch that channel" in str((await lees.push()).why)


async def test_what_is_done_to_a_shared_chat_is_not_done_to_ones_own_of_that_name(
    elsewhere: Orchestrator, laptops: tuple[Laptop, Laptop]
) -> None:
    for laptop in laptops:
        await laptop.log("basket", "why does it lose items?", "the session expires")
        await laptop.push()
    kims, lees = laptops
    shared = {"operation": "share", "channel": "basket", "query": {"with": "team"}}
    named = {"operation": "tag", "channel": "basket", "query": {"nickname": "kims-basket", "tags": ["shop"]}}
    assert (await kims.orchestrator.run(shared))["success"]
    assert (await kims.orchestrator.run(named))["success"]
    await kims.push()
    await lees.pull()
    session = (await lees.orchestrator.run({"operation": "list", "query": {}}))["sessions"][0]
    assert (session.get("shared_with"), session["nickname"], session["tags"]) == (None, None, [])
    assert (await kims.orchestrator.run({"operation": "delete", "channel": "basket", "query": {}}))["success"]
    await kims.push()
    await lees.pull()
    assert (await said(lees.orchestrator)).keys() == {"basket"}


async def test_a_shared_chat_of_the_name_of_ones_own_is_not_mixed_into_it(
    elsewhere: Orchestrator, laptops: tuple[Laptop, Laptop]
) -> None:
    for laptop, name in zip(laptops, TWO, strict=True):
        await laptop.log("basket", f"why does {name}'s lose items?", "the session expires")
        await laptop.push()
    kims, lees = laptops
    shared = {"operation": "share", "channel": "basket", "query": {"with": "team"}}
    assert (await kims.orchestrator.run(shared))["success"]
    await kims.log("basket", "and kim's cookie?")
    await kims.push()
    await lees.pull()
    await lees.log("basket", "and lee's cookie?")
    for laptop in (*laptops, *laptops):
        await laptop.push()
        await laptop.pull()
    for laptop, name in zip(laptops, TWO, strict=True):
        [(channel, texts)] = (await said(laptop.orchestrator)).items()
        expected = {f"why does {name}'s lose items?", "the session expires", f"and {name}'s cookie?"}
        assert (channel, len(texts), set(texts)) == ("basket", 3, expected)
    assert sorted(len(texts) for texts in (await said(elsewhere)).values()) == [3, 3]
