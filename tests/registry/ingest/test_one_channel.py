"""A chat becomes one channel, however and in whatever order it arrives; two chats with the same beginning stay two."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import count, permutations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, select

from registry.domain import Message, Role
from registry.storage.tables import conversation
from tests.registry.ingest.chats import BASKET, NINE, Chat, Turn, channels, links, stored_once, texts_in


def assert_one(chat: Chat, name: str | None = None) -> None:
    """Check that the chat is one channel, found by the model's name, with each message once, also after a resend."""
    [row] = channels(chat.engine)
    assert texts_in(chat.engine, row) == stored_once(chat.turns)
    assert row.session_id == chat.session_id
    assert row.message_count in (len(chat.turns) * 2, len(chat.turns) * 4)
    found = chat.channel(name)
    assert found
    assert found.number == row.number
    ids = chat.log(len(chat.turns), words=5)
    assert [chat.text_of(each) for each in ids] == [text for _, text in texts_in(chat.engine, row)]
    assert texts_in(chat.engine, row) == stored_once(chat.turns)


def deliver(chat: Chat, order: Sequence[str], words: int = 1000) -> None:
    """Deliver the whole chat of three turns in each of the ways."""
    for way in order:
        if way == "hooks":
            for turn in range(3):
                chat.send_hooks(turn)
        elif way == "store":
            chat.read_store(3)
        else:
            chat.log(3, words=words)


@pytest.mark.parametrize("order", list(permutations(("tool", "hooks", "store"))))
def test_a_chat_is_one_channel_in_every_order_of_tool_hooks_and_store(engine: Engine, order: tuple[str, ...]) -> None:
    chat = Chat(engine, BASKET)
    deliver(chat, order, words=6)
    assert_one(chat)


def test_the_tool_before_hooks_at_each_turn_makes_one_channel(engine: Engine) -> None:
    chat = Chat(engine, BASKET)
    for turn in range(3):
        chat.log(turn + 1, words=4)
        chat.send_hooks(turn)
    chat.read_store(3)
    assert_one(chat)


def test_a_tool_that_logs_the_last_turn_first_makes_one_channel(engine: Engine) -> None:
    chat = Chat(engine, BASKET)
    chat.log(3, since=2)
    chat.log(2)
    chat.read_store(3)
    [row] = channels(engine)
    assert texts_in(engine, row) == stored_once(BASKET)


def test_yesterdays_session_continued_under_a_new_name_is_one_channel(engine: Engine) -> None:
    chat = Chat(engine, BASKET)
    Chat(engine, BASKET[:2], start=NINE - timedelta(days=1)).read_store(2)
    chat.log(3)
    [row] = channels(engine)
    assert texts_in(engine, row) == stored_once(BASKET)
    assert row.name == "cursor_session_20260503_090000"
    assert chat.channel() == row


VAGUE = (Turn("continue", "Where were we?"), *BASKET)


@pytest.mark.parametrize("is_hook", [True, False])
def test_a_channel_with_one_vague_message_is_linked_then_merged(engine: Engine, is_hook: bool) -> None:
    chat = Chat(engine, VAGUE)
    for turn in range(4):
        if is_hook:
            chat.send_hooks(turn)
    if not is_hook:
        chat.read_store(4)
    [first_id, _] = chat.log(1)
    assert len(channels(engine)) == 2
    assert links(engine, chat.name) == ["cursor_session_20260504_090000"]
    chat.log(3)
    assert chat.text_of(first_id) == "continue"
    chat.log(4)
    assert_one(chat)


def test_both_names_find_the_channel_after_it_is_merged(engine: Engine) -> None:
    chat = Chat(engine, VAGUE)
    ids = chat.log(1)
    for turn in range(4):
        chat.send_hooks(turn)
        ids += chat.log(turn + 1, words=5)
    assert_one(chat)
    assert chat.channel(chat.name) == chat.channel("cursor_session_20260504_090000")
    assert [chat.text_of(each) for each in ids[:2]] == ["continue", "Where were we?"]


OPENINGS = (Turn("hi", "Hello! How can I help you today?"), Turn("run the tests", "All 42 tests pass."))
TESTS = (*OPENINGS, Turn("Now write one for the empty basket, please.", "Written, in tests/test_basket.py; it fails."))
STYLE = (*OPENINGS, Turn("Which of them are slow, and why is that so?", "Those that start a browser: 3 of them."))


@pytest.mark.parametrize("order", list(permutations(["log", "send_hooks", "read_store"]))[::2])
def test_two_chats_with_the_same_beginning_stay_two(engine: Engine, order: tuple[str, ...]) -> None:
    one = Chat(engine, TESTS)
    other = Chat(engine, STYLE, "cursor_session_other", "c-2", start=NINE + timedelta(minutes=5))
    for turn in range(3):
        for way in order:
            for chat in (one, other):
                getattr(chat, way)(turn if way == "send_hooks" else turn + 1)
    for chat in (one, other):
        rows = [row for row in channels(engine) if row.session_id == chat.session_id]
        assert [texts_in(engine, row) for row in rows] == [stored_once(chat.turns)]
        assert (chat.channel() or rows[0]).session_id in (None, chat.session_id)


def test_equal_texts_in_another_project_or_week_are_another_chat(engine: Engine) -> None:
    Chat(engine, BASKET, "a", "c-1").read_store(3)
    Chat(engine, BASKET, "b", project="/home/ann/other").log(3)
    Chat(engine, BASKET, "c", start=NINE + timedelta(days=9)).log(3)
    assert [row.name for row in channels(engine)] == ["cursor_session_20260504_090000", "b", "c"]


def test_a_bare_folder_name_is_the_same_project(engine: Engine) -> None:
    Chat(engine, BASKET).read_store(3)
    Chat(engine, BASKET, project="shop").log(3)
    [row] = channels(engine)
    assert row.project_path == "/home/ann/shop"


def test_two_chats_with_the_same_questions_are_told_apart_by_their_answers(engine: Engine) -> None:
    there = tuple(Turn(question, f"No idea at all, sorry, number {at}.") for at, (question, _) in enumerate(BASKET))
    one, other = Chat(engine, BASKET, "one"), Chat(engine, there, "two", "c-2")
    one.read_store(3)
    other.read_store(3)
    other.log(3)
    one.log(3)
    assert [chat.channel().session_id for chat in (one, other)] == ["c-1", "c-2"]  # type: ignore[union-attr]
    assert len(channels(engine)) == 2


def test_a_chat_that_may_be_either_of_two_sessions_is_linked_to_both(engine: Engine) -> None:
    one, other = Chat(engine, BASKET, "one"), Chat(engine, BASKET, "two", "c-2")
    one.read_store(3)
    other.read_store(3)
    one.log(3)
    assert len(channels(engine)) == 3
    assert links(engine, "one") == [row.name for row in channels(engine) if row.session_id]


def test_a_fork_is_linked_not_merged(engine: Engine) -> None:
    Chat(engine, BASKET).read_store(3)
    fork = (*BASKET[:2], Turn("No, leave guests alone, and clean up the login code.", "It is in one function now."))
    chat = Chat(engine, fork, "fork", "c-2")
    chat.log(3)
    assert len(channels(engine)) == 2
    assert links(engine, "fork") == ["cursor_session_20260504_090000"]


@pytest.mark.both_databases
def test_a_paraphrased_answer_is_added_once(engine: Engine) -> None:
    chat = Chat(engine, BASKET)
    chat.read_store(3)
    messages = [Message(Role.USER, turn.question) for turn in BASKET]
    messages.insert(1, Message(Role.ASSISTANT, "Somebody throws away whatever was there before."))
    for _ in range(3):
        chat.log_messages(messages, 3)
    [row] = channels(engine)
    assert len(texts_in(engine, row)) == 7


def test_an_answer_shortened_in_two_ways_is_one_after_the_full_text_arrives(engine: Engine) -> None:
    chat = Chat(engine, BASKET)
    for words in (4, 6):
        chat.log(3, words=words)
    chat.read_store(3)
    [row] = channels(engine)
    assert texts_in(engine, row) == stored_once(BASKET)


def test_a_shortened_answer_is_completed_from_the_store(engine: Engine) -> None:
    chat = Chat(engine, BASKET)
    chat.read_store(2)
    ids = chat.log(3, words=4)
    [row] = channels(engine)
    assert texts_in(engine, row)[-1] == ("assistant", "They keep theirs in")
    chat.read_store(3)
    assert chat.text_of(ids[-1]) == BASKET[-1].answer
    assert_one(chat)


def test_three_times_continue_are_three_turns_by_tool_hooks_and_store(engine: Engine) -> None:
    turns = (*BASKET, *(Turn("continue", f"Step {number} of the plan is done.") for number in range(3)))
    chat = Chat(engine, turns)
    for turn in range(6):
        chat.log(turn + 1)
        chat.send_hooks(turn)
    chat.read_store(6)
    assert_one(chat)


def test_a_question_asked_twice_and_logged_first_matches_both_hooks(engine: Engine) -> None:
    turns = (BASKET[0], Turn("hi", "They keep theirs in a cookie."), Turn("hi", "Not without the key."), BASKET[2])
    chat = Chat(engine, turns)
    chat.send_hooks(0)
    chat.read_store(1)
    chat.log(4)
    chat.send_hooks(1)
    chat.read_store(2)
    chat.send_hooks(2)
    chat.send_hooks(3)
    chat.read_store(4)
    assert_one(chat)


@pytest.mark.both_databases
def test_concurrent_writers_make_one_channel(engine: Engine) -> None:
    chat = Chat(engine, BASKET)
    for turn in range(3):
        with ThreadPoolExecutor(6) as writers:
            moves = [("log", turn + 1), ("send_hooks", turn), ("read_store", turn + 1)] * 2
            list(writers.map(lambda move: getattr(chat, move[0])(move[1]), moves))
    assert_one(chat)


NUMBERS = count()
"""Numbers of projects, one for each example."""

QUESTIONS = (
    "Why does the basket lose its items after login?",
    "And what about guests who never log in at all?",
    "Could the cookie be read by somebody else then?",
    "How long is it kept when nobody comes back?",
)
SHORT = ("hi", "continue", "run the tests", "ok")
ANSWERS = (
    "It makes a new list each time the session is renewed, in basket.py.",
    "They keep theirs in a cookie that is read when the page starts.",
    "Not without the key, because every value in it is signed by the server.",
    "Thirty days, and after that a job at night takes it away for good.",
    "All 42 tests pass now, and none of them takes longer than a second.",
)


@st.composite
def deliveries(draw: st.DrawFn, tags: tuple[str, ...]) -> tuple[dict[str, list[Turn]], list[tuple[str, str, int, int]]]:
    """Return chats with the same opening, and deliveries in order: (chat, way, turn or number of turns, words)."""
    opening = draw(st.lists(st.sampled_from(SHORT), max_size=3))
    chats = {}
    moves: dict[str, list[tuple[str, str, int, int]]] = {}
    for tag in tags:
        questions = draw(st.permutations(QUESTIONS))
        between = draw(st.lists(st.sampled_from(SHORT), max_size=2))
        own = [f"{question} ({tag})" for question in questions[:3]]
        # All chats have the same answers in the opening, and different ones after it.
        chats[tag] = [Turn(each, ANSWERS[4]) for each in opening] + [
            Turn(each, f"{ANSWERS[place % 4]} {tag} {place}") for place, each in enumerate([own[0], *between, *own[1:]])
        ]
        total = len(chats[tag])
        steps = [("send_hooks", turn) for turn in range(total)]
        steps += [("read_store", upto) for upto in (*draw(st.lists(st.integers(1, total), max_size=2)), total)]
        steps += [("log", upto) for upto in (*draw(st.lists(st.integers(1, total), max_size=3)), total)]
        by_way = {way: sorted(at for who, at in steps if who == way) for way in ("send_hooks", "read_store", "log")}
        order = draw(st.permutations([who for who, _ in steps]))
        moves[tag] = [(tag, who, by_way[who].pop(0), draw(st.sampled_from([1000, 6]))) for who in order]
    turns = draw(st.permutations([tag for tag in tags for _ in moves[tag]]))
    return chats, [moves[tag].pop(0) for tag in turns]


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given_chat=deliveries(("a",)))
def test_however_a_chat_arrives_it_is_one_channel(
    shared_engine: Engine, given_chat: tuple[dict[str, list[Turn]], list[tuple[str, str, int, int]]]
) -> None:
    check(shared_engine, *given_chat, f"{next(NUMBERS)}")


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given_chats=deliveries(("a", "b")))
def test_however_two_chats_arrive_they_are_two_channels(
    shared_engine: Engine, given_chats: tuple[dict[str, list[Turn]], list[tuple[str, str, int, int]]]
) -> None:
    check(shared_engine, *given_chats, f"{next(NUMBERS)}")


def check(engine: Engine, turns: dict[str, list[Turn]], moves: list[tuple[str, str, int, int]], key: str) -> None:
    """Deliver the chats in a project of their own, and check that each is one channel with each message once."""
    chats = {tag: Chat(engine, turns[tag], f"{key}{tag}", f"{key}-{tag}", f"/home/ann/{key}") for tag in turns}
    returned: list[tuple[str, str]] = []
    for tag, way, amount, words in moves:
        chat = chats[tag]
        if way == "log":
            ids = chat.log(amount, words=words)
            returned += [(id_, turn.question) for id_, turn in zip(ids[::2], chat.turns, strict=False)]
        else:
            getattr(chat, way)(amount)
    rows = [row for row in channels(engine) if row.project_path == f"/home/ann/{key}"]
    assert len(rows) == len(chats), [(row.name, row.session_id) for row in rows]
    for chat in chats.values():
        row = chat.channel()
        assert row is not None
        assert row.session_id == chat.session_id
        assert sorted(texts_in(engine, row)) == sorted(stored_once(chat.turns))
    for id_, question in returned:
        [chat] = [chat for chat in chats.values() if any(turn.question == question for turn in chat.turns)][:1]
        assert chat.text_of(id_) == question


SHORT_AFTERWARDS = (
    Turn("How do I sort the catalogue quickly?", "Sorted by key with a stable comparison; the tests of it pass."),
    Turn("continue", "The descending order is there as well, and it keeps equal prices in place."),
    Turn("run the tests", "All forty-one of them pass, the empty catalogue among them."),
)


@pytest.mark.parametrize("order", [("tool", "hooks", "store"), ("hooks", "store", "tool"), ("store", "tool", "hooks")])
def test_a_chat_with_short_follow_ups_is_recognised_by_its_answers(engine: Engine, order: tuple[str, ...]) -> None:
    chat = Chat(engine, SHORT_AFTERWARDS)
    deliver(chat, order)
    [row] = channels(engine)
    assert texts_in(engine, row) == stored_once(SHORT_AFTERWARDS)


@pytest.mark.both_databases
def test_a_message_sent_by_hook_gets_its_time_in_the_store(engine: Engine) -> None:
    chat = Chat(engine, BASKET)
    chat.send_hooks(0)
    chat.read_store(1)
    [row] = channels(engine)
    within = conversation.c.channel_number == row.number, conversation.c.deleted.is_(False)
    with engine.begin() as connection:
        messages = connection.execute(select(conversation).where(*within).order_by(conversation.c.timestamp)).all()
    assert [each.role for each in messages] == ["user", "thinking", "tool", "assistant"]
    assert messages[-1].timestamp == NINE + timedelta(seconds=15)


@pytest.mark.parametrize(
    "order", [(1, 2, "read"), (1, "read", 2, "read"), ("read", 1, 2), ("read", 2, 1, "read"), (1, "read", 1, 2, 1)]
)
def test_an_answer_of_two_blocks_is_one_message_if_a_hook_sends_only_the_last_block(
    engine: Engine, order: tuple[object, ...]
) -> None:
    question, answer = BASKET[0]
    whole = Chat(engine, (Turn(question, f"I look at the session code first.\n\n{answer}"), Turn("Sure?", "Done.")))
    last_block = Chat(engine, (Turn(question, answer), whole.turns[1]))
    for step in order:
        if isinstance(step, int):
            last_block.send_hooks(step - 1)
        else:
            whole.read_store(2)
    [row] = channels(engine)
    assert texts_in(engine, row) == [(role, " ".join(text.split())) for role, text in stored_once(whole.turns)]
