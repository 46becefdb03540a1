"""The feed of events, as a listener follows it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from registry.domain import Actor, Message, Role, now
from registry.ingest.save import save_messages
from registry.storage.connections import create_database_engine
from registry.storage.conversations.channels import open_channel
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.exchange.change_feed import Listener, newest_position


@pytest.fixture
def transactions(postgres_url: str) -> Iterator[list[WriteTransaction]]:
    engine = create_database_engine(postgres_url)
    connections = [engine.connect() for _ in range(3)]
    yield [WriteTransaction(ReadTransaction(connection)) for connection in connections]
    for connection in connections:
        connection.close()
    engine.dispose()


def save(tx: WriteTransaction, channel: str) -> None:
    into = open_channel(tx, channel, "cursor", now())
    messages = [Message(Role.USER, channel)]
    save_messages(tx, into, messages, source="cursor", metadata={}, actor=Actor.TOOL, received_at=now())


def test_a_message_committed_after_a_newer_one_is_not_skipped(transactions: list[WriteTransaction]) -> None:
    slow, quick, reader = transactions
    listener = Listener(newest_position(reader))
    save(slow, "slow")
    save(quick, "quick")
    quick.commit()
    reader.rollback()
    assert [event.item["channel"] for event in listener.news(reader)] == ["quick"]
    slow.commit()
    reader.rollback()
    assert [event.item["channel"] for event in listener.news(reader)] == ["slow"]
    assert listener.news(reader) == []
