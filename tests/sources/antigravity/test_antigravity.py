"""Antigravity: conversations as a user sees them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from registry.domain import Role, parse_time
from sources.antigravity.reader import Antigravity
from sources.base import Paths, Skipped
from tests.sources.antigravity.antigravity_files import SESSION, SHOP, Steps, call, working_steps, write
from tests.sources.reading import read_changed, scan, texts_of


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The empty folder of the command line."""
    folder = tmp_path / ".gemini" / "antigravity-cli"
    (folder / "brain").mkdir(parents=True)
    return folder


def test_a_conversation_is_read_in_order(store: Path) -> None:
    write(store, working_steps())
    [each] = read_changed(Antigravity(), store)

    assert texts_of(each.session) == [
        ("user", "Why is the basket empty? 안녕"),
        ("thinking", "It returns a new list."),
        ("assistant", "I will look."),
        ("tool", "view_file /home/ann/shop/basket.py\n\nreturn []"),
        ("tool", "run_command pytest\n\nThe command exited with code 1.\nOutput:\n1 failed"),
        ("system", "{{ CHECKPOINT 0 }} The basket is made anew."),
        ("assistant", "It makes a new list."),
    ]
    assert (each.session.session_id, each.session.project, each.skipped) == (SESSION, SHOP, ())
    assert each.session.title == "Why is the basket empty? 안녕"


def test_messages_keep_times_models_and_calls(store: Path) -> None:
    write(store, working_steps())
    asked, thought, answer, looked, ran, checkpoint, _ = read_changed(Antigravity(), store)[0].session.messages

    assert (asked.timestamp, asked.more) == (parse_time("2026-11-03T09:00:00Z"), {"native_id": "0"})
    assert {one.more["model"] for one in (thought, answer)} == {"Claude Sonnet 4.6 (Thinking)"}
    assert thought.more["native_id"] != answer.more["native_id"]
    assert looked.more["tool"] == {
        "name": "view_file",
        "params": {"file_path": f"{SHOP}/basket.py"},
        "result": "return []",
        "status": "completed",
    }
    assert (ran.more["tool"]["params"], ran.more["tool"]["status"]) == ({"command": "pytest"}, "failed")
    assert (checkpoint.more["injected"], checkpoint.more["compaction"]) == (True, {})


def test_the_full_transcript_is_preferred_to_the_shortened_one(store: Path) -> None:
    short = Steps()
    short.model("", call("run_command", is_shortened=True, CommandLine="make", Cwd=SHOP, WaitMsBeforeAsync=500))
    short.result("RUN_COMMAND", "<truncated 14 lines>")
    write(store, short, name="transcript.jsonl")
    [each] = read_changed(Antigravity(), store)
    assert each.session.messages[0].more["tool"]["params"] == {"command": "make", "WaitMsBeforeAsync": "500"}
    assert each.session.project == SHOP

    write(store, working_steps())
    [each] = read_changed(Antigravity(), store)
    assert len(each.session.messages) == 7


def test_late_and_repeated_steps_appear_once_in_order(store: Path) -> None:
    steps = working_steps()
    begun = {**steps.lines[4], "content": "", "status": "RUNNING"}
    first, looked, called, *rest = steps.lines
    steps.lines = [first, rest[0], begun, called, looked, *rest[1:]]
    write(store, steps)
    whole = [("tool", "view_file /home/ann/shop/basket.py\n\nreturn []")]
    [each] = read_changed(Antigravity(), store)
    assert texts_of(each.session)[3:4] == whole
    assert len(each.session.messages) == 7


def test_a_refused_call_is_failed_and_a_service_error_is_kept(store: Path) -> None:
    steps = Steps()
    steps.user("Go on")
    steps.model("", call("view_file", AbsolutePath="/nowhere"))
    steps.add("SYSTEM", "ERROR_MESSAGE", error="There was a problem parsing the tool call.")
    steps.add("SYSTEM", "ERROR_MESSAGE", "The model is overloaded.")
    steps.model("", call("run_command", CommandLine="sleep 9"))
    write(store, steps)
    _, refused, overloaded, running = read_changed(Antigravity(), store)[0].session.messages
    assert (refused.more["tool"]["status"], refused.more["tool"]["result"]) == (
        "failed",
        "There was a problem parsing the tool call.",
    )
    assert (overloaded.role, overloaded.text) == (Role.ERROR, "The model is overloaded.")
    assert running.more["tool"]["status"] == "pending"


def test_a_result_without_its_call_is_kept_under_its_kind(store: Path) -> None:
    steps = Steps()
    steps.user("plain words")
    steps.result("CODE_ACTION", "Created file file:///home/ann/shop/a.py.")
    steps.add("MODEL", "MOOD")
    write(store, steps, name="overview.txt")
    [each] = read_changed(Antigravity(), store)
    assert texts_of(each.session)[1] == ("tool", "code_action\n\nCreated file file:///home/ann/shop/a.py.")
    assert [(one.what, one.why) for one in each.skipped] == [("1 x step MOOD", "unknown to this reader")]


def test_the_project_is_found_in_the_prompt_history(store: Path) -> None:
    steps = Steps()
    steps.user("Hi")
    steps.model("", call("run_command", CommandLine="ls", Cwd="/tmp"))
    write(store, steps)
    prompt = {"display": "Hi", "timestamp": 1_795_331_123_618, "workspace": SHOP, "conversationId": SESSION}
    (store / "history.jsonl").write_text(json.dumps(prompt) + "\n{torn", encoding="utf-8")
    assert [each.session.project for each in read_changed(Antigravity(), store)] == [SHOP]


def test_damage_is_reported_and_stops_nothing(store: Path) -> None:
    write(store, working_steps())
    file = write(store, Steps(), session="torn")
    file.write_bytes(b'{"step_index": 0, "type": "USER_INPUT", "content": "Hi"}\nnot JSON\n{"step_ind')
    (store / "brain" / "empty" / ".system_generated" / "logs" / "transcript.jsonl").mkdir(parents=True)
    by_id = {each.session.session_id: each for each in read_changed(Antigravity(), store)}
    assert texts_of(by_id["torn"].session) == [("user", "Hi")]
    assert [skipped.why for skipped in by_id["torn"].skipped] == ["not JSON", "incomplete line"]
    assert len(by_id[SESSION].session.messages) == 7
    skipped = [each for each in scan(Antigravity(), store) if isinstance(each, Skipped)]
    assert [each.why for each in skipped] == ["a folder, not a file"]


def test_the_stores_of_the_editor_and_the_command_line_are_found(tmp_path: Path) -> None:
    for folder in ("antigravity", "antigravity-ide", "antigravity-cli"):
        assert list(Antigravity().find(Paths(tmp_path / folder, {}))) == []
        (tmp_path / ".gemini" / folder / "brain").mkdir(parents=True)
    names = {store.name for store in Antigravity().find(Paths(tmp_path, {}))}
    assert names == {"antigravity", "antigravity-ide", "antigravity-cli"}
    mine = {"CTXR_ANTIGRAVITY_DIR": str(tmp_path / ".gemini" / "antigravity")}
    assert list(Antigravity().find(Paths(tmp_path / "else", mine))) == [tmp_path / ".gemini" / "antigravity"]
