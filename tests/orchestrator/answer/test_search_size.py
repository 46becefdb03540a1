"""What a list of found sessions shows first where there is little room."""

from __future__ import annotations

from typing import Any

from orchestrator.answer.fitting import fitted


def line(sequence: int) -> dict[str, Any]:
    return {"role": "user", "sequence": sequence, "text": f"line {sequence} " + "of the talk " * 6}


def test_of_what_stands_around_a_match_its_answer_is_shown_first() -> None:
    match = {"role": "user", "sequence": 4, "snippet": "the question", "context": [line(at) for at in (2, 3, 5, 6)]}
    session = {"session_id": "s", "channel": "c", "matches": [match]}
    for tokens, expected in ((65, [5]), (95, [3, 5]), (190, [2, 3, 5, 6])):
        [shown] = fitted([session], tokens)
        assert [one["sequence"] for one in shown["matches"][0]["context"]] == expected, tokens


def found(name: str, score: float) -> dict[str, Any]:
    matches = [
        {"role": "user", "sequence": at, "snippet": f"{name} said {at} " + "of the talk " * 6} for at in (2, 6, 10)
    ]
    return {"session_id": name, "channel": name, "score": score, "matches": matches}


def test_of_what_is_far_behind_the_best_less_is_shown_than_of_the_best() -> None:
    room = 205
    clear = fitted([found("a", 0.9), found("b", 0.2), found("c", 0.2)], room)
    assert [len(session["matches"]) for session in clear] == [3, 1, 1]
    close = fitted([found("a", 0.9), found("b", 0.85), found("c", 0.8)], room)
    assert [len(session["matches"]) for session in close] == [2, 2, 1]
