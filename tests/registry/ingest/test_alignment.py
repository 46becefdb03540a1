"""Recognising a conversation that is sent again, as pure sequences: letters are messages, capitals the user's."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from registry.domain import Role
from registry.ingest.alignment import Utterance, latest_positions, overlap, recognise


def spoken(letters: str, times: list[int | None] | None = None) -> list[Utterance]:
    instants = times or [None] * len(letters)
    roles = {True: Role.USER, False: Role.ASSISTANT}
    return [
        Utterance(roles[letter.isupper()], letter.encode(), instant=instant)
        for letter, instant in zip(letters, instants, strict=True)
    ]


def new_ones(stored: str, sent: str) -> str:
    """The sent letters taken for new; a dot for each one recognised."""
    found = recognise(spoken(stored), spoken(sent))
    return "".join(letter if place is None else "." for letter, place in zip(sent, found, strict=True))


def test_the_whole_conversation_sent_again_adds_only_its_end() -> None:
    assert new_ones("AaBb", "AaBbCc") == "....Cc"


def test_the_last_turns_sent_again_add_only_what_follows_them() -> None:
    assert new_ones("AaBbCc", "BbCcDd") == "....Dd"


def test_a_conversation_sent_unchanged_adds_nothing() -> None:
    assert new_ones("AaBb", "AaBb") == "...."


def test_a_delayed_retry_of_an_older_call_adds_nothing() -> None:
    assert new_ones("AaBbCcDd", "BbCc") == "...."


def test_continue_said_three_times_is_three_messages_however_often_it_is_sent() -> None:
    assert new_ones("", "CoCoCo") == "CoCoCo"
    assert new_ones("CoCoCo", "CoCoCo") == "......"
    assert new_ones("CoCoCo", "CoCoCoCo") == "......Co"
    assert new_ones("CoCo", "oCoCo") == "...Co"


def test_a_regenerated_answer_is_new_and_its_question_is_not() -> None:
    assert new_ones("AaBb", "AaBx") == "...x"
    assert new_ones("AaBb", "Bx") == ".x"
    assert new_ones("AaBbCc", "AxBbCc") == ".x...."
    assert new_ones("AaBb", "Ax") == ".x"


def test_a_turn_edited_early_keeps_what_stood_before_it() -> None:
    assert new_ones("AaBbCcDd", "AaBbXx") == "....Xx"


def test_the_start_of_a_conversation_that_was_logged_late_is_added() -> None:
    assert new_ones("CcDd", "AaBbCcDd") == "AaBb...."


def test_a_question_asked_again_turns_later_is_a_new_question() -> None:
    assert new_ones("AaRpBb", "Rf") == "Rf"


def test_messages_left_out_of_a_resend_do_not_double_the_rest() -> None:
    assert new_ones("AaBbCcDd", "AaCcDdEe") == "......Ee"


def test_tool_messages_known_from_elsewhere_do_not_hinder() -> None:
    assert new_ones("AtttaBtb", "AaBbCc") == "....Cc"


def test_old_words_later_than_everything_stored_are_a_new_turn() -> None:
    stored = spoken("RpRp", [1, 2, 3, 4])
    assert recognise(stored, spoken("Rp", [5, 6])) == [None, None]
    assert recognise(stored, spoken("Rp", [3, 4])) == [2, 3]
    assert recognise(stored, spoken("Rp", [4, 5])) == [2, 3]
    assert recognise(stored, spoken("Rp")) == [2, 3]


def test_a_timestamp_tells_which_of_equal_messages_is_meant() -> None:
    stored = spoken("CoCoCo", [1, 2, 3, 4, 5, 6])
    assert recognise(stored, spoken("Cox", [1, 2, 9])) == [0, 1, None]


def test_a_later_question_repeated_with_another_answer_is_not_taken_for_the_first_turn() -> None:
    stored = spoken("RpBbCc", [1, 2, 3, 4, 5, 6])
    assert recognise(stored, spoken("Rf", [7, 8])) == [None, None]


def test_ten_thousand_messages_with_two_answers_changed_are_recognised_at_once() -> None:
    stored = [Utterance((Role.USER, Role.ASSISTANT)[i % 2], str(i).encode()) for i in range(10_000)]
    sent = [*stored, Utterance(Role.ASSISTANT, b"new")]
    sent[3_001] = sent[7_001] = Utterance(Role.ASSISTANT, b"changed")
    found = recognise(stored, sent)
    assert [place for place in found if place is None] == [None] * 3
    assert found[9_999] == 9_999


LETTERS = st.text("AaBbo", max_size=30)


@given(LETTERS, LETTERS)
def test_places_found_are_places_of_the_same_words_in_order(stored: str, sent: str) -> None:
    found = recognise(spoken(stored), spoken(sent))
    places = [place for place in found if place is not None]
    assert places == sorted(set(places))
    assert all(place is None or stored[place] == letter for letter, place in zip(sent, found, strict=True))


@given(LETTERS, LETTERS)
def test_a_whole_conversation_is_always_recognised_whole(stored: str, more: str) -> None:
    found = recognise(spoken(stored), spoken(stored + more))
    assert found == [*range(len(stored)), *[None] * len(more)]


@given(LETTERS.filter(bool), st.data())
def test_any_last_part_of_a_conversation_is_known(stored: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(stored) - 1))
    assert None not in recognise(spoken(stored), spoken(stored[start:]))


@given(LETTERS, LETTERS)
def test_the_overlap_is_the_longest_end_of_one_that_begins_the_other(stored: str, sent: str) -> None:
    digests = [[letter.encode() for letter in letters] for letters in (stored, sent)]
    longest = max(n for n in range(min(len(stored), len(sent)) + 1) if stored[len(stored) - n :] == sent[:n])
    assert overlap(*digests) == longest


@given(LETTERS, LETTERS)
@example("A", "B")
def test_only_what_is_stored_in_that_order_has_latest_places(stored: str, sent: str) -> None:
    rest = iter(stored)
    is_held = all(letter in rest for letter in sent)
    assert (latest_positions(spoken(stored), spoken(sent)) is not None) == is_held
