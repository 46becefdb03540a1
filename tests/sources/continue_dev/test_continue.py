"""Continue: sessions as a user sees them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from registry.domain import Role
from sources.continue_dev.reader import Continue
from tests.sources.continue_dev.continue_files import BEGAN, SESSION, SHOP, item, tool_state, working_history, write
from tests.sources.reading import read_changed, scan, texts_of


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The client's empty folder."""
    (tmp_path / ".continue" / "sessions").mkdir(parents=True)
    return tmp_path / ".continue"


def test_a_session_is_read_in_order(store: Path) -> None:
    write(store, working_history())
    [each] = read_changed(Continue(), store)

    assert texts_of(each.session) == [
        ("user", "Why is the basket empty? 안녕"),
        ("system", "basket.py\nreturn []"),
        ("thinking", "It returns a new list."),
        ("assistant", "I will look."),
        ("tool", "Read basket.py\n\nreturn []"),
        ("tool", "Bash pytest\n\n1 failed"),
        ("assistant", "It makes a new list."),
    ]
    assert (each.session.session_id, each.session.project, each.skipped) == (SESSION, SHOP, ())
    assert each.session.title == "Why is the basket empty? 안녕"


def test_messages_keep_calls_models_tokens_and_the_origin_of_their_time(store: Path) -> None:
    write(store, working_history())
    asked, _, thought, answer, looked, ran, _ = read_changed(Continue(), store)[0].session.messages

    assert asked.timestamp == datetime.fromtimestamp(BEGAN / 1000, UTC)
    assert asked.more == {"attachments": ["image"], "time": "inferred"}
    assert thought.more["usage"] == {"input_tokens": 90, "output_tokens": 4}
    assert answer.more["model"] == "gpt-4o"
    assert looked.more["tool"]["params"] == {"filepath": f"{SHOP}/basket.py"}
    assert [call.more["tool"]["status"] for call in (looked, ran)] == ["completed", "failed"]


def test_an_answer_has_the_time_of_its_thoughts_and_a_stopped_call_is_rejected(store: Path) -> None:
    thought = {"reasoning": {"active": False, "text": "Hm.", "startAt": BEGAN + 5000}}
    stopped = tool_state("c1", "Bash", {"command": "make"}, "stopped", "canceled")
    write(store, [item("user", "Build it."), item("assistant", "I will.", states=[stopped], beside=thought)])
    own = read_changed(Continue(), store)[0].session.messages[1:]
    assert [each.role for each in own] == [Role.THINKING, Role.ASSISTANT, Role.TOOL]
    assert {each.timestamp for each in own} == {datetime.fromtimestamp(BEGAN / 1000 + 5, UTC)}
    assert not any("time" in each.more for each in own)
    assert own[-1].more["tool"]["status"] == "rejected"


def test_a_session_has_its_name_given_by_the_user(store: Path) -> None:
    write(store, working_history(), title="The empty basket", workspaceDirectory=f"file://{SHOP}")
    [each] = read_changed(Continue(), store)
    assert (each.session.title, each.session.project) == ("The empty basket", SHOP)


def test_the_separate_result_message_of_an_older_version_is_read(store: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "Read", "arguments": "{}"}}
    history = [
        item("assistant", "", toolCalls=[call]),
        item("tool", "return []", toolCallId="c1"),
        item("thinking", "Hm."),
    ]
    write(store, history)
    [each] = read_changed(Continue(), store)
    assert texts_of(each.session) == [("tool", "Read\n\nreturn []"), ("thinking", "Hm.")]


def test_a_running_call_is_pending(store: Path) -> None:
    write(store, [item("assistant", "Wait.", states=[tool_state("c1", "Bash", {"command": "make"}, "", "calling")])])
    assert read_changed(Continue(), store)[0].session.messages[-1].more["tool"]["status"] == "pending"


@pytest.mark.parametrize("content", ["", "[1]", '{"history": [', "\0"])
def test_damaged_sessions_are_reported_and_stop_nothing(store: Path, content: str) -> None:
    write(store, [*working_history(), item("poem", "Roses")])
    (store / "sessions" / "broken.json").write_text(content, encoding="utf-8")
    by_id = {each.session.session_id: each for each in read_changed(Continue(), store)}
    assert by_id["broken"].skipped[0].why == "not a JSON object"
    assert [skipped.what for skipped in by_id[SESSION].skipped] == ["1 x message poem"]
    assert len(by_id[SESSION].session.messages) == 7


def test_the_list_is_not_read_as_a_session(store: Path) -> None:
    write(store, working_history())
    assert json.loads((store / "sessions" / "sessions.json").read_text())[0]["sessionId"] == SESSION
    assert len(scan(Continue(), store)) == 1
