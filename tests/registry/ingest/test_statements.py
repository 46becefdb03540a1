"""What is asked of the database does not grow with the length of a conversation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import Engine

from registry.domain import Message, Role, Session
from registry.ingest.from_client import ingest_from_client
from registry.storage.connections import create_database_engine
from registry.storage.conversations.channels import get_channel
from registry.storage.conversations.messages import delete_channel, restore_channel
from registry.storage.database import ReadTransaction, WriteTransaction
from tests.registry.ingest.chats import NINE, Chat, Turn, channels, links, once, said_in
from tests.registry.ingest.statements import statements


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    opened = create_database_engine(database_url)
    yield opened.execution_options(write=True)
    opened.dispose()


def long_chat(engine: Engine, length: int) -> Chat:
    turns = [
        Turn(f"What about the {n}th of them, is it in?", f"It is the {n}th, and it has been.") for n in range(length)
    ]
    return Chat(engine, [VAGUE, *turns], f"chat {length}", f"c-{length}", f"/home/ann/{length}")


VAGUE = Turn("continue", "Where were we?")


def restored(chat: Chat) -> int:
    """A channel that was deleted comes back."""
    chat.tool(len(chat.turns))
    with chat.engine.begin() as connection:
        tx = WriteTransaction(ReadTransaction(connection))
        delete_channel(tx, get_channel(tx, chat.name), soft=True)
        with statements(chat.engine) as seen:
            restore_channel(tx, chat.name)
    return len(seen)


def merged(chat: Chat) -> int:
    """A channel that a tool has named turns out to be a session."""
    chat.read(len(chat.turns))
    chat.tool(1)
    assert links(chat.engine, chat.name)
    with statements(chat.engine) as seen:
        chat.tool(len(chat.turns))
    assert not links(chat.engine, chat.name)
    return len(seen)


def merged_by_its_client(chat: Chat) -> int:
    """The same, where the client's store comes last and has few of the messages."""
    chat.tool(len(chat.turns))
    chat.hook(0)
    with statements(chat.engine) as seen:
        chat.read(len(chat.turns) - 1)
    return len(seen)


def sent_by_hooks_first(chat: Chat) -> int:
    """The client's store has what its hooks have sent."""
    for turn in range(len(chat.turns)):
        chat.hook(turn)
    with statements(chat.engine) as seen:
        chat.read(len(chat.turns))
    return len(seen)


def shortened_before(chat: Chat) -> int:
    """The client's store has whole what a model has shortened."""
    chat.tool(len(chat.turns), words=6)
    with statements(chat.engine) as seen:
        chat.read(len(chat.turns))
    return len(seen)


def copied_before(chat: Chat) -> int:
    """The client's store has whole what was in a copy."""
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


@pytest.mark.parametrize(
    "work", [restored, merged, merged_by_its_client, sent_by_hooks_first, shortened_before, copied_before]
)
def test_a_long_conversation_takes_no_more_statements_than_a_short_one(
    engine: Engine, work: Callable[[Chat], int]
) -> None:
    few, many = long_chat(engine, 8), long_chat(engine, 80)
    assert work(many) <= work(few) <= 60
    for chat in (few, many):
        [row] = [each for each in channels(engine) if each.project_path == chat.project]
        assert said_in(engine, row) == once(chat.turns)


def test_the_usual_call_looks_its_channel_up_once(engine: Engine) -> None:
    chat = long_chat(engine, 5)
    chat.tool(4)
    with statements(engine) as seen:
        chat.tool(5)
    assert len([each for each in seen if re.search(r"FROM channel\b", each)]) == 1
    assert len(seen) <= 12
