"""A deleted message is in no search index, whatever becomes of its channel; one that is there is in it once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, select

from registry.storage.connections import create_database_engine
from registry.storage.conversations.channels import get_channel
from registry.storage.conversations.messages import delete_channel, delete_message, restore_channel, restore_message
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.index.message_index import index_of, message_entry
from registry.storage.safety.forgetting import ForgetSelection, affected_by, forget
from registry.storage.tables import conversation
from registry.text.analysis.analyzer import analyze
from tests.registry.ingest.chats import BASKET, Chat, Turn, channels

VAGUE = (Turn("continue", "Where were we?"), *BASKET)


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    opened = create_database_engine(database_url)
    yield opened.execution_options(write=True)
    opened.dispose()


def assert_index_is_right(engine: Engine, *gone: str) -> None:
    """Each word finds just the messages that say it and are not deleted, each filter those it is about."""
    holders: dict[str, set[int]] = {token: set() for text in gone for token in analyze(text)}
    wanted: dict[str, set[int]] = defaultdict(set, holders)
    with engine.begin() as connection:
        tx = ReadTransaction(connection)
        for row in tx.execute(select(conversation)):
            for token in message_entry({**row._mapping}, analyze(row.text)).tokens:
                wanted[token] |= set() if row.deleted else {row.number}
        found = {token: sorted(index_of(tx).holders(tx, [[token]])) for token in wanted}
    assert found == {token: sorted(numbers) for token, numbers in wanted.items()}
    assert wanted


def delete(engine: Engine, message_id: str, *, soft: bool = True) -> None:
    with engine.begin() as connection:
        tx = WriteTransaction(ReadTransaction(connection))
        if soft:
            delete_message(tx, message_id)
        else:
            forget(tx, affected_by(tx, ForgetSelection(id=message_id)))


def test_a_deleted_message_is_found_no_more_until_it_is_restored(engine: Engine) -> None:
    chat = Chat(engine, BASKET)
    ids = chat.tool(3)
    delete(engine, ids[0])
    delete(engine, ids[1], soft=False)
    assert_index_is_right(engine, BASKET[0].answer)
    with engine.begin() as connection:
        restore_message(WriteTransaction(ReadTransaction(connection)), ids[0])
    assert_index_is_right(engine, BASKET[0].answer)


def test_a_restored_channel_is_found_but_for_what_was_deleted_in_it_before(engine: Engine) -> None:
    chat = Chat(engine, BASKET)
    ids = chat.tool(3)
    delete(engine, ids[2])
    for _ in range(2):
        with engine.begin() as connection:
            tx = WriteTransaction(ReadTransaction(connection))
            delete_channel(tx, get_channel(tx, chat.name), soft=True)
        assert_index_is_right(engine)
        with engine.begin() as connection:
            restore_channel(WriteTransaction(ReadTransaction(connection)), chat.name)
        assert_index_is_right(engine)
    assert chat.channel().message_count == 5  # type: ignore[union-attr]


@pytest.mark.parametrize("where", ["the tool's", "the session's"])
def test_what_was_deleted_in_one_of_two_channels_is_found_no_more_when_they_are_one(engine: Engine, where: str) -> None:
    chat = Chat(engine, VAGUE)
    chat.read(4)
    [first_id, _] = chat.tool(1)
    if where == "the session's":
        with engine.begin() as connection:
            is_read = conversation.c.text == "continue", conversation.c.native_id.is_not(None)
            first_id = connection.execute(select(conversation.c.id).where(*is_read)).scalar_one()
    delete(engine, first_id)
    assert_index_is_right(engine)
    chat.tool(4)
    assert len(channels(engine)) == 1
    assert_index_is_right(engine)


@pytest.mark.parametrize("first", ["tool", "hook"])
def test_a_message_that_takes_its_clients_words_is_found_by_these_alone(engine: Engine, first: str) -> None:
    chat = Chat(engine, BASKET)
    ids = chat.tool(3, words=5)
    if first == "hook":
        chat.hook(0)
    delete(engine, ids[2])
    chat.read(3)
    assert len(channels(engine)) == 1
    assert_index_is_right(engine)


def test_a_deleted_message_stays_deleted_however_often_it_is_sent_again(engine: Engine) -> None:
    chat = Chat(engine, BASKET)
    ids = chat.tool(3)
    delete(engine, ids[1])
    assert chat.tool(3) == ids
    chat.read(3)
    chat.hook(0)
    assert_index_is_right(engine)
    [row] = channels(engine)
    assert row.message_count == 3 * 4 - 1
