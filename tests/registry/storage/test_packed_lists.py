"""On PostgreSQL a large registry is searched by packed lists of its common words: found is the same as without them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, text

from orchestrator.service import Orchestrator
from orchestrator.sync.sync import sync
from registry.access import Access, Level
from registry.errors import InternalError
from registry.registry import Registry
from registry.search.retrieval import find_messages
from registry.search.scope import Scope
from registry.storage.conversations.channels import find_channel
from registry.storage.conversations.messages import delete_channel, delete_message, restore_channel, restore_message
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.index import kept_lists, message_index, packing, postgres_index, posting_blocks
from registry.storage.index.packing import look_after, pack_lists, pack_some
from registry.storage.index.postgres_index import PackedIndex, PostgresIndex
from registry.storage.index.rebuild_index import reindex
from registry.storage.safety.forgetting import wipe
from registry.storage.tables import conversation
from registry.storage.upkeep.integrity import damage_of
from registry.text.analysis.analyzer import analyze
from sources.base import Places
from sources.claude_code.reader import ClaudeCode
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, write

pytestmark = pytest.mark.anyio

WORDS = ["redis", "postgres", "kafka", "nginx", "docker", "python", "golang", "terraform"]
RARE = ["zebra", "walrus"]
LEAST = 6


@pytest.fixture
async def registry(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Registry]:
    """A registry that counts as large, with 120 messages in blocks of 64 numbers; of the words each stands in some."""
    monkeypatch.setattr(message_index, "LARGE", 50)
    monkeypatch.setattr(message_index, "COMMON", LEAST)
    monkeypatch.setattr(packing, "SPAN", 64)
    for name, value in (("SPAN", 64), ("WIDTH", 8), ("DENSE", 4), ("DENSE_LIST", 16), ("WORDS", 1)):
        monkeypatch.setattr(posting_blocks, name, value)
    registry = Registry(postgres_url)
    dice = random.Random(5)
    for channel in range(12):
        await save(registry, f"c{channel}", *(said(dice) for _ in range(10)))
    await pack(registry)
    yield registry
    registry.close()


def said(dice: random.Random) -> str:
    common = dice.choices(WORDS, [1 / (rank + 1) for rank in range(len(WORDS))], k=dice.randint(1, 4))
    return " ".join([*common, *(dice.choices(RARE) if dice.random() < 0.03 else [])])


async def save(registry: Registry, channel: str, *texts: str) -> list[str]:
    return await registry.save_conversation(channel, [{"role": "user", "text": said} for said in texts], "cursor")


async def take_out(registry: Registry, channel: str) -> None:
    def work(tx: WriteTransaction) -> None:
        row = find_channel(tx, channel)
        assert row
        delete_channel(tx, row, soft=True)

    await registry.write(work)


async def pack(registry: Registry) -> None:
    await registry.maintain(["ANALYZE message_index"])
    await pack_lists(registry)
    await pack_lists(registry, everything=True)


def counted(tx: ReadTransaction, table: str) -> int:
    return int(tx.execute(text(f"SELECT count(*) FROM message_index_{table}")).scalar_one())  # noqa: S608, ours


def lists_that_differ(tx: ReadTransaction) -> list[Any]:
    """What is asked of the lists, and found otherwise than without them."""
    plain, packed = PostgresIndex(), PackedIndex()
    tokens = [*WORDS, *RARE, "zzsursor", "zzruser", "zzc3"]
    wrong: list[Any] = (
        [("count", plain.count(tx, tokens))] if plain.count(tx, tokens) != packed.count(tx, tokens) else []
    )
    dice = random.Random(9)
    for _ in range(12):
        groups = [dice.sample(tokens, dice.randint(1, 3)) for _ in range(dice.randint(1, 3))]
        without = dice.sample(tokens, dice.randint(0, 2))
        if sorted(plain.holders(tx, groups, without)) != sorted(packed.holders(tx, groups, without)):
            wrong.append((groups, without))
        if sorted(plain.newest_holders(tx, groups, without, 5)) != sorted(
            packed.newest_holders(tx, groups, without, 5)
        ):
            wrong.append((groups, without, 5))
        each = [
            {token: sorted(numbers) for token, numbers in index.holders_of_each(tx, tokens, groups, without).items()}
            for index in (plain, packed)
        ]
        if each[0] != each[1]:
            wrong.append((tokens, groups, without))
    return wrong


async def check_same(registry: Registry) -> None:
    assert await registry.read(lists_that_differ) == []


async def found(registry: Registry, words: str) -> list[int]:
    """The messages that hold the words, by number, as a search says."""
    result = await registry.read(lambda tx: find_messages(tx, words, Scope()))
    return sorted(one.candidate.number for one in result.ranked if one.candidate.number in result.matched)


def ids_of(tx: ReadTransaction, numbers: list[int]) -> list[str]:
    return list(tx.execute(select(conversation.c.id).where(conversation.c.number.in_(numbers))).scalars())


async def in_lists(registry: Registry) -> int:
    return await registry.read(lambda tx: counted(tx, "block"))


async def test_a_search_reads_the_lists_and_finds_the_same(registry: Registry) -> None:
    await check_same(registry)
    [token] = analyze("redis")[:1]
    packed = text("SELECT usable FROM message_index_token WHERE token = :token").bindparams(token=token)
    assert await registry.read(lambda tx: tx.execute(packed).scalar())
    assert await found(registry, "redis")
    # What is found is what the lists say: one that is wrong shows, but to who has read it before.
    await registry.write(lambda tx: tx.execute(text("DELETE FROM message_index_block")))
    assert await found(registry, "redis")
    await registry.write(lambda tx: tx.execute(text("UPDATE message_index_state SET version = gen_random_uuid()")))
    assert not await found(registry, "redis")


async def test_lists_are_read_anew_when_another_program_has_made_one_anew(registry: Registry) -> None:
    assert await found(registry, "redis")
    other = Registry(registry.engine.url.render_as_string(hide_password=False))
    [one] = await save(other, "later", "redis")
    await pack(other)
    other.close()
    result = await registry.read(lambda tx: find_messages(tx, "redis", Scope()))
    assert one in await registry.read(lambda tx: ids_of(tx, [each.candidate.number for each in result.ranked]))
    await check_same(registry)
    await registry.write(packing.unpack)
    await take_out(registry, "later")
    await pack(registry)
    await check_same(registry)


async def test_of_the_lists_read_only_so_many_bytes_are_kept(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_lists, "MOST_BYTES", 40)
    for _ in range(3):
        await check_same(registry)
        for word in WORDS:
            assert await found(registry, word)


async def test_lists_hold_few_and_many_numbers_in_whatever_way_is_shorter(registry: Registry) -> None:
    lengths = "SELECT DISTINCT length(numbers) FROM message_index_block"
    found = set(await registry.read(lambda tx: tx.execute(text(lengths)).scalars().all()))
    assert max(found) == posting_blocks.WIDTH
    assert min(found) < posting_blocks.WIDTH


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_changes_the_same_is_found(
    registry: Registry, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:  # no list is read as bits
        monkeypatch.setattr(posting_blocks, "DENSE_LIST", 0)
    dice = random.Random(seed)
    ids = await save(registry, "more", *(said(dice) for _ in range(10)))
    for step in range(10):
        name = f"c{dice.randrange(12)}"
        match dice.randrange(6):
            case 0:
                ids += await save(registry, name, f"{said(dice)} {step}")
            case 1:
                await registry.delete_conversation(ids.pop(dice.randrange(len(ids))), soft=False)
            case 2:
                given = dice.choice(ids)
                await registry.write(partial(delete_message, message_id=given))
                await check_same(registry)
                await registry.write(partial(restore_message, message_id=given))
            case 3:
                await take_out(registry, name)
                await check_same(registry)
                await registry.write(partial(restore_channel, name=name))
            case 4:
                await registry.write(pack_some)
            case _:
                await pack(registry)
        await check_same(registry)


async def test_what_is_deleted_is_not_found_from_then_on(registry: Registry) -> None:
    soft, hard, channel = [(await save(registry, name, "redis kafka apart"))[0] for name in ("x", "y", "z")]
    await pack(registry)
    before = await found(registry, "redis")
    await registry.delete_conversation(soft)
    assert len(await found(registry, "redis")) == len(before) - 1
    await registry.delete_conversation(hard, soft=False)
    assert len(await found(registry, "redis")) == len(before) - 2
    await take_out(registry, "z")
    assert len(await found(registry, "redis")) == len(before) - 3
    assert channel


async def test_nothing_of_a_forgotten_message_stays_in_the_lists(registry: Registry) -> None:
    [given] = await save(registry, "x", "redis kafka")
    await pack(registry)
    await registry.delete_conversation(given, soft=False)
    await wipe(registry)
    assert await registry.read(lambda tx: counted(tx, "noted")) == 0
    assert damage_of(registry.engine.url.render_as_string(hide_password=False)) == []
    await check_same(registry)


async def test_who_forgets_waits_for_a_server_that_is_making_lists(registry: Registry) -> None:
    [given] = await save(registry, "x", "redis kafka")
    await pack(registry)
    await registry.delete_conversation(given, soft=False)
    with registry.engine.execution_options(write=True).begin() as connection:
        pack_some(WriteTransaction(ReadTransaction(connection)))
        packing_too = asyncio.create_task(pack_lists(registry, everything=True))
        done, _ = await asyncio.wait([packing_too], timeout=0.2)
        assert not done
    await packing_too
    assert await registry.read(lambda tx: counted(tx, "noted")) == 0


async def test_who_forgets_does_not_make_all_lists_that_a_server_has_begun(registry: Registry) -> None:
    [given] = await save(registry, "x", "redis kafka")
    await registry.write(packing.unpack)
    assert await registry.write(pack_some)
    await registry.delete_conversation(given, soft=False)
    await pack_lists(registry, everything=True)
    assert await registry.read(lambda tx: counted(tx, "noted")) == 0
    assert await registry.read(lambda tx: tx.execute(text("SELECT next_block FROM message_index_state")).scalar()) == 0
    await check_same(registry)
    await pack(registry)
    await check_same(registry)


async def test_what_is_forgotten_in_many_places_takes_all_lists_with_it_until_a_server_makes_them(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    [given] = await save(registry, "x", "redis kafka")
    await pack(registry)
    await registry.delete_conversation(given, soft=False)
    monkeypatch.setattr(packing, "AT_ONCE", 0)
    await wipe(registry)
    assert await registry.read(lambda tx: counted(tx, "block")) == 0
    await check_same(registry)
    await pack(registry)
    assert await registry.read(lambda tx: counted(tx, "block")) > 0
    await check_same(registry)


async def test_who_has_not_ended_writing_when_a_block_is_made_is_found(registry: Registry) -> None:
    [given] = await save(registry, "x", "redis kafka")
    with registry.engine.execution_options(write=True).begin() as connection:
        delete_message(WriteTransaction(ReadTransaction(connection)), given)
        await save(registry, "y", "redis nginx")
        await pack(registry)  # without waiting
        await check_same(registry)
    await check_same(registry)
    await pack(registry)
    await check_same(registry)


async def test_what_is_rolled_back_is_as_before(registry: Registry) -> None:
    [given] = await save(registry, "x", "redis kafka")
    await pack(registry)

    def give_up(tx: WriteTransaction) -> None:
        delete_message(tx, given)
        raise KeyError(given)

    with pytest.raises(KeyError):
        await registry.write(give_up)
    assert await registry.read(lambda tx: counted(tx, "noted")) == 0
    await check_same(registry)


async def test_stopped_after_any_step_it_finds_the_same_and_goes_on_there(registry: Registry) -> None:
    await registry.write(packing.unpack)
    steps = 0
    while await registry.write(pack_some):
        steps += 1
        await save(registry, "x", f"redis {steps}")
        await check_same(registry)
        assert steps < 20
    assert steps >= 4
    assert await in_lists(registry) > 0


async def test_a_block_that_cannot_be_made_leaves_the_notes_and_the_old_one(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    await save(registry, "x", "redis kafka")

    def fail(*_: object) -> None:
        raise LookupError

    before = await in_lists(registry)
    with monkeypatch.context() as broken:
        broken.setattr(packing, "insert_records", fail)
        with pytest.raises(LookupError):
            await pack(registry)
    assert await in_lists(registry) == before
    await check_same(registry)
    await pack(registry)
    await check_same(registry)


async def test_two_that_pack_at_once_do_not_disturb_each_other(registry: Registry) -> None:
    await save(registry, "x", "redis kafka")
    with registry.engine.execution_options(write=True).begin() as connection:
        assert pack_some(WriteTransaction(ReadTransaction(connection)), everything=True)
        assert not await registry.write(pack_some)
    await check_same(registry)


async def test_a_rebuilt_index_has_lists_of_its_own(registry: Registry) -> None:
    await reindex(registry, lambda _done, _total: None, everything=True)
    assert await in_lists(registry) > 0
    await save(registry, "x", "redis kafka")
    await check_same(registry)


async def test_an_index_that_an_older_program_has_rebuilt_is_read_without_lists_until_they_are_made(
    registry: Registry,
) -> None:
    """Such a program knows nothing of lists and notes: it puts another table in the place of the index."""

    def exchange(tx: WriteTransaction) -> None:
        tx.execute(text("CREATE TABLE other AS SELECT * FROM message_index"))
        tx.execute(text("DROP TABLE message_index"))
        tx.execute(text("ALTER TABLE other RENAME TO message_index"))
        tx.execute(text("ALTER TABLE message_index ADD CONSTRAINT message_index_pkey PRIMARY KEY (number)"))
        tx.execute(text("CREATE INDEX ix_message_index_tokens ON message_index USING gin (tokens)"))

    await registry.write(exchange)
    await save(registry, "x", "redis kafka")
    await check_same(registry)
    await pack(registry)
    await save(registry, "x", "redis nginx")
    assert await registry.read(lambda tx: counted(tx, "noted")) == 1
    await check_same(registry)


async def test_with_many_notes_the_lists_are_not_read(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_index, "MOST_NOTED", 1)
    await save(registry, "x", "redis kafka")
    await check_same(registry)


async def test_a_small_registry_has_no_lists_and_keeps_no_notes(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_index, "LARGE", 100_000)
    await registry.write(packing.unpack)
    await save(registry, "x", "redis kafka")
    await pack(registry)
    assert [await registry.read(partial(counted, table=name)) for name in ("noted", "block")] == [0, 0]


async def test_words_that_become_common_are_packed_when_the_registry_has_grown(registry: Registry) -> None:
    await save(registry, "x", *(f"walrus kafka {number}" for number in range(60)))
    await pack(registry)
    [token] = analyze("walrus")[:1]
    packed = text("SELECT usable FROM message_index_token WHERE token = :token").bindparams(token=token)
    assert await registry.read(lambda tx: tx.execute(packed).scalar())
    await check_same(registry)


async def test_a_restricted_token_cannot_read_the_lists(registry: Registry) -> None:
    seen = registry.seen_by(Access("bob", Level.READ, channels=("c1",)))
    with pytest.raises(InternalError):
        await seen.read(lambda tx: counted(tx, "block"))
    result = await seen.read(lambda tx: find_messages(tx, "redis", Scope()))
    assert len({one.candidate.channel_id for one in result.ranked}) == 1


async def test_a_list_that_is_not_as_the_index_is_named_as_damage(registry: Registry) -> None:
    url = registry.engine.url.render_as_string(hide_password=False)
    assert damage_of(url) == []
    wrong = "UPDATE message_index_block SET numbers = '\\x0001' WHERE token = 'redi' OR token = 'redis'"
    await registry.write(lambda tx: tx.execute(text(wrong)))
    [damage] = damage_of(url)
    assert "blocks of the packed lists" in damage


async def test_a_block_that_is_missing_is_named_as_damage(registry: Registry) -> None:
    await registry.write(lambda tx: tx.execute(text("DELETE FROM message_index_block WHERE block = 1")))
    [damage] = damage_of(registry.engine.url.render_as_string(hide_password=False))
    assert "blocks of the packed lists" in damage


async def test_a_block_that_grows_fast_is_made_when_it_is_full_or_when_it_grows_no_more(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "NOTES", 3)
    seen = await look_after(registry)
    await save(registry, "x", *["redis kafka"] * 4)
    seen = await look_after(registry, seen)
    assert await registry.read(lambda tx: counted(tx, "noted")) == 4
    await check_same(registry)
    await save(registry, "x", *["redis nginx"] * posting_blocks.SPAN)
    seen = await look_after(registry, seen)
    assert 0 < await registry.read(lambda tx: counted(tx, "noted")) < posting_blocks.SPAN
    await check_same(registry)
    await look_after(registry, seen)
    assert await registry.read(lambda tx: counted(tx, "noted")) == 0
    await check_same(registry)


async def test_who_brings_in_a_history_leaves_no_notes_behind_without_a_server(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(packing, "NOTES", 3)
    talk = Dialogue(session_id(1))
    for number in range(5):
        talk.user(f"redis kafka {number}")
    write(tmp_path / ".claude", talk)
    [report] = await sync(Orchestrator(registry), [ClaudeCode()], Places(tmp_path, {}))
    assert report.new_messages == 5
    assert await registry.read(lambda tx: counted(tx, "noted")) == 0
    await check_same(registry)
