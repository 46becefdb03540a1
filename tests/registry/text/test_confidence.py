"""How sure an answer is: by the share of the request that the conversation holds, and by its lead."""

from registry.text.ranking.confidence import Confidence, confidence_of


def test_an_answer_is_sure_that_holds_most_of_the_request_and_leads_the_others() -> None:
    cases: list[tuple[float, float, Confidence]] = [
        (0.9, 0.5, Confidence.HIGH),
        (0.9, 0.15, Confidence.MEDIUM),
        (0.7, 0.5, Confidence.MEDIUM),
        (0.9, 0.05, Confidence.LOW),
        (0.5, 0.9, Confidence.LOW),
    ]
    for covered, lead, level in cases:
        assert confidence_of(covered, lead) is level


def test_a_conversation_that_was_named_needs_no_lead() -> None:
    assert confidence_of(0.9) is Confidence.HIGH


def test_a_time_or_client_that_was_named_and_is_right_is_evidence_too() -> None:
    assert confidence_of(0.3, 0.0) is Confidence.LOW
    assert confidence_of(0.3, 0.0, is_explicit=True) is Confidence.MEDIUM
