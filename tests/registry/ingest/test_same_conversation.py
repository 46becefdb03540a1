"""Compare two transcripts: which turns match, and whether they are the same conversation."""

from __future__ import annotations

from registry.domain import Role, digest_of
from registry.ingest.alignment import Transcript, Utterance, matching_turns
from registry.ingest.same_conversation import Verdict, compare


def transcript(*turns: tuple[str, str | None]) -> Transcript:
    messages = [
        (role, text) for turn in turns for role, text in zip((Role.USER, Role.ASSISTANT), turn, strict=True) if text
    ]
    utterances = [Utterance(role, digest_of(role, text)) for role, text in messages]
    return Transcript(utterances, lambda places: {at: messages[at][1] for at in places})


LOGIN = "Why does the basket lose all of its items after the login?"
GUESTS = "And what about the guests who never log in to it at all?"
RENEWED, COOKIE = "It makes a new list each time.", "They keep theirs in a cookie."
NO_IDEA, ASK = "Sorry, nobody knows that, really.", "Better ask somebody else, please."


def test_equal_questions_are_one_conversation_unless_their_answers_differ() -> None:
    cases: list[tuple[tuple[str, str | None], Verdict]] = [
        ((RENEWED, COOKIE), Verdict.SAME),
        ((RENEWED, ASK), Verdict.SAME),
        ((NO_IDEA, ASK), Verdict.PERHAPS),
        ((NO_IDEA, None), Verdict.SAME),
    ]
    for answers, verdict in cases:
        one = transcript((LOGIN, RENEWED), (GUESTS, COOKIE))
        assert compare(one, transcript((LOGIN, answers[0]), (GUESTS, answers[1]))).verdict is verdict


def test_a_turn_that_matches_several_is_the_last_because_partial_resends_are_ends() -> None:
    stored = transcript(("continue", "one"), ("continue", "two"), ("continue", "three"))
    assert matching_turns(stored.turns, transcript(("continue", "otherwise")).turns) == [(3, 1)]
    assert matching_turns(stored.turns, transcript(("continue", "two")).turns) == [(2, 1)]
    assert matching_turns(stored.turns, transcript(("continue", "one"), ("continue", "new")).turns) == [(1, 1), (3, 2)]
