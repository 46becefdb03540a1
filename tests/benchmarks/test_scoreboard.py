"""Test the scoreboard: its figures come from the sets, and a loss is shown."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from benchmarks.retrieval.question_sets import Message, Question, QuestionSet, Session
from benchmarks.scoreboard import Row, changes, conversations, markdown, published_sessions

DAY = "2026-03-19T12:00:00+00:00"
PARSER = Session("parser", [Message("parser-1", "user", "The parser of dates fails on leap years.", DAY)])
TORTOISE = Session("tortoise", [Message("tortoise-1", "user", "Hektor the tortoise eats dandelions.", DAY)])
TINY = QuestionSet(
    "tiny",
    datetime.fromisoformat("2026-03-20T12:00:00+00:00"),
    "UTC",
    [PARSER, TORTOISE],
    [
        Question("q1", "direct", "dandelions", ("tortoise",), frozenset({"tortoise-1"}), ("what Hektor eats",)),
        Question("q2", "paraphrase", "calendar bug", ("parser",), frozenset({"parser-1"}), ("parser of dates",)),
        Question("q3", "off_topic", "quantum chromodynamics"),
    ],
)


def test_a_table_shows_how_often_each_program_finds_the_right_conversation() -> None:
    one_wording, with_wordings = conversations("tiny", [TINY])
    assert one_wording.figures == dict.fromkeys(("ctxr", "FTS5", "BM25"), (0.5, 0.5))
    assert with_wordings.figures == dict.fromkeys(("ctxr", "FTS5", "BM25"), (1.0, 1.0))
    [sessions] = published_sessions("longmemeval_s", [TINY])
    assert sessions.figures == dict.fromkeys(("ctxr", "FTS5", "BM25"), (0.5, 0.5, 0.5))
    assert [one.figures for one in published_sessions("longmemeval_s", [])] == [{}]
    line = markdown([[one_wording], [one_wording]]).splitlines()[-1]
    assert line.startswith("| tiny, one wording: right conversation, first / of five | **0.500** / **0.500** | ")
    assert " | – | – | 0.000 | `python -m benchmarks.retrieval --file " in line


def test_baselines_are_asked_for_the_current_state_too(tmp_path: Path) -> None:
    said = {"old": "Deploys go through Jenkins.", "new": "We moved: deploys go through Buildkite now, not Jenkins."}
    sessions = [
        {
            "id": name,
            "messages": [
                {"id": f"{name}-1", "role": "user", "text": text, "timestamp": f"2026-0{month}-19T12:00+00:00"}
            ],
        }
        for month, (name, text) in enumerate(said.items(), 1)
    ]
    case = {"id": "c1", "kind": "explicit", "lang": "en", "old_session": "old", "new_session": "new"}
    stated = {"old_messages": ["old-1"], "new_messages": ["new-1"], "also": ["deploys Buildkite"]}
    asked = {"ask_now": "What do deploys go through now?", "ask_past": "deploys through Jenkins before we moved?"}
    file = tmp_path / "tiny.json"
    given = {"name": "tiny", "now": "2026-03-20T12:00+00:00", "zone": "UTC", "sessions": sessions}
    file.write_text(json.dumps({**given, "cases": [{**case, **stated, **asked}]}), encoding="utf-8")
    one_wording, with_wordings = changes(file)
    assert one_wording.figures["ctxr"][:2] == (1.0, 1.0)
    assert (with_wordings.figures["FTS5"], with_wordings.figures["BM25"][:2]) == ((1.0, 1.0, 0.0), (1.0, 1.0))


@pytest.mark.parametrize(
    ("is_low_best", "line"),
    [
        (False, "| rate | 150 | **500** | – | – | – | 50.0 | `make bench` |"),
        (True, "| rate | **150** | 500 | – | – | – | 50.0 | `make bench` |"),
    ],
)
def test_a_loss_and_the_noise_between_two_runs_are_printed(is_low_best: bool, line: str) -> None:
    runs = [Row("rate", {"ctxr": (ours,), "FTS5": (500.0,)}, "make bench", is_low_best) for ours in (100.0, 200.0)]
    assert markdown([[run] for run in runs]).splitlines()[-1] == line


def test_a_single_figure_is_not_called_the_best() -> None:
    row = Row("memory", {"ctxr": (10.8,)}, "make bench", is_low_best=True)
    assert markdown([[row], [row]]).splitlines()[-1] == "| memory | 10.8 | – | – | – | – | 0.000 | `make bench` |"
