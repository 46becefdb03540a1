"""What a list of found sessions shows first where there is little room."""

from __future__ import annotations

from typing import Any

from orchestrator.answer.fitting import fitted


def line(sequence: int) -> dict[str, Any]:
    return {"role": "user", "sequence": sequence, "text": f"line {sequence} " + "of the talk " * 6}


def test_of_what_stands_around_a_match_its_answer_is_shown_first() -> None:
    match = {"role": "user", "sequence": 4, "snippet": "the question", "context": [line(at) for at in (2, 3, 5, 6)]}
    session = {"session_id": "s", "channel": "c", "matches": [match]}
    for tokens, expected in ((210, [5]), (240, [3, 5]), (400, [2, 3, 5, 6])):
        [shown] = fitted([session], tokens)
        assert [one["sequence"] for one in shown["matches"][0]["context"]] == expected, tokens
