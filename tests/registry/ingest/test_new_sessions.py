"""Import several sessions at once: new ones are stored in bulk, with the same result as one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import Engine, select

from registry.domain import Message, Role, Session
from registry.ingest.from_client import ingest_all
from registry.ingest.save import Saved
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.index.message_index import index_of
from registry.storage.tables import conversation
from tests.registry.ingest.chats import BASKET, NINE, PROJECT, Chat, channels, stored_once, texts_in
from tests.registry.ingest.statements import statements


def session(number: int, *more: Message) -> Session:
    at = NINE + timedelta(days=7 * number)
    turn = (Role.USER, f"Where does basket {number} go?"), (Role.ASSISTANT, f"To shelf {number}.")
    messages = (Message(role, text, at, more={"native_id": f"{number} {role}"}) for role, text in turn)
    return Session(f"s-{number}", (*messages, *more), title=f"Basket {number}", project=f"/home/ann/shop-{number}")


def ingest(engine: Engine, sessions: Sequence[Session]) -> list[Saved]:
    with engine.begin() as connection:
        return ingest_all(WriteTransaction(ReadTransaction(connection)), "cursor", sessions)


@pytest.mark.both_databases
def test_thirty_new_sessions_take_no_more_statements_than_two(engine: Engine) -> None:
    ingest(engine, [session(0)])
    counts = []
    for numbers in (range(1, 3), range(3, 33)):
        with statements(engine) as seen:
            assert [one.new for one in ingest(engine, [session(n) for n in numbers])] == [2] * len(numbers)
        counts.append(len(seen))
    assert counts[1] <= counts[0]
    for row in channels(engine):
        number = int(row.session_id.removeprefix("s-"))
        assert (row.message_count, row.seq_count, row.project_name) == (2, 2, f"shop-{number}")
        assert row.first_message_preview == f"Where does basket {number} go?"
        assert texts_in(engine, row)[1] == ("assistant", f"To shelf {number}.")


@pytest.mark.both_databases
def test_a_new_session_is_found_by_its_text_and_title(engine: Engine) -> None:
    stored = ingest(engine, [session(1), session(2)])
    with engine.begin() as connection:
        tx = ReadTransaction(connection)
        assert index_of(tx).match_titles(tx, ["2"]) == {"2": [-stored[1].channel_number]}
        held = index_of(tx).holders(tx, [["shelf"], ["2"]])
        [row] = tx.execute(select(conversation).where(conversation.c.number.in_(held))).all()
    assert row.text == "To shelf 2."


def test_repeated_sessions_are_stored_once(engine: Engine) -> None:
    copy = replace(session(1), is_copy=True)
    ingest(engine, [session(0), copy, session(1), session(2), session(2)])
    assert [one.new for one in ingest(engine, [session(0), session(1), session(2), session(3)])] == [0, 0, 0, 2]
    assert [row.message_count for row in channels(engine)] == [2, 2, 2, 2]


def test_sessions_that_begin_in_the_same_second_get_different_names(engine: Engine) -> None:
    first, second, third = (replace(session(1), session_id=name, title=name) for name in ("s-a", "s-b", "s-c"))
    stored = [*ingest(engine, [first, second]), *ingest(engine, [third])]
    assert [one.new for one in stored] == [2, 2, 2]
    began = "cursor_session_20260511_090000"
    names = {row.session_id: row.name for row in channels(engine)}
    assert names == {"s-a": began, "s-b": f"{began}_s-b", "s-c": f"{began}_s-c"}
    with statements(engine) as seen:
        assert [one.new for one in ingest(engine, [first, second, third])] == [0, 0, 0]
    assert not [one for one in seen if "INSERT INTO conversation" in one]


def test_a_session_logged_by_tool_before_becomes_the_same_channel(engine: Engine) -> None:
    chat = Chat(engine, BASKET)
    chat.log(len(BASKET))
    messages = [
        Message(role, text, chat.asked_at(n), more={"native_id": f"{n} {role}"})
        for n, turn in enumerate(BASKET)
        for role, text in ((Role.USER, turn.question), (Role.ASSISTANT, turn.answer))
    ]
    ingest(engine, [session(9), Session("c-1", tuple(messages), project=PROJECT)])
    stored = [row for row in channels(engine) if row.session_id == "c-1"]
    assert len(channels(engine)) == 2
    assert [texts_in(engine, row) for row in stored] == [stored_once(BASKET)]


@pytest.mark.both_databases
def test_a_question_answered_by_extract_is_not_indexed(engine: Engine) -> None:
    call = Message(Role.TOOL, "extract", more={"tool": {"name": "mcp__context-registry__extract", "params": {}}})
    stored = ingest(engine, [session(1, call), session(2)])
    with engine.begin() as connection:
        questions = connection.execute(select(conversation).where(conversation.c.role == Role.USER)).all()
    lengths = {row.channel_number: row.length for row in questions}
    assert lengths[stored[0].channel_number] == 0 < lengths[stored[1].channel_number]
