"""Pages, windows and figures of stored records: nothing deleted, nothing twice."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from sqlalchemy import ColumnElement, func, insert, select

from registry.domain import now
from registry.registry import Registry
from registry.storage.conditions import is_one_of, is_pair_of
from registry.storage.conversations.channels import get_channel, list_channels
from registry.storage.conversations.facets import (
    known_names,
    names_like,
    projects_by_activity,
    registry_totals,
)
from registry.storage.conversations.message_windows import numbers_containing, read_window, remembered, window_around
from registry.storage.conversations.messages import delete_channel, get_message, list_messages
from registry.storage.conversations.references import edit_channel
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.exchange.change_feed import UpdatedChannels
from registry.storage.file_probe import RegistryFile
from registry.storage.paging import Order, Page
from registry.storage.records.extract_results import has_hint, list_results, save_result, useless_hints
from registry.storage.tables import conversation, rating

pytestmark = pytest.mark.anyio

DAYS = [datetime(2026, 3, day, tzinfo=UTC) for day in (4, 5, 6)]


@pytest.fixture
async def registry(database_url: str) -> AsyncIterator[Registry]:
    """A registry with a channel of seven messages, and one of one message on the next day."""
    registry = Registry(database_url)
    await say(registry, "long", [f"line {i}" for i in range(7)], "2026-03-04", project="/home/me/shop")
    await say(registry, "short", ["a line"], "2026-03-05", source="claude", project="/home/me/blog")
    yield registry
    registry.close()


async def say(
    registry: Registry, channel: str, texts: list[str], day: str, source: str = "cursor", **more: str
) -> list[str]:
    messages = [{"role": "user", "text": text, "timestamp": f"{day}T10:00:{i:02}Z"} for i, text in enumerate(texts)]
    return await registry.save_conversation(channel, messages, source, more)


async def delete(registry: Registry, channel: str) -> None:
    await registry.write(lambda tx: delete_channel(tx, get_channel(tx, channel), soft=True))


@pytest.mark.both_databases
async def test_pages_contain_each_row_once_and_end(registry: Registry) -> None:
    orders: tuple[Order, ...] = ("asc", "desc")
    for order in orders:
        for limit in [3, 7]:
            seen: list[str] = []
            cursor: str | None = None
            pages = 0
            while pages == 0 or cursor:
                wanted = {"channel": "long"}
                answer = await registry.read(partial(list_messages, wanted=wanted, page=Page(limit, cursor, order)))
                seen += [item["text"] for item in answer["items"]]
                cursor, pages = answer["next_cursor"], pages + 1
                assert answer["total"] == 7
            expected = [f"line {i}" for i in range(7)]
            assert seen == (expected if order == "asc" else expected[::-1])
            assert pages == -(-7 // limit)


@pytest.mark.both_databases
async def test_a_window_around_a_message_has_cursors_to_earlier_and_later_ones(registry: Registry) -> None:
    ids = [message["id"] for message in await registry.get_conversations("long")]

    def work(tx: Any) -> list[list[str]]:
        around = window_around(tx, get_message(tx, ids[3]), before=2, limit=2)
        assert around.earlier
        assert around.later
        before = read_window(tx, 1, Page(10, around.earlier, "desc"))
        after = read_window(tx, 1, Page(10, around.later, "asc"))
        assert before.earlier is None
        assert after.later is None
        return [[row.text for row in window.rows] for window in (before, around, after)]

    assert await registry.read(work) == [["line 0"], ["line 1", "line 2", "line 3", "line 4"], ["line 5", "line 6"]]


@pytest.mark.both_databases
async def test_sources_projects_and_tags_exclude_deleted_channels(registry: Registry) -> None:
    await registry.write(lambda tx: edit_channel(tx, "short", {}, ["infra"]))

    def facets(tx: Any) -> list[list[str]]:
        return [
            sorted(known_names(tx).sources),
            names_like(tx, "project", "", 2),
            [path for _, path, _ in projects_by_activity(tx, 5, "claude")],
            names_like(tx, "tag", "INF", 5),
        ]

    assert await registry.read(facets) == [["claude", "cursor"], ["blog", "shop"], ["/home/me/blog"], ["infra"]]
    await delete(registry, "short")
    assert (await registry.read(facets))[:3] == [["cursor"], ["shop", "/home/me/shop"], []]


@pytest.mark.both_databases
async def test_figures_count_undeleted_messages_by_source_and_project(registry: Registry) -> None:
    [first, *_] = [message["id"] for message in await registry.get_conversations("long")]
    await registry.delete_conversation(first)
    assert await registry.read(registry_totals) == {
        "channels": 2,
        "messages": 7,
        "sources": [
            {"source": "cursor", "channels": 1, "messages": 6},
            {"source": "claude", "channels": 1, "messages": 1},
        ],
        "projects": [
            {"project": "shop", "channels": 1, "messages": 6},
            {"project": "blog", "channels": 1, "messages": 1},
        ],
    }
    await delete(registry, "short")
    left = await registry.read(registry_totals)
    assert (left["channels"], left["messages"]) == (1, 6)


@pytest.mark.both_databases
async def test_a_channel_with_new_messages_is_listed_once_with_all_its_names(registry: Registry) -> None:
    since = now()
    await registry.write(lambda tx: edit_channel(tx, "long", {"nickname": "the long one"}, None))
    updated = await registry.read(lambda tx: UpdatedChannels(tx, since))
    assert await registry.read(updated.names) == set()
    await say(registry, "long", ["line 7"], "2026-03-06")
    assert await registry.read(updated.names) == {"long", "the long one"}
    assert await registry.read(updated.names) == set()
    last = await registry.read(lambda tx: tx.execute(select(func.max(conversation.c.received_at))).scalar_one())
    at_that_moment = await registry.read(lambda tx: UpdatedChannels(tx, last))
    assert await registry.read(at_that_moment.names) == {"long", "the long one"}
    before_all = await registry.read(lambda tx: UpdatedChannels(tx, DAYS[0].replace(year=2020)))
    assert await registry.read(before_all.names) == {"long", "the long one", "short"}


@pytest.mark.both_databases
async def test_extract_results_are_listed_newest_first_without_deleted_ones(registry: Registry) -> None:
    def keep(tx: WriteTransaction) -> None:
        for at, day in enumerate(DAYS):
            kind = {"record_type": "extract_result", "channel": "long", "result_type": "messages"}
            save_result(tx, f"r{at}", **kind, items=["m"], metadata={}, timestamp=day)
        tx.exec_driver_sql("UPDATE extract_result SET deleted = true WHERE id = 'r1'")

    await registry.write(keep)
    listed = await registry.read(lambda tx: list_results(tx, "long", Page()))
    assert ([item["id"] for item in listed["items"]], listed["total"]) == (["r2", "r0"], 2)
    assert (await registry.read(lambda tx: list_results(tx, None, Page())))["total"] == 2
    assert (await registry.read(lambda tx: list_results(tx, "short", Page())))["total"] == 0


@pytest.mark.both_databases
async def test_an_extract_result_is_recognised_by_its_messages_and_client(registry: Registry) -> None:
    def keep(tx: WriteTransaction) -> None:
        for at, client in enumerate(("chat-1", "chat-2")):
            kind = {"record_type": "hint", "channel": "long", "result_type": "hint"}
            save_result(tx, f"r{at}", **kind, items=[f"m{at}"], metadata={"client": client}, timestamp=DAYS[0])

    async def is_known(channel: str, client: str, item: str) -> bool:
        return await registry.read(lambda tx: has_hint(tx, channel, client, [item]))

    await registry.write(keep)
    assert await is_known("long", "chat-1", "m0")
    assert not await is_known("long", "chat-1", "m1")
    assert not await is_known("long", "chat-2", "m0")
    assert not await is_known("short", "chat-1", "m0")


@pytest.mark.both_databases
async def test_useless_hints_of_a_folder_are_those_rated_useless(registry: Registry) -> None:
    def keep(tx: WriteTransaction) -> None:
        kind = {"record_type": "hint", "channel": "long", "result_type": "hint"}
        for at, useful in enumerate((True, False)):
            about = {"execution_id": f"exec_{at}", "folder": "/home/me/shop"}
            save_result(tx, f"r{at}", **kind, items=[f"m{at}"], metadata=about, timestamp=DAYS[0])
            rated = {"execution_id": f"exec_{at}", "operation": "hint", "source": "codex", "rated_at": DAYS[0]}
            tx.execute(insert(rating).values(**rated, useful=useful))

    await registry.write(keep)
    assert await registry.read(lambda tx: useless_hints(tx, "long", "/home/me/shop")) == [["m1"]]
    assert await registry.read(lambda tx: useless_hints(tx, "long", "/home/me/blog")) == []


async def test_lookups_of_many_numbers_and_pairs_use_an_index(registry: Registry) -> None:
    columns = conversation.c
    conditions = (
        is_one_of(columns.number, [1]),
        is_one_of(columns.id, ["a"]),
        is_pair_of(columns.channel_number, columns.seq, [(1, 2)]),
    )

    def plan_of(tx: ReadTransaction, condition: ColumnElement[bool]) -> str:
        query = select(columns.text).where(condition, columns.deleted.is_(False)).compile(dialect=tx.dialect)
        return str(tx.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", ("[]",)).all()[0][-1])

    for condition in conditions:
        plan = await registry.read(partial(plan_of, condition=condition))
        assert plan.startswith("SEARCH conversation"), plan


@pytest.mark.both_databases
async def test_reading_the_trash_does_not_scan_undeleted_messages(registry: Registry) -> None:
    await delete(registry, "short")
    statements: list[str] = []

    def traced(tx: ReadTransaction) -> list[str]:
        driver: Any = tx.connection.driver_connection
        driver.set_trace_callback(statements.append)
        found = trash(tx)
        driver.set_trace_callback(None)
        return found

    def trash(tx: ReadTransaction) -> list[str]:
        return [one["channel"] for one in list_channels(tx, {"deleted": True}, Page())["items"]]

    assert await registry.read(trash) == ["short"]
    if registry.dialect != "sqlite":
        return
    assert await registry.read(traced) == ["short"]
    with closing(sqlite3.connect(str(registry.engine.url.database))) as connection:
        plans = [step for one in statements for step in connection.execute(f"EXPLAIN QUERY PLAN {one}")]
    read = [step[-1] for step in plans if step[-1].startswith("SCAN channel")]
    assert all("COVERING INDEX" in step for step in read), plans


async def test_reading_remembered_sentences_does_not_scan_all_messages(registry: Registry) -> None:
    await say(registry, "remembered", ["be brief"], "2026-03-06", source="remembered")
    statements: list[str] = []

    def texts(tx: ReadTransaction) -> list[str]:
        driver: Any = tx.connection.driver_connection
        driver.set_trace_callback(statements.append)
        held = remembered(tx, "/home/me/shop")
        driver.set_trace_callback(None)
        return [one["text"] for one in held]

    assert await registry.read(texts) == ["be brief"]
    with closing(sqlite3.connect(str(registry.engine.url.database))) as connection:
        connection.row_factory = sqlite3.Row
        connection.set_trace_callback(statements.append)
        assert RegistryFile(connection).remembered("/home/me/shop", None) == ["be brief"]
        connection.set_trace_callback(None)
        plans = [connection.execute(f"EXPLAIN QUERY PLAN {one}").fetchall() for one in statements if "SELECT" in one]
    steps = [step["detail"] for plan in plans for step in plan if step["detail"].startswith(("SCAN", "SEARCH"))]
    assert [step.partition(" USING")[0] for step in steps if "json_each" not in step] == [
        *("SEARCH channel", "SEARCH channel_1", "SEARCH conversation"),
        *("SEARCH channel", "SEARCH conversation"),
    ], steps
    assert "(name>? AND name<?)" in steps[0]


@pytest.mark.both_databases
async def test_text_filters_ignore_case_and_treat_wildcards_literally(registry: Registry) -> None:
    texts = ["100% of a/b_c", "100x", "The QUEUE is full", "큐가 가득 찼다", "Café ÄRGER", "bxc", "a\\b"]
    await say(registry, "odd", texts, "2026-03-06")
    number = await registry.read(lambda tx: get_channel(tx, "odd").number)

    async def holding(words: str) -> list[str]:
        def work(tx: ReadTransaction) -> list[str]:
            numbers = numbers_containing(tx, number, words, 9)
            return list(
                tx.execute(select(conversation.c.text).where(is_one_of(conversation.c.number, numbers))).scalars()
            )

        return await registry.read(work)

    assert await holding("100%") == await holding("B_C") == await holding("a/b") == [texts[0]]
    assert await holding("a\\b") == await holding("\\") == [texts[6]]
    assert await holding("queue") == [texts[2]]
    assert await holding("가득") == [texts[3]]
    assert await holding("CAFÉ ä") == [texts[4]]
    [gone] = [one["id"] for one in await registry.get_conversations("odd") if one["text"] == texts[2]]
    await registry.delete_conversation(gone)
    assert await holding("queue") == []
