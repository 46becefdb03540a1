"""The worked example of docs/recognition.md, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from registry.domain import Message, Role, Session
from registry.ingest.from_client import ingest_from_client
from registry.ingest.from_hook import hook_id, ingest_from_hook
from registry.ingest.from_tool import ingest_from_tool
from registry.storage.connections import create_database_engine
from registry.storage.conversations.channels import find_channel
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.tables import conversation

NINE = datetime(2026, 5, 4, 9, tzinfo=UTC)
QUESTION, ANSWER = "Why is the basket empty after login?", "It makes a new list each time the session is renewed."
GUESTS = Message(Role.USER, "and guests?")


def at(seconds: int) -> datetime:
    return NINE + timedelta(seconds=seconds)


STORED = (
    Message(Role.USER, QUESTION, at(0)),
    Message(Role.ASSISTANT, ANSWER, at(5)),
    Message(Role.USER, "run the tests", at(60)),
    Message(Role.ASSISTANT, "all pass", at(65)),
)
UNTIMED = tuple(Message(each.role, each.text.replace(" ", "\n ")) for each in STORED)


@pytest.fixture
def tx(database_url: str) -> Iterator[WriteTransaction]:
    engine = create_database_engine(database_url)
    with engine.execution_options(write=True).begin() as connection:
        yield WriteTransaction(ReadTransaction(connection))
    engine.dispose()


def send(tx: WriteTransaction, messages: Sequence[Message], name: str = "c") -> list[int]:
    """Log messages, and return the position of each among those stored, from 1."""
    _, saved = ingest_from_tool(
        tx, name, messages, source="cursor", metadata={}, received_at=max([at(3600), *_moments(messages)])
    )
    return places(tx, saved.ids)


def _moments(messages: Sequence[Message]) -> list[datetime]:
    return [message.timestamp for message in messages if message.timestamp]


def places(tx: WriteTransaction, ids: Sequence[str]) -> list[int]:
    stored = list(tx.execute(select(conversation.c.id).order_by(conversation.c.seq)).scalars())
    return [stored.index(id_) + 1 for id_ in ids]


def texts(tx: WriteTransaction) -> list[str]:
    return list(tx.execute(select(conversation.c.text).order_by(conversation.c.seq)).scalars())


LATER = tuple(Message(each.role, each.text, at(1800 + 5 * n)) for n, each in enumerate(STORED[2:]))
TWO_FAIL = Message(Role.ASSISTANT, "two fail")
SHORTENED = Message(Role.ASSISTANT, "It makes a new list each time")


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        pytest.param(STORED, [1, 2, 3, 4], id="resend"),
        pytest.param((*STORED, GUESTS), [1, 2, 3, 4, 5], id="resend with a new end"),
        pytest.param(UNTIMED, [1, 2, 3, 4], id="changed times and white space"),
        pytest.param((*STORED[2:], GUESTS), [3, 4, 5], id="last turns only"),
        pytest.param(STORED[:2], [1, 2], id="late retry of an old part"),
        pytest.param(LATER, [5, 6], id="new turn with repeated texts"),
        pytest.param(UNTIMED[2:], [3, 4], id="repeated texts without times"),
        pytest.param((*STORED[:3], TWO_FAIL), [1, 2, 3, 5], id="regenerated answer"),
        pytest.param((STORED[0], SHORTENED, *STORED[2:]), [1, 2, 3, 4], id="shortened answer"),
    ],
)
def test_messages_sent_again_are_recognised(tx: WriteTransaction, sent: Sequence[Message], found: list[int]) -> None:
    assert send(tx, STORED) == [1, 2, 3, 4]
    assert send(tx, sent) == found
    assert send(tx, sent) == found
    assert len(texts(tx)) == max(4, *found)


def of_client(messages: Sequence[Message]) -> Session:
    named = (Message(m.role, m.text, m.timestamp, more={"native_id": f"b{n}"}) for n, m in enumerate(messages, 1))
    return Session("c-1", tuple(named))


@pytest.mark.both_databases
def test_messages_get_native_ids_and_a_streaming_text_is_completed(tx: WriteTransaction) -> None:
    send(tx, STORED)
    whole = of_client(STORED)
    assert places(tx, ingest_from_client(tx, "cursor", whole).ids) == [1, 2, 3, 4]
    ids = select(conversation.c.native_id).order_by(conversation.c.seq)
    assert list(tx.execute(ids).scalars()) == ["b1", "b2", "b3", "b4"]
    streamed = of_client([*STORED[:3], Message(Role.ASSISTANT, "all pass, 42 of them", at(65))])
    assert places(tx, ingest_from_client(tx, "cursor", streamed).ids) == [1, 2, 3, 4]
    assert texts(tx)[3] == "all pass, 42 of them"
    assert find_channel(tx, "c").session_id == "c-1"  # type: ignore[union-attr]


def by_hook(message: Message, request: str) -> Message:
    named = {"native_id": hook_id(message, request), "request_id": request}
    return Message(message.role, message.text, message.timestamp, more=named)


@pytest.mark.both_databases
def test_a_message_sent_by_hook_gets_its_id_in_the_store(tx: WriteTransaction) -> None:
    ingest_from_client(tx, "cursor", of_client(STORED))
    guests = Message(Role.USER, GUESTS.text, at(120))
    ingest_from_hook(tx, "cursor", Session("c-1", (by_hook(guests, "r"),)))
    last = select(conversation.c.native_id).order_by(conversation.c.seq.desc()).limit(1)
    assert tx.execute(last).scalar_one().startswith("hook:r:user:")
    assert ingest_from_client(tx, "cursor", of_client([*STORED, guests])).new == 0
    assert tx.execute(last).scalar_one() == "b5"
    assert len(texts(tx)) == 5


def test_equal_texts_of_two_requests_stay_two_if_the_store_has_only_the_first(tx: WriteTransaction) -> None:
    messages = [Message(Role.USER, "continue", at(seconds)) for seconds in (0, 100)]
    for n, message in enumerate(messages):
        ingest_from_hook(tx, "cursor", Session("c-1", (by_hook(message, f"r{n}"),)))
        ingest_from_client(tx, "cursor", of_client(messages[:1]))
        assert texts(tx) == ["continue"] * (n + 1)
    assert ingest_from_client(tx, "cursor", of_client(messages)).new == 0
    assert texts(tx) == ["continue"] * 2


def test_a_shortened_message_is_recognised_after_a_hook_sent_it(tx: WriteTransaction) -> None:
    name, _ = ingest_from_hook(tx, "cursor", Session("c-1", tuple(by_hook(each, "r0") for each in STORED)))
    turn = (
        Message(Role.USER, GUESTS.text, at(120)),
        Message(Role.ASSISTANT, "They keep theirs in a cookie until they log in.", at(125)),
    )
    ingest_from_hook(tx, "cursor", Session("c-1", tuple(by_hook(each, "r1") for each in turn)))
    short = Message(Role.ASSISTANT, "They keep theirs in a cookie")
    assert send(tx, [*UNTIMED, GUESTS, short], name) == [1, 2, 3, 4, 5, 6]
    assert texts(tx)[5] == turn[1].text


@pytest.mark.parametrize(
    ("turn", "seconds", "found"),
    [
        pytest.param(STORED[2:], 90, [3, 4], id="the last turn, logged just now"),
        pytest.param(STORED[2:], 1800, [5, 6], id="the same texts later"),
        pytest.param(STORED[:2], 90, [5, 6], id="the texts of an older turn, now"),
    ],
)
def test_a_model_logs_the_turn_that_hooks_have_just_sent_and_not_an_older_one(
    tx: WriteTransaction, turn: Sequence[Message], seconds: int, found: list[int]
) -> None:
    name = ingest_from_hook(tx, "cursor", Session("c-1", tuple(by_hook(each, "r") for each in STORED)))[0]
    again = [Message(each.role, each.text, at(seconds + n)) for n, each in enumerate(turn)]
    assert send(tx, again, name) == found


@pytest.mark.parametrize(
    ("answer", "found"),
    [("a new list was thrown", [1, 2]), ("a new basket was thrown", [1, 5])],
    ids=["three of five words are the same", "two of five words are the same"],
)
def test_a_reworded_answer_is_recognised_if_most_words_are_the_same(
    tx: WriteTransaction, answer: str, found: list[int]
) -> None:
    name = ingest_from_hook(tx, "cursor", Session("c-1", tuple(by_hook(each, "r") for each in STORED)))[0]
    assert send(tx, [STORED[0], Message(Role.ASSISTANT, answer)], name) == found


def test_a_message_that_only_a_copy_has_is_kept_until_the_original_has_it(tx: WriteTransaction) -> None:
    shortened = [STORED[0], SHORTENED, *STORED[2:], GUESTS]
    ingest_from_client(tx, "cursor", replace(of_client(shortened), is_copy=True))
    ingest_from_client(tx, "cursor", of_client(STORED))
    assert sorted(texts(tx)) == sorted([*(each.text for each in STORED), GUESTS.text])
    assert ingest_from_client(tx, "cursor", of_client([*STORED, GUESTS])).new == 0
    assert sorted(texts(tx)) == sorted([*(each.text for each in STORED), GUESTS.text])


def test_a_copy_whose_messages_have_other_ids_than_before_is_not_stored_twice(tx: WriteTransaction) -> None:
    ingest_from_client(tx, "cursor", replace(of_client(STORED), is_copy=True))
    session = of_client([*STORED, GUESTS])
    renamed = [replace(each, more={"native_id": f"new {each.native_id}"}) for each in session.messages]
    assert ingest_from_client(tx, "cursor", replace(session, messages=tuple(renamed), is_copy=True)).new == 1


@pytest.mark.both_databases
def test_an_answer_longer_than_the_stores_is_not_taken_for_a_shortened_one(tx: WriteTransaction) -> None:
    longer = [Message(Role.ASSISTANT, f"{ANSWER} {more}") for more in ("That is all.", "So keep the old one.")]
    for answer in longer:
        send(tx, [STORED[0], answer])
    ingest_from_client(tx, "cursor", of_client(STORED))
    assert texts(tx) == [QUESTION, ANSWER, longer[1].text, *(each.text for each in STORED[2:])]


def test_an_emptied_channel_takes_more_messages_than_one_query_reads(tx: WriteTransaction) -> None:
    send(tx, STORED)
    tx.execute(conversation.delete())
    many = [Message(Role.USER if n % 2 else Role.ASSISTANT, f"the {n}th") for n in range(1001)]
    assert len(set(send(tx, many))) == 1001
