"""One chat, one channel, by whichever way and in whatever order it comes; two chats that only begin alike stay two."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import count, permutations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, select

from registry.domain import Message, Role
from registry.storage.connections import create_database_engine
from registry.storage.conversations.messages import delete_message
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.migrate import migrate_engine
from registry.storage.tables import conversation
from tests.registry.ingest.chats import BASKET, NINE, Chat, Turn, channels, links, once, said_in


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    opened = create_database_engine(database_url)
    yield opened.execution_options(write=True)
    opened.dispose()


def assert_one(chat: Chat, name: str | None = None) -> None:
    """The chat is one channel, under the name the model uses too, and each message is in it once."""
    [row] = channels(chat.engine)
    assert said_in(chat.engine, row) == once(chat.turns)
    assert row.session_id == chat.session_id
    assert row.message_count in (len(chat.turns) * 2, len(chat.turns) * 4)
    found = chat.channel(name)
    assert found
    assert found.number == row.number
    ids = chat.tool(len(chat.turns), words=5)
    assert [chat.text_of(each) for each in ids] == [text for _, text in said_in(chat.engine, row)]
    assert said_in(chat.engine, row) == once(chat.turns)


@pytest.mark.parametrize("order", list(permutations("thr")))
def test_whoever_is_first_the_chat_is_one_channel(engine: Engine, order: tuple[str, ...]) -> None:
    chat = Chat(engine, BASKET)
    for letter in order:
        if letter == "t":
            chat.tool(3, words=6)
        elif letter == "r":
            chat.read(3)
        else:
            for turn in range(3):
                chat.hook(turn)
    assert_one(chat)


def test_turn_by_turn_by_tool_and_hooks(engine: Engine) -> None:
    chat = Chat(engine, BASKET)
    returned = []
    for turn in range(3):
        chat.hook(turn)
        returned += chat.tool(turn + 1)
    assert_one(chat)
    assert {chat.text_of(each) for each in returned} == {text for _, text in once(BASKET)}


def test_the_tool_ahead_of_the_hooks_turn_by_turn(engine: Engine) -> None:
    chat = Chat(engine, BASKET)
    for turn in range(3):
        chat.tool(turn + 1, words=4)
        chat.hook(turn)
    chat.read(3)
    assert_one(chat)


def test_the_tool_tells_of_the_last_turn_before_the_others(engine: Engine) -> None:
    chat = Chat(engine, BASKET)
    chat.tool(3, since=2)
    chat.tool(2)
    chat.read(3)
    [row] = channels(engine)
    assert said_in(engine, row) == once(BASKET)


def test_yesterdays_session_goes_on_under_a_new_name(engine: Engine) -> None:
    chat = Chat(engine, BASKET)
    Chat(engine, BASKET[:2], start=NINE - timedelta(days=1)).read(2)
    chat.tool(3)
    [row] = channels(engine)
    assert said_in(engine, row) == once(BASKET)
    assert row.name == "cursor_session_20260503_090000"
    assert chat.channel() == row


VAGUE = (Turn("continue", "Where were we?"), *BASKET)


@pytest.mark.parametrize("is_hook", [True, False])
def test_one_vague_message_is_linked_until_more_is_known(engine: Engine, is_hook: bool) -> None:
    chat = Chat(engine, VAGUE)
    for turn in range(4):
        if is_hook:
            chat.hook(turn)
    if not is_hook:
        chat.read(4)
    [first_id, _] = chat.tool(1)
    assert len(channels(engine)) == 2
    assert links(engine, chat.name) == ["cursor_session_20260504_090000"]
    chat.tool(3)
    assert chat.text_of(first_id) == "continue"
    chat.tool(4)
    assert_one(chat)


def test_the_older_name_is_found_after_hooks_made_sure(engine: Engine) -> None:
    chat = Chat(engine, VAGUE)
    ids = chat.tool(1)
    for turn in range(4):
        chat.hook(turn)
        ids += chat.tool(turn + 1, words=5)
    assert_one(chat)
    assert chat.channel(chat.name) == chat.channel("cursor_session_20260504_090000")
    assert [chat.text_of(each) for each in ids[:2]] == ["continue", "Where were we?"]


OPENINGS = (Turn("hi", "Hello! How can I help you today?"), Turn("run the tests", "All 42 tests pass."))
TESTS = (*OPENINGS, Turn("Now write one for the empty basket, please.", "Written, in tests/test_basket.py; it fails."))
STYLE = (*OPENINGS, Turn("Which of them are slow, and why is that so?", "Those that start a browser: 3 of them."))


@pytest.mark.parametrize("order", list(permutations(["tool", "hook", "read"]))[::2])
def test_two_chats_that_begin_alike_stay_two(engine: Engine, order: tuple[str, ...]) -> None:
    one = Chat(engine, TESTS)
    other = Chat(engine, STYLE, "cursor_session_other", "c-2", start=NINE + timedelta(minutes=5))
    for turn in range(3):
        for way in order:
            for chat in (one, other):
                getattr(chat, way)(turn if way == "hook" else turn + 1)
    for chat in (one, other):
        rows = [row for row in channels(engine) if row.session_id == chat.session_id]
        assert [said_in(engine, row) for row in rows] == [once(chat.turns)]
        assert (chat.channel() or rows[0]).session_id in (None, chat.session_id)


def test_equal_words_elsewhere_or_long_ago_are_another_chat(engine: Engine) -> None:
    Chat(engine, BASKET, "a", "c-1").read(3)
    Chat(engine, BASKET, "b", project="/home/ann/other").tool(3)
    Chat(engine, BASKET, "c", start=NINE + timedelta(days=9)).tool(3)
    assert [row.name for row in channels(engine)] == ["cursor_session_20260504_090000", "b", "c"]


def test_a_bare_folder_name_is_the_same_project(engine: Engine) -> None:
    Chat(engine, BASKET).read(3)
    Chat(engine, BASKET, project="shop").tool(3)
    [row] = channels(engine)
    assert row.project_path == "/home/ann/shop"


def test_the_same_questions_in_two_windows_are_told_apart_by_their_answers(engine: Engine) -> None:
    there = tuple(Turn(question, f"No idea at all, sorry, number {at}.") for at, (question, _) in enumerate(BASKET))
    one, other = Chat(engine, BASKET, "one"), Chat(engine, there, "two", "c-2")
    one.read(3)
    other.read(3)
    other.tool(3)
    one.tool(3)
    assert [chat.channel().session_id for chat in (one, other)] == ["c-1", "c-2"]  # type: ignore[union-attr]
    assert len(channels(engine)) == 2


def test_a_chat_that_may_be_either_of_two_sessions_is_linked_to_both(engine: Engine) -> None:
    one, other = Chat(engine, BASKET, "one"), Chat(engine, BASKET, "two", "c-2")
    one.read(3)
    other.read(3)
    one.tool(3)
    assert len(channels(engine)) == 3
    assert links(engine, "one") == [row.name for row in channels(engine) if row.session_id]


def test_a_fork_that_took_another_way_is_linked_not_merged(engine: Engine) -> None:
    Chat(engine, BASKET).read(3)
    fork = (*BASKET[:2], Turn("No, leave guests alone, and clean up the login code.", "It is in one function now."))
    chat = Chat(engine, fork, "fork", "c-2")
    chat.tool(3)
    assert len(channels(engine)) == 2
    assert links(engine, "fork") == ["cursor_session_20260504_090000"]


def test_a_message_deleted_in_one_of_two_channels_is_deleted_in_the_whole(engine: Engine) -> None:
    chat = Chat(engine, VAGUE)
    chat.read(4)
    [first_id, _] = chat.tool(1)
    with engine.begin() as connection:
        delete_message(WriteTransaction(ReadTransaction(connection)), first_id)
    chat.tool(4)
    [row] = channels(engine)
    assert said_in(engine, row) == once(VAGUE)[1:]


def test_a_paraphrased_answer_is_kept_beside_and_not_added_again(engine: Engine) -> None:
    chat = Chat(engine, BASKET)
    chat.read(3)
    messages = [Message(Role.USER, turn.question) for turn in BASKET]
    messages.insert(1, Message(Role.ASSISTANT, "Somebody throws away whatever was there before."))
    for _ in range(3):
        chat.say(messages, 3)
    [row] = channels(engine)
    assert len(said_in(engine, row)) == 7


def test_answers_that_a_model_shortened_in_two_ways_are_one_when_the_whole_comes(engine: Engine) -> None:
    chat = Chat(engine, BASKET)
    for words in (4, 6):
        chat.tool(3, words=words)
    chat.read(3)
    [row] = channels(engine)
    assert said_in(engine, row) == once(BASKET)


def test_an_answer_only_the_tool_has_sent_yet_is_kept_and_completed_later(engine: Engine) -> None:
    chat = Chat(engine, BASKET)
    chat.read(2)
    ids = chat.tool(3, words=4)
    [row] = channels(engine)
    assert said_in(engine, row)[-1] == ("assistant", "They keep theirs in")
    chat.read(3)
    assert chat.text_of(ids[-1]) == BASKET[-1].answer
    assert_one(chat)


def test_three_times_continue_is_three_times_continue_by_every_way(engine: Engine) -> None:
    turns = (*BASKET, *(Turn("continue", f"Step {number} of the plan is done.") for number in range(3)))
    chat = Chat(engine, turns)
    for turn in range(6):
        chat.tool(turn + 1)
        chat.hook(turn)
    chat.read(6)
    assert_one(chat)


def test_a_question_asked_twice_that_a_tool_logged_first_is_taken_for_each_of_its_hooks(engine: Engine) -> None:
    turns = (BASKET[0], Turn("hi", "They keep theirs in a cookie."), Turn("hi", "Not without the key."), BASKET[2])
    chat = Chat(engine, turns)
    chat.hook(0)
    chat.read(1)
    chat.tool(4)
    chat.hook(1)
    chat.read(2)
    chat.hook(2)
    chat.hook(3)
    chat.read(4)
    assert_one(chat)


def test_writers_at_once_make_one_channel(engine: Engine) -> None:
    chat = Chat(engine, BASKET)
    for turn in range(3):
        with ThreadPoolExecutor(6) as writers:
            moves = [("tool", turn + 1), ("hook", turn), ("read", turn + 1)] * 2
            list(writers.map(lambda move: getattr(chat, move[0])(move[1]), moves))
    assert_one(chat)


NUMBERS = count()
"""Each example has a project of its own."""

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
def arrivals(draw: st.DrawFn, tags: tuple[str, ...]) -> tuple[dict[str, list[Turn]], list[tuple[str, str, int, int]]]:
    """Chats with equal openings and ends of their own, and in which order by which way how much of which comes."""
    opening = draw(st.lists(st.sampled_from(SHORT), max_size=3))
    chats = {}
    moves: dict[str, list[tuple[str, str, int, int]]] = {}
    for tag in tags:
        asked = draw(st.permutations(QUESTIONS))
        between = draw(st.lists(st.sampled_from(SHORT), max_size=2))
        own = [f"{question} ({tag})" for question in asked[:3]]
        # The openings are answered alike in all chats, what follows is a chat's own.
        chats[tag] = [Turn(each, ANSWERS[4]) for each in opening] + [
            Turn(each, f"{ANSWERS[place % 4]} {tag} {place}") for place, each in enumerate([own[0], *between, *own[1:]])
        ]
        total = len(chats[tag])
        steps = [("hook", turn) for turn in range(total)]
        steps += [("read", upto) for upto in (*draw(st.lists(st.integers(1, total), max_size=2)), total)]
        steps += [("tool", upto) for upto in (*draw(st.lists(st.integers(1, total), max_size=3)), total)]
        by_way = {way: sorted(at for who, at in steps if who == way) for way in ("hook", "read", "tool")}
        order = draw(st.permutations([who for who, _ in steps]))
        moves[tag] = [(tag, who, by_way[who].pop(0), draw(st.sampled_from([1000, 6]))) for who in order]
    turns = draw(st.permutations([tag for tag in tags for _ in moves[tag]]))
    return chats, [moves[tag].pop(0) for tag in turns]


@pytest.fixture(scope="module")
def shared_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    opened = create_database_engine(f"sqlite:///{tmp_path_factory.mktemp('chats') / 'registry.db'}")
    migrate_engine(opened)
    yield opened.execution_options(write=True)
    opened.dispose()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given_chat=arrivals(("a",)))
def test_however_a_chat_arrives_it_ends_as_one_channel(
    shared_engine: Engine, given_chat: tuple[dict[str, list[Turn]], list[tuple[str, str, int, int]]]
) -> None:
    check(shared_engine, *given_chat, f"{next(NUMBERS)}")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given_chats=arrivals(("a", "b")))
def test_however_two_chats_arrive_they_end_as_two(
    shared_engine: Engine, given_chats: tuple[dict[str, list[Turn]], list[tuple[str, str, int, int]]]
) -> None:
    check(shared_engine, *given_chats, f"{next(NUMBERS)}")


def check(engine: Engine, turns: dict[str, list[Turn]], moves: list[tuple[str, str, int, int]], key: str) -> None:
    """Play the arrivals in a project of their own: each chat is one channel, with each message once, in order."""
    chats = {tag: Chat(engine, turns[tag], f"{key}{tag}", f"{key}-{tag}", f"/home/ann/{key}") for tag in turns}
    returned: list[tuple[str, str]] = []
    for tag, way, amount, words in moves:
        chat = chats[tag]
        if way == "tool":
            ids = chat.tool(amount, words=words)
            returned += [(id_, turn.question) for id_, turn in zip(ids[::2], chat.turns, strict=False)]
        else:
            getattr(chat, way)(amount)
    of_these = [row for row in channels(engine) if row.project_path == f"/home/ann/{key}"]
    assert len(of_these) == len(chats), [(row.name, row.session_id) for row in of_these]
    for chat in chats.values():
        row = chat.channel()
        assert row is not None
        assert row.session_id == chat.session_id
        assert sorted(said_in(engine, row)) == sorted(once(chat.turns))
    for id_, question in returned:
        [chat] = [chat for chat in chats.values() if any(turn.question == question for turn in chat.turns)][:1]
        assert chat.text_of(id_) == question


SHORT_AFTERWARDS = (
    Turn("How do I sort the catalogue quickly?", "Sorted by key with a stable comparison; the tests of it pass."),
    Turn("continue", "The descending order is there as well, and it keeps equal prices in place."),
    Turn("run the tests", "All forty-one of them pass, the empty catalogue among them."),
)


@pytest.mark.parametrize("order", ["thr", "hrt", "rth"])
def test_short_follow_ups_do_not_keep_a_chat_apart_whose_answers_are_the_same(
    engine: Engine, order: tuple[str, ...]
) -> None:
    chat = Chat(engine, SHORT_AFTERWARDS)
    for letter in order:
        if letter == "t":
            chat.tool(3)
        elif letter == "r":
            chat.read(3)
        else:
            for turn in range(3):
                chat.hook(turn)
    [row] = channels(engine)
    assert said_in(engine, row) == once(SHORT_AFTERWARDS)


def test_what_a_hook_sent_takes_the_time_that_the_store_has_for_it(engine: Engine) -> None:
    chat = Chat(engine, BASKET)
    chat.hook(0)
    chat.read(1)
    [row] = channels(engine)
    within = conversation.c.channel_number == row.number, conversation.c.deleted.is_(False)
    with engine.begin() as connection:
        said = connection.execute(select(conversation).where(*within).order_by(conversation.c.timestamp)).all()
    assert [each.role for each in said] == ["user", "thinking", "tool", "assistant"]
    assert said[-1].timestamp == NINE + timedelta(seconds=15)


@pytest.mark.parametrize(
    "order", [(1, 2, "read"), (1, "read", 2, "read"), ("read", 1, 2), ("read", 2, 1, "read"), (1, "read", 1, 2, 1)]
)
def test_an_answer_in_two_blocks_of_which_a_hook_sends_the_last_is_one(
    engine: Engine, order: tuple[object, ...]
) -> None:
    question, answer = BASKET[0]
    whole = Chat(engine, (Turn(question, f"I look at the session code first.\n\n{answer}"), Turn("Sure?", "Done.")))
    told = Chat(engine, (Turn(question, answer), whole.turns[1]))
    for step in order:
        if isinstance(step, int):
            told.hook(step - 1)
        else:
            whole.read(2)
    [row] = channels(engine)
    assert said_in(engine, row) == [(role, " ".join(text.split())) for role, text in once(whole.turns)]
