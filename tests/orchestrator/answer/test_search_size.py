"""Test which matches and neighbouring messages a list of sessions shows in a small budget."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.answer.fitting import fit_sessions


def entry(sequence: int, name: str = "snippet") -> dict[str, Any]:
    """Return a match, or a neighbour of one if its text is stored under another name than "snippet"."""
    return {"role": "user", "sequence": sequence, name: f"said {sequence} " + "of the talk " * 6}


@pytest.mark.parametrize(("tokens", "expected"), [(80, [5]), (115, [3, 5]), (200, [2, 3, 5, 6])])
def test_the_answer_after_a_match_is_shown_before_its_other_neighbours(tokens: int, expected: list[int]) -> None:
    match = {**entry(4), "context": [entry(sequence, "text") for sequence in (2, 3, 5, 6)]}
    [shown] = fit_sessions([{"session_id": "s", "channel": "c", "matches": [match]}], tokens)
    assert [one["sequence"] for one in shown["matches"][0]["context"]] == expected


def test_each_session_shows_its_best_match_before_one_shows_a_second() -> None:
    sessions = [{"session_id": name, "channel": name, "matches": list(map(entry, (2, 6, 10)))} for name in "abc"]
    shown = fit_sessions(sessions, 170)
    assert [[one["sequence"] for one in session["matches"]] for session in shown] == [[2, 6], [2], [2]]
    [first, *_] = fit_sessions(sessions, 1)
    assert [one["sequence"] for one in first["matches"]] == [2]


def test_a_message_shown_beside_a_match_is_not_repeated_as_a_match() -> None:
    matches = [{**entry(4), "context": [entry(5, "text")]}, entry(5)]
    [shown] = fit_sessions([{"session_id": "s", "channel": "c", "matches": matches}], 500)
    assert [one["sequence"] for one in shown["matches"]] == [4]
