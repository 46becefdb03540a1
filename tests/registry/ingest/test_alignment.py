"""Recognise a resent conversation. Letters are messages, capitals those of the user."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from registry.domain import Role
from registry.ingest.alignment import Utterance, latest_positions, recognise


def spoken(letters: str, times: list[int | None] | None = None) -> list[Utterance]:
    instants = times or [None] * len(letters)
    roles = {True: Role.USER, False: Role.ASSISTANT}
    return [
        Utterance(roles[letter.isupper()], letter.encode(), instant=instant)
        for letter, instant in zip(letters, instants, strict=True)
    ]


def new_ones(stored: str, sent: str) -> str:
    """Return the letters recognised as new, with a dot for each known one."""
    found = recognise(spoken(stored), spoken(sent))
    return "".join(letter if place is None else "." for letter, place in zip(sent, found, strict=True))


SENT_AGAIN = {
    "the whole conversation": [("AaBb", "AaBbCc", "....Cc"), ("AaBb", "AaBb", "....")],
    "the last turns": [("AaBbCc", "BbCcDd", "....Dd")],
    "a delayed retry of an older call": [("AaBbCcDd", "BbCc", "....")],
    "three times continue": [
        *(("", "CoCoCo", "CoCoCo"), ("CoCoCo", "CoCoCo", "......")),
        *(("CoCoCo", "CoCoCoCo", "......Co"), ("CoCo", "oCoCo", "...Co")),
    ],
    "a regenerated answer": [
        *(("AaBb", "AaBx", "...x"), ("AaBb", "Bx", ".x")),
        *(("AaBbCc", "AxBbCc", ".x...."), ("AaBb", "Ax", ".x")),
    ],
    "an edited early turn": [("AaBbCcDd", "AaBbXx", "....Xx")],
    "a beginning that is logged late": [("CcDd", "AaBbCcDd", "AaBb....")],
    "a question asked again turns later": [("AaRpBb", "Rf", "Rf")],
    "a resend without some messages": [("AaBbCcDd", "AaCcDdEe", "......Ee")],
    "tool messages in between": [("AtttaBtb", "AaBbCc", "....Cc")],
}
"""Stored messages, sent ones, and those recognised as new."""


def test_only_new_messages_of_a_resend_are_new() -> None:
    for what, cases in SENT_AGAIN.items():
        for stored, sent, new in cases:
            assert new_ones(stored, sent) == new, what


def test_repeated_text_with_a_later_time_is_a_new_turn() -> None:
    stored = spoken("RpRp", [1, 2, 3, 4])
    assert recognise(stored, spoken("Rp", [5, 6])) == [None, None]
    assert recognise(stored, spoken("Rp", [3, 4])) == [2, 3]
    assert recognise(stored, spoken("Rp", [4, 5])) == [2, 3]
    assert recognise(stored, spoken("Rp")) == [2, 3]

    assert recognise(spoken("RpBbCc", [1, 2, 3, 4, 5, 6]), spoken("Rf", [7, 8])) == [None, None]


def test_equal_messages_are_told_apart_by_time() -> None:
    stored = spoken("CoCoCo", [1, 2, 3, 4, 5, 6])
    assert recognise(stored, spoken("Cox", [1, 2, 9])) == [0, 1, None]


def test_ten_thousand_messages_with_two_changed_answers_are_recognised_fast() -> None:
    stored = [Utterance((Role.USER, Role.ASSISTANT)[i % 2], str(i).encode()) for i in range(10_000)]
    sent = [*stored, Utterance(Role.ASSISTANT, b"new")]
    sent[3_001] = sent[7_001] = Utterance(Role.ASSISTANT, b"changed")
    found = recognise(stored, sent)
    assert [place for place in found if place is None] == [None] * 3
    assert found[9_999] == 9_999


LETTERS = st.text("AaBbo", max_size=30)


@given(LETTERS, LETTERS)
def test_matched_positions_have_the_same_text_and_ascend(stored: str, sent: str) -> None:
    found = recognise(spoken(stored), spoken(sent))
    places = [place for place in found if place is not None]
    assert places == sorted(set(places))
    assert all(place is None or stored[place] == letter for letter, place in zip(sent, found, strict=True))


@given(LETTERS, LETTERS)
def test_a_whole_conversation_is_always_recognised(stored: str, more: str) -> None:
    found = recognise(spoken(stored), spoken(stored + more))
    assert found == [*range(len(stored)), *[None] * len(more)]


@given(LETTERS.filter(bool), st.data())
def test_any_end_of_a_conversation_is_recognised(stored: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(stored) - 1))
    assert None not in recognise(spoken(stored), spoken(stored[start:]))


@given(LETTERS, LETTERS)
@example("A", "B")
def test_latest_positions_exist_only_for_a_stored_subsequence(stored: str, sent: str) -> None:
    rest = iter(stored)
    is_held = all(letter in rest for letter in sent)
    assert (latest_positions(spoken(stored), spoken(sent)) is not None) == is_held
