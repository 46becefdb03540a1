"""The number of SQL statements does not grow with the length of a conversation."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import Engine

from registry.domain import Message, Role, Session
from registry.ingest.from_client import ingest_from_client
from registry.storage.conversations.channels import get_channel
from registry.storage.conversations.messages import delete_channel, restore_channel
from registry.storage.database import ReadTransaction, WriteTransaction
from tests.registry.ingest.chats import NINE, Chat, Turn, channels, links, stored_once, texts_in
from tests.registry.ingest.statements import statements


def long_chat(engine: Engine, length: int) -> Chat:
    turns = [
        Turn(f"What about the {n}th of them, is it in?", f"It is the {n}th, and it has been.") for n in range(length)
    ]
    return Chat(engine, [VAGUE, *turns], f"chat {length}", f"c-{length}", f"/home/ann/{length}")


VAGUE = Turn("continue", "Where were we?")


def restore(chat: Chat) -> int:
    """Restore a deleted channel, and return the number of statements (like each function below)."""
    chat.log(len(chat.turns))
    with chat.engine.begin() as connection:
        tx = WriteTransaction(ReadTransaction(connection))
        delete_channel(tx, get_channel(tx, chat.name), soft=True)
        with statements(chat.engine) as seen:
            restore_channel(tx, chat.name)
    return len(seen)


def merge(chat: Chat) -> int:
    """Merge a channel named by a tool into a session."""
    chat.read_store(len(chat.turns))
    chat.log(1)
    assert links(chat.engine, chat.name)
    with statements(chat.engine) as seen:
        chat.log(len(chat.turns))
    assert not links(chat.engine, chat.name)
    return len(seen)


def merge_by_store(chat: Chat) -> int:
    """Merge a channel when the client's store is read last and has fewer messages."""
    chat.log(len(chat.turns))
    chat.send_hooks(0)
    with statements(chat.engine) as seen:
        chat.read_store(len(chat.turns) - 1)
    return len(seen)


def read_after_hooks(chat: Chat) -> int:
    """Read from the store what hooks have sent."""
    for turn in range(len(chat.turns)):
        chat.send_hooks(turn)
    with statements(chat.engine) as seen:
        chat.read_store(len(chat.turns))
    return len(seen)


def read_after_shortened(chat: Chat) -> int:
    """Read from the store the full texts of what a model has shortened."""
    chat.log(len(chat.turns), words=6)
    with statements(chat.engine) as seen:
        chat.read_store(len(chat.turns))
    return len(seen)


def read_after_copy(chat: Chat) -> int:
    """Read the original of a copy."""
    messages = [
        Message(role, text, NINE + timedelta(minutes=n), more={"native_id": f"{chat.session_id} {n} {role}"})
        for n, turn in enumerate(chat.turns)
        for role, text in ((Role.USER, turn.question), (Role.ASSISTANT, turn.answer))
    ]
    whole = Session(chat.session_id, tuple(messages), project=chat.project)
    with chat.engine.begin() as connection:
        tx = WriteTransaction(ReadTransaction(connection))
        ingest_from_client(tx, "cursor", replace(whole, is_copy=True))
        with statements(chat.engine) as seen:
            ingest_from_client(tx, "cursor", whole)
    return len(seen)


@pytest.mark.slow
@pytest.mark.parametrize(
    "work", [restore, merge, merge_by_store, read_after_hooks, read_after_shortened, read_after_copy]
)
def test_a_long_conversation_takes_no_more_statements_than_a_short_one(
    engine: Engine, work: Callable[[Chat], int]
) -> None:
    few, many = long_chat(engine, 8), long_chat(engine, 40)
    assert work(many) <= work(few) <= 60
    for chat in (few, many):
        [row] = [each for each in channels(engine) if each.project_path == chat.project]
        assert texts_in(engine, row) == stored_once(chat.turns)


def test_a_usual_call_reads_its_channel_once(engine: Engine) -> None:
    chat = long_chat(engine, 5)
    chat.log(4)
    with statements(engine) as seen:
        chat.log(5)
    assert len([each for each in seen if re.search(r"FROM channel\b", each)]) == 1
    assert len(seen) <= 11
