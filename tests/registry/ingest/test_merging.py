"""A channel's title, owner, results and times after it is merged or gets earlier messages."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Engine, select, update

from registry.domain import Message, Role
from registry.search.retrieval import find_messages
from registry.search.scope import Scope
from registry.storage.conversations.channels import describe_channel, get_channel
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.records.extract_results import save_result
from registry.storage.tables import channel, conversation, extract_result
from tests.registry.ingest.chats import BASKET, NINE, Chat, Turn, links

VAGUE = Turn("continue", "Where were we?")


@pytest.mark.both_databases
def test_title_owner_and_extract_results_move_to_the_merged_channel(engine: Engine) -> None:
    chat = Chat(engine, [VAGUE, *BASKET])
    chat.read_store(len(chat.turns))
    chat.log(1)
    assert links(engine, chat.name)
    with engine.begin() as connection:
        tx = WriteTransaction(ReadTransaction(connection))
        named = get_channel(tx, chat.name)
        describe_channel(tx, named, {"title": "zebra crossing"})
        set_owner = update(channel).where(channel.c.number == named.number)
        tx.execute(set_owner.values(owner="kim", shared_with="team"))
        numbers = select(conversation.c.number).where(conversation.c.channel_number == named.number)
        hits = list(tx.execute(numbers).scalars())
        save_result(
            tx,
            "ext_1",
            record_type="extracted",
            channel=chat.name,
            result_type="raw",
            items=[],
            metadata={"hits": hits},
            timestamp=NINE,
            token=None,
        )
    chat.log(len(chat.turns))
    assert not links(engine, chat.name)
    with engine.begin() as connection:
        tx = WriteTransaction(ReadTransaction(connection))
        session = get_channel(tx, chat.name)
        assert session.number != named.number
        assert (session.owner, session.shared_with) == ("kim", "team")
        found = find_messages(tx, "zebra", Scope())
        assert (list(found.titles), [term.frequency for term in found.terms]) == ([session.number], [1])
        [metadata] = tx.execute(select(extract_result.c.metadata)).scalars()
        kept = select(conversation.c.channel_number).where(conversation.c.number.in_(metadata["hits"]))
        assert set(tx.execute(kept).scalars()) == {session.number}


def test_a_channel_begins_with_its_earliest_message_even_if_that_arrives_later(engine: Engine) -> None:
    chat = Chat(engine, BASKET)
    for hours in (3, 0, 5):
        chat.log_messages([Message(Role.USER, f"{hours} hours later", NINE + timedelta(hours=hours))], 1)
    with engine.begin() as connection:
        row = get_channel(WriteTransaction(ReadTransaction(connection)), chat.name)
    assert (row.created_at, row.updated_at) == (NINE, NINE + timedelta(hours=5))
