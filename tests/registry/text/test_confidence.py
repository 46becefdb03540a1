"""How sure an answer is: what its words, its meaning and its lead say together."""

from registry.text.ranking.confidence import Confidence, Evidence, confidence_of

HALF = [Evidence(covered=0.5, told=0.4)]


def test_meaning_speaks_for_a_conversation_that_holds_half_of_the_words() -> None:
    assert confidence_of(HALF) is Confidence.LOW
    assert confidence_of(HALF, near=-1.0) is Confidence.LOW
    assert confidence_of(HALF, near=1.0) is Confidence.MEDIUM


def test_the_best_of_many_needs_a_lead_or_more_of_the_meaning() -> None:
    assert confidence_of(HALF, near=1.0, lead=0.1) is Confidence.LOW
    assert confidence_of(HALF, near=2.0, lead=0.1) is Confidence.LOW
    assert confidence_of(HALF, near=2.0, lead=1.0) is Confidence.MEDIUM


def test_meaning_alone_or_a_lead_alone_answers_nothing() -> None:
    nothing = [Evidence(covered=0.0, told=0.0)]
    assert confidence_of(nothing, near=2.0, lead=1.0) is Confidence.LOW
    assert confidence_of(nothing, lead=1.0) is Confidence.LOW
    assert confidence_of([], near=0.0) is Confidence.LOW


def test_a_time_or_place_that_was_named_and_is_right_speaks_for_it() -> None:
    assert confidence_of(HALF, lead=0.1, is_narrowed=True) is Confidence.MEDIUM
