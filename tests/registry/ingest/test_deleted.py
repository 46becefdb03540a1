"""A deleted message is not in the search index, also after its channel is merged, deleted or restored."""

from __future__ import annotations

from collections import defaultdict

import pytest
from sqlalchemy import Engine, select

from registry.storage.conversations.channels import get_channel
from registry.storage.conversations.messages import delete_channel, delete_message, restore_channel, restore_message
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.index.message_index import index_of, message_entry
from registry.storage.safety.forgetting import ForgetSelection, affected_by, forget
from registry.storage.tables import conversation
from registry.text.analysis.analyzer import analyze
from tests.registry.ingest.chats import BASKET, Chat, Turn, channels, stored_once, texts_in

VAGUE = (Turn("continue", "Where were we?"), *BASKET)


def assert_index_is_right(engine: Engine, *deleted: str) -> None:
    """Check that each token of the stored and the `deleted` texts finds exactly the undeleted messages with it."""
    holders: dict[str, set[int]] = {token: set() for text in deleted for token in analyze(text)}
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
            forget(tx, affected_by(tx, ForgetSelection(ids=[message_id])))


def test_a_deleted_message_is_not_found_until_it_is_restored(engine: Engine) -> None:
    chat = Chat(engine, BASKET)
    ids = chat.log(3)
    delete(engine, ids[0])
    delete(engine, ids[1], soft=False)
    assert_index_is_right(engine, BASKET[0].answer)
    with engine.begin() as connection:
        restore_message(WriteTransaction(ReadTransaction(connection)), ids[0])
    assert_index_is_right(engine, BASKET[0].answer)


def test_a_message_deleted_before_its_channel_is_not_restored_with_it(engine: Engine) -> None:
    chat = Chat(engine, BASKET)
    ids = chat.log(3)
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


@pytest.mark.parametrize("where", ["the tool's", pytest.param("the session's", marks=pytest.mark.both_databases)])
def test_a_message_deleted_in_one_of_two_channels_is_not_found_after_they_merge(engine: Engine, where: str) -> None:
    chat = Chat(engine, VAGUE)
    chat.read_store(4)
    [first_id, _] = chat.log(1)
    if where == "the session's":
        with engine.begin() as connection:
            is_read = conversation.c.text == "continue", conversation.c.native_id.is_not(None)
            first_id = connection.execute(select(conversation.c.id).where(*is_read)).scalar_one()
    delete(engine, first_id)
    assert_index_is_right(engine)
    chat.log(4)
    [row] = channels(engine)
    assert texts_in(engine, row) == stored_once(VAGUE)[1:]
    assert_index_is_right(engine)


@pytest.mark.parametrize("first", ["tool", "hook"])
def test_a_message_completed_from_the_store_is_found_by_its_new_text_only(engine: Engine, first: str) -> None:
    chat = Chat(engine, BASKET)
    ids = chat.log(3, words=5)
    if first == "hook":
        chat.send_hooks(0)
    delete(engine, ids[2])
    chat.read_store(3)
    assert len(channels(engine)) == 1
    assert_index_is_right(engine)


@pytest.mark.both_databases
def test_a_deleted_message_stays_deleted_when_it_is_sent_again(engine: Engine) -> None:
    chat = Chat(engine, BASKET)
    ids = chat.log(3)
    delete(engine, ids[1])
    assert chat.log(3) == ids
    chat.read_store(3)
    chat.send_hooks(0)
    assert_index_is_right(engine)
    [row] = channels(engine)
    assert row.message_count == 3 * 4 - 1
