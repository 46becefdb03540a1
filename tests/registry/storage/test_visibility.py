"""A restricted token sees no row of others, in any table and by any statement."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, func, insert, select, text

from orchestrator.service import Orchestrator
from registry.access import Access, Level
from registry.domain import now
from registry.errors import InternalError
from registry.registry import Registry
from registry.storage.conversations.channels import find_channel, get_channel, list_channels
from registry.storage.database import ReadTransaction
from registry.storage.index import message_index
from registry.storage.index.message_index import index_of
from registry.storage.paging import Page
from registry.storage.records.executions import list_executions
from registry.storage.safety import visibility
from registry.storage.safety.tokens import create_token, tokens_seeing
from registry.storage.safety.visibility import UNRESTRICTED
from registry.storage.tables import channel, conversation, metadata
from tests.seeded import Seeded

pytestmark = pytest.mark.both_databases

ALICE = Access("alice", Level.READ, ("a_*",))
OURS, THEIRS = 1, 2
RESTRICTED = sorted(metadata.tables.keys() - UNRESTRICTED)
HIDDEN = visibility.HIDDEN
"""Tables that restricted tokens cannot see."""


def row_of(name: str, number: int) -> Mapping[str, Any]:
    """Return a row of a table that belongs to the channel, message, edit and token of that number."""
    about: dict[str, Any] = {
        "number": number,
        "channel_number": number,
        "message_number": number,
        "named": number,
        "session": number,
        "name": ("a_1" if number == OURS else "b_1") + ("" if name == "channel" else " too"),
        "token": "alice" if number == OURS else "bob",
        "model_number": 1,
    }
    about |= {"name": about["token"]} if name == "token" else {}
    values = {dict: {}, bool: False, datetime: now(), bytes: bytes([number]), int: number, float: number}
    row = dict[str, Any]()
    for column in metadata.tables[name].columns:
        if column.key in about:
            row[column.key] = about[column.key]
        elif not column.nullable:
            row[column.key] = values.get(
                getattr(column.type, "impl_instance", column.type).python_type, f"{column.key} {number}"
            )
    return row


@pytest.fixture(scope="module")
def filled(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A registry with a row of our token and one of another token in each table."""
    registry = Registry(f"sqlite:///{shutil.copy(sqlite_template, tmp_path_factory.mktemp('filled') / 'registry.db')}")
    with registry.engine.execution_options(write=True).begin() as connection:
        for table in metadata.sorted_tables:
            if table.name not in UNRESTRICTED:
                connection.execute(insert(table), [row_of(table.name, number) for number in (OURS, THEIRS)])
    yield registry
    registry.close()


@pytest.mark.anyio
async def test_a_token_sees_no_row_of_others(filled: Registry) -> None:
    shown = filled.seen_by(ALICE)
    for name in RESTRICTED:
        table = metadata.tables[name]
        each, count = select(table), select(func.count()).select_from(table)
        rows = await shown.read(lambda tx, each=each: tx.execute(each).mappings().all())  # type: ignore[misc]
        theirs = row_of(name, THEIRS)
        assert not any(all(row[key] == value for key, value in theirs.items()) for row in rows), name
        assert len(rows) == (0 if name in HIDDEN else 1)
        seen, held = [
            await some.read(lambda tx, count=count: tx.execute(count).scalar_one())  # type: ignore[misc]
            for some in (shown, filled)
        ]
        assert (seen, held) == (len(rows), 2)


def test_every_table_has_a_visibility_rule() -> None:
    rules = [UNRESTRICTED, visibility.OF_CHANNEL, visibility.OF_MESSAGE, visibility.OF_TOKEN, visibility.HIDDEN]
    own = ["channel", "channel_link", "edit", "edit_token", "image", "token"]
    assert sorted([*own, *(name for tables in rules for name in tables)]) == sorted(metadata.tables)


def within(tx: Connection) -> Any:
    inner = select(channel.c.number).where(channel.c.number == conversation.c.channel_number)
    query = select(func.count()).select_from(conversation).where(inner.exists())
    return tx.execute(query).scalar_one()


def joined(tx: Connection) -> Any:
    join = conversation.join(channel, channel.c.number == conversation.c.channel_number)
    return tx.execute(select(func.count()).select_from(join)).scalar_one()


def united(tx: Connection) -> Any:
    union = select(channel.c.name).union_all(select(conversation.c.channel)).subquery()
    return tx.execute(select(func.count()).select_from(union)).scalar_one() / 2


def by_expression(tx: Connection) -> Any:
    named = select(conversation.c.number).cte("some_messages")
    return tx.execute(select(func.count()).select_from(named)).scalar_one()


@pytest.mark.anyio
async def test_no_form_of_query_bypasses_the_restriction(filled: Registry) -> None:
    for count in [within, joined, united, by_expression]:
        assert await filled.seen_by(ALICE).read(count) == 1
        assert await filled.read(count) == 2


@pytest.mark.anyio
async def test_a_statement_that_cannot_be_restricted_is_refused(filled: Registry) -> None:
    def built(tx: ReadTransaction) -> Any:
        return tx.execute(text("SELECT * FROM conversation")).all()

    def raw(tx: ReadTransaction) -> Any:
        return tx.exec_driver_sql("SELECT * FROM conversation").all()

    for work in (built, raw):
        with pytest.raises(InternalError):
            await filled.seen_by(ALICE).read(work)
        assert len(await filled.read(work)) == 2


@pytest.mark.anyio
async def test_writing_to_a_channel_of_others_is_not_found(filled: Registry) -> None:
    for restricted, found in ((ALICE, None), (None, "b_1")):
        row = await filled.seen_by(restricted).write(lambda tx: find_channel(tx, "b_1", lock=True))
        assert (row and row.name) == found


async def two_words(orchestrator: Orchestrator) -> None:
    """Store the same words in two channels."""
    for name in ("a_1", "b_1"):
        messages = [{"role": "user", "text": "kafka timeout"}]
        await orchestrator.registry.save_conversation(name, messages, "test", {"title": "kafka"})


@pytest.mark.anyio
@pytest.mark.parametrize("looked_up", [500, 0])
async def test_the_index_finds_and_counts_visible_messages_only(
    seeded: Seeded, looked_up: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_index, "MIN_FULL_READ", looked_up)
    registry = Registry(await seeded(two_words))

    def found(tx: ReadTransaction) -> Any:
        index = index_of(tx)
        [held] = index.match_each(tx, ["kafka"], (), ()).values()
        [titled] = index.match_titles(tx, ["kafka"]).values()
        counts = index.count(tx, ["kafka", "none"])
        return counts, (index.holders(tx, [["kafka"]]), held, titled)

    try:
        everything, _ = await registry.read(found)
        assert everything == {"kafka": 4}
        shown = await registry.seen_by(ALICE).read(found)
        assert shown == ({"kafka": 2}, ([1], [1], [-1]))
    finally:
        registry.close()


NAMES = ["it's", "100%", "100x", "a_b", "axb", "[ab]", "a", "back\\slash", "E'", "channel", "A_B"]


async def say_hello(orchestrator: Orchestrator) -> None:
    """Store a message in a channel of each name."""
    for name in NAMES:
        await orchestrator.registry.save_conversation(name, [{"role": "user", "text": "hello"}], "test")


SEEN_BY_PATTERN = {
    **{name: [name] for name in NAMES},
    "100?": ["100%", "100x"],
    "a*": ["a", "a_b", "axb"],
    "*'*": ["E'", "it's"],
    "x' OR '1'='1": [],
    "\\' OR 1=1 --": [],
}


@pytest.mark.anyio
async def test_channel_patterns_match_literally(seeded: Seeded) -> None:
    registry = Registry(await seeded(say_hello))
    try:
        for pattern, seen in SEEN_BY_PATTERN.items():
            shown = registry.seen_by(Access("it's 100% \\", Level.READ, (pattern,)))
            page = await shown.read(lambda tx: list_channels(tx, {}, Page()))
            assert sorted(one["channel"] for one in page["items"]) == seen, pattern
            assert page["total"] == len(seen)
            assert (await shown.read(lambda tx: list_executions(tx, {}, Page())))["total"] == 0
    finally:
        registry.close()


@pytest.mark.anyio
async def test_a_channel_is_seen_by_tokens_of_its_name_or_project(sqlite_url: str) -> None:
    registry = Registry(sqlite_url)
    messages = [{"role": "user", "text": "hello"}]
    await registry.save_conversation("a_1", messages, "cursor", {"project": "/home/ann/shop"})
    tokens = {"name": (["a_*"], []), "folder": ([], ["shop"]), "other": ([], ["blog"]), "all": ([], [])}
    for name, (channels, projects) in tokens.items():
        await registry.write(lambda tx, of=(name, Level.READ, channels, projects): create_token(tx, *of))  # type: ignore[misc]
    seeing = await registry.read(lambda tx: tokens_seeing(tx, get_channel(tx, "a_1")))
    assert sorted(seeing) == ["all", "folder", "name"]
    registry.close()
