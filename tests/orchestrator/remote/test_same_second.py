"""Test sessions that begin in the same second on two machines: they have one name, and are two chats everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.service import Orchestrator
from orchestrator.sync.sync import sync
from registry.access import Level
from registry.storage.safety.tokens import create_token
from sources.base import Paths
from sources.readers import READERS
from tests.orchestrator.remote.laptops import Laptop, Laptops, ask, exchange_twice
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, write

pytestmark = pytest.mark.anyio

Chats = list[tuple[str, str | None, int]]  # the session id, nickname and number of messages of each chat


async def begin(laptop: Laptop, home: Path, number: int, turns: int = 1) -> None:
    dialogue = Dialogue(session_id(number))
    for turn in range(turns):
        dialogue.user(f"Why did the nightly job {turn} of machine {number} fail?")
        dialogue.says(f"The disk {turn} of machine {number} is full.", f"m{number}-{turn}")
    write(home / ".claude", dialogue)
    await sync(laptop.orchestrator, READERS, Paths(home, {}))


async def channel_of(orchestrator: Orchestrator, number: int) -> str:
    sessions = (await ask(orchestrator, "list"))["sessions"]
    [name] = [one["channel"] for one in sessions if one["session_id"] == session_id(number)]
    return str(name)


async def chats(orchestrator: Orchestrator) -> Chats:
    sessions = (await ask(orchestrator, "list"))["sessions"]
    return sorted((one["session_id"], one["nickname"], one["message_count"]) for one in sessions)


async def test_two_machines_sessions_of_one_second_stay_two_chats(
    laptops: Laptops, elsewhere: Orchestrator, tmp_path: Path
) -> None:
    one, two = laptops
    for number, laptop in enumerate(laptops, 1):
        await begin(laptop, tmp_path / f"{number}", number)
    assert await channel_of(one.orchestrator, 1) == await channel_of(two.orchestrator, 2)
    await exchange_twice(one, two)
    for number, laptop in enumerate(laptops, 1):
        await laptop.ask("tag", await channel_of(laptop.orchestrator, number), nickname=f"job{number}")
    await exchange_twice(one, two)
    for machine in (one.orchestrator, two.orchestrator, elsewhere):
        assert await chats(machine) == [(session_id(number), f"job{number}", 2) for number in (1, 2)]
    await one.ask("delete", await channel_of(one.orchestrator, 2))
    await exchange_twice(one, two)
    for machine in (one.orchestrator, two.orchestrator, elsewhere):
        assert await chats(machine) == [(session_id(1), "job1", 2)]


async def test_another_persons_session_keeps_its_name_after_the_own_one_was_forgotten(
    laptops: Laptops, elsewhere: Orchestrator, tmp_path: Path
) -> None:
    one, two = laptops
    for laptop, name in zip(laptops, ("kim", "lee"), strict=True):
        made = await elsewhere.registry.write(lambda tx, name=name: create_token(tx, name, Level.WRITE))  # type: ignore[misc]
        laptop.token = made.secret
    for number, laptop in enumerate(laptops, 1):
        await begin(laptop, tmp_path / f"{number}", number)
        await laptop.share(await channel_of(laptop.orchestrator, number))
    await exchange_twice(two, one)
    await one.ask("delete", await channel_of(one.orchestrator, 1), soft=False)
    await begin(two, tmp_path / "2", 2, turns=2)
    await exchange_twice(two, one)
    assert await chats(one.orchestrator) == [(session_id(2), None, 4)]


async def test_a_forgotten_session_does_not_refuse_another_one_of_its_second(
    laptops: Laptops, elsewhere: Orchestrator, tmp_path: Path
) -> None:
    one, two = laptops
    await begin(one, tmp_path / "1", 1)
    await one.exchange()
    await one.ask("delete", await channel_of(one.orchestrator, 1), soft=False)
    await one.exchange()
    await begin(two, tmp_path / "2", 2)
    await exchange_twice(two, one)
    for machine in (one.orchestrator, two.orchestrator, elsewhere):
        assert await chats(machine) == [(session_id(2), None, 2)]
