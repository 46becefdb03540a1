"""Test exchanges after the registry elsewhere was restored from a backup, or made anew at the same address."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest

from orchestrator.service import Orchestrator
from registry.access import Access, Level
from registry.registry import Registry
from registry.storage.exchange import change_feed
from registry.storage.safety.tokens import create_token
from tests.orchestrator.remote.laptops import Laptops, Line, ask, exchange_twice, texts_by_channel

pytestmark = pytest.mark.anyio

TEXTS = [f"{'Is' if at % 2 else 'Why is'} item {at} in the basket?" for at in range(10)]


async def test_messages_newer_than_the_backup_are_sent_again_and_stored_once(
    laptops: Laptops, elsewhere: Orchestrator, keeper: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_feed, "GAP_TIMEOUT_S", 0.0)  # else messages after the gap in the numbers are waited for
    one, two = laptops
    await one.log("basket", *TEXTS[:4])
    await exchange_twice(*laptops)
    backup = await ask(keeper, "create_backup")
    await one.log("basket", *TEXTS[:8])
    await two.log("phone", "And on the phone?")
    await exchange_twice(*laptops)
    await ask(keeper, "restore_backup", path=backup["path"])
    assert await texts_by_channel(elsewhere) == {"basket": TEXTS[:4]}
    await one.log("basket", *TEXTS)
    await exchange_twice(*laptops)
    for machine in (elsewhere, *(laptop.orchestrator for laptop in laptops)):
        assert await texts_by_channel(machine) == {"basket": TEXTS, "phone": ["And on the phone?"]}
    one.line.requests.clear()
    await exchange_twice(one)
    assert not [path for path in one.line.requests if path.startswith("POST")]


async def test_a_chat_whose_name_another_person_took_since_the_restore_stays_one_on_all_machines(
    laptops: Laptops, elsewhere: Orchestrator, keeper: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_feed, "GAP_TIMEOUT_S", 0.0)
    for laptop, name in zip(laptops, ("desk", "bag"), strict=True):
        made = partial(create_token, name=name, level=Level.WRITE, owner="kim")
        laptop.token = (await elsewhere.registry.write(made)).secret
    backup = await ask(keeper, "create_backup")
    await laptops[0].log("basket", *TEXTS)
    await exchange_twice(*laptops)
    await ask(keeper, "restore_backup", path=backup["path"])
    lees = elsewhere.registry.seen_by(Access("lee", Level.WRITE, owner="lee"))
    await lees.save_conversation("basket", [{"role": "user", "text": "Why does Lee's lose items?"}], "cursor")
    await exchange_twice(*laptops)
    for laptop in laptops:
        assert await texts_by_channel(laptop.orchestrator) == {"basket": TEXTS}


async def test_what_was_forgotten_after_the_backup_is_forgotten_on_machines_that_were_away(
    laptops: Laptops, elsewhere: Orchestrator, keeper: Orchestrator
) -> None:
    one, _ = laptops
    await one.log("basket", *TEXTS[:4])
    await one.log("diary", "Nobody shall read this.")
    await exchange_twice(one)
    backup = await ask(keeper, "create_backup")
    await ask(keeper, "delete", "diary", soft=False)
    await ask(keeper, "restore_backup", path=backup["path"])
    await exchange_twice(one)
    assert await texts_by_channel(elsewhere) == await texts_by_channel(one.orchestrator) == {"basket": TEXTS[:4]}


async def test_what_another_machine_sends_again_after_the_restore_stays_forgotten(
    laptops: Laptops, elsewhere: Orchestrator, keeper: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_feed, "GAP_TIMEOUT_S", 0.0)
    one, _ = laptops
    backup = await ask(keeper, "create_backup")
    await one.log("basket", *TEXTS[:4])
    await exchange_twice(*laptops)
    [first, *_] = await one.orchestrator.registry.get_conversations("basket")
    await one.ask("delete", id=first["id"], soft=False)
    await one.exchange()
    await ask(keeper, "restore_backup", path=backup["path"])
    await exchange_twice(*laptops)  # the second machine, which did not know of it yet, sends all
    await exchange_twice(*laptops)
    for machine in (elsewhere, *(laptop.orchestrator for laptop in laptops)):
        assert await texts_by_channel(machine) == {"basket": TEXTS[1:4]}


@pytest.mark.both_databases
async def test_what_was_said_and_forgotten_after_the_backup_is_forgotten_on_machines_that_were_away(
    laptops: Laptops, elsewhere: Orchestrator, keeper: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_feed, "GAP_TIMEOUT_S", 0.0)
    one, _ = laptops
    backup = await ask(keeper, "create_backup")
    await one.log("basket", *TEXTS[:2])
    await one.exchange()
    await ask(elsewhere, "delete", matching="item 0", soft=False)
    for _ in range(2):
        await ask(keeper, "restore_backup", path=backup["path"])
    await exchange_twice(*laptops)
    for machine in (elsewhere, *(laptop.orchestrator for laptop in laptops)):
        assert await texts_by_channel(machine) == {"basket": TEXTS[1:2]}


async def test_a_new_registry_at_the_same_address_gets_everything(
    laptops: Laptops, tmp_path: Path, sqlite_template: Path
) -> None:
    one, two = laptops
    await one.log("basket", *TEXTS)
    await exchange_twice(*laptops)
    file = shutil.copy(sqlite_template, tmp_path / "new.db")
    new = Orchestrator(Registry(f"sqlite:///{file}"))
    try:
        one.line = two.line = Line(new)
        await two.log("phone", "And on the phone?")
        await exchange_twice(*laptops)
        for machine in (new, *(laptop.orchestrator for laptop in laptops)):
            assert await texts_by_channel(machine) == {"basket": TEXTS, "phone": ["And on the phone?"]}
    finally:
        new.registry.close()


async def test_a_machine_that_only_pushes_sends_lost_messages_again(
    laptops: Laptops, elsewhere: Orchestrator, keeper: Orchestrator
) -> None:
    one, _ = laptops
    backup = await ask(keeper, "create_backup")
    await one.log("basket", *TEXTS)
    await one.push_only()
    for _ in range(2):
        await ask(keeper, "restore_backup", path=backup["path"])
        assert await texts_by_channel(elsewhere) == {}
        await one.push_only()
        assert await texts_by_channel(elsewhere) == {"basket": TEXTS}


async def test_a_message_restored_from_the_trash_is_stored_once(
    laptops: Laptops, elsewhere: Orchestrator, keeper: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_feed, "GAP_TIMEOUT_S", 0.0)
    one, two = laptops
    backup = await ask(keeper, "create_backup")
    await one.log("basket", *TEXTS)
    await exchange_twice(*laptops)
    await ask(keeper, "restore_backup", path=backup["path"])
    await two.ask("delete", "basket")
    await two.ask("restore", "basket")
    await exchange_twice(two, one)
    for machine in (elsewhere, *(laptop.orchestrator for laptop in laptops)):
        assert await texts_by_channel(machine) == {"basket": TEXTS}
