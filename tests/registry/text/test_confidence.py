"""Confidence of an answer: from the share of the request that the conversation covers, and its lead over others."""

from registry.text.ranking.confidence import Confidence, confidence_of


def test_confidence_is_high_with_most_of_the_request_and_a_lead() -> None:
    cases: list[tuple[float, float, Confidence]] = [
        (0.9, 0.5, Confidence.HIGH),
        (0.9, 0.15, Confidence.MEDIUM),
        (0.7, 0.5, Confidence.MEDIUM),
        (0.9, 0.05, Confidence.LOW),
        (0.5, 0.9, Confidence.LOW),
    ]
    for covered, lead, level in cases:
        assert confidence_of(covered, lead) is level


def test_a_named_conversation_needs_no_lead() -> None:
    assert confidence_of(0.9) is Confidence.HIGH


def test_a_matching_time_or_client_raises_confidence() -> None:
    assert confidence_of(0.3, 0.0) is Confidence.LOW
    assert confidence_of(0.3, 0.0, is_explicit=True) is Confidence.MEDIUM
