"""How sure an answer is: what its words, its meaning and its lead say together."""

from registry.text.ranking.confidence import Confidence, Evidence, confidence_of, lead_of

HALF = [Evidence(covered=0.5, told=0.4)]
USUAL = 20.0


def test_meaning_speaks_for_a_conversation_that_holds_half_of_the_words() -> None:
    assert confidence_of(HALF, size=USUAL) is Confidence.LOW
    assert confidence_of(HALF, size=USUAL, near=-1.0) is Confidence.LOW
    assert confidence_of(HALF, size=USUAL, near=1.0) is Confidence.MEDIUM


def test_half_of_the_words_says_more_of_a_short_conversation_than_of_a_long_one() -> None:
    assert confidence_of(HALF, size=5.0) is Confidence.MEDIUM
    assert confidence_of(HALF, size=100.0) is Confidence.LOW
    assert confidence_of(HALF, size=100.0) is confidence_of(HALF, size=100_000.0)


def test_the_best_of_many_needs_a_lead_or_more_of_the_meaning() -> None:
    assert confidence_of(HALF, size=USUAL, near=1.0, lead=0.1) is Confidence.LOW
    assert confidence_of(HALF, size=USUAL, near=3.2, lead=0.1) is Confidence.LOW
    assert confidence_of(HALF, size=USUAL, near=3.2, lead=1.0) is Confidence.MEDIUM


def test_a_lead_is_over_the_next_five_whether_or_not_there_are_so_many() -> None:
    assert lead_of([]) is None
    assert lead_of([0.5]) == 1.0
    assert lead_of([1.0, 0.5]) == 0.9
    assert lead_of([1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]) == 0.5


def test_meaning_alone_or_a_lead_alone_answers_nothing() -> None:
    nothing = [Evidence(covered=0.0, told=0.0)]
    assert confidence_of(nothing, near=2.0, lead=1.0) is Confidence.LOW
    assert confidence_of(nothing, lead=1.0) is Confidence.LOW
    assert confidence_of([], near=0.0) is Confidence.LOW


def test_a_time_or_place_that_was_named_and_is_right_speaks_for_it() -> None:
    assert confidence_of(HALF, lead=0.1, is_narrowed=True) is Confidence.MEDIUM
