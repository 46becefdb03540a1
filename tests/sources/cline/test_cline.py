"""Cline and Roo Code: conversations as a user sees them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sources.base import Paths
from sources.cline.reader import Cline, RooCode
from tests.sources.cline.cline_files import (
    BEGIN,
    SESSION,
    SHOP,
    TASK,
    message,
    shown,
    text,
    working_session,
    working_view,
    write_session,
    write_task,
)
from tests.sources.reading import fingerprints_of, read_changed, texts_of


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The client's empty folder."""
    folder = tmp_path / ".cline" / "data"
    folder.mkdir(parents=True)
    return folder


def test_a_task_is_read_as_its_user_saw_it(store: Path) -> None:
    write_task(store, working_view())
    [each] = read_changed(Cline(), store)

    assert texts_of(each.session) == [
        ("user", "Why is the basket empty? 안녕"),
        ("thinking", "It returns a new list."),
        ("assistant", "I will look."),
        ("tool", "readFile basket.py\n\nreturn []"),
        ("tool", "execute_command pytest\n\n1 failed\n\nin 0.1 s"),
        ("assistant", "Shall I mend it?"),
        ("user", "Yes"),
        ("error", "quota"),
        ("assistant", "It makes a new list."),
    ]
    assert (each.session.session_id, each.session.project, each.skipped) == (TASK, SHOP, ())
    assert each.session.title == "Why is the basket empty? 안녕"
    asked, thought, answer, _, ran, *_ = each.session.messages
    assert asked.more["attachments"] == ["image"]
    assert thought.more["usage"]["input_tokens"] == 90
    assert answer.more["model"] == "claude-sonnet-4-6"
    assert ran.more["tool"] == {
        "name": "execute_command",
        "params": {"command": "pytest"},
        "result": "1 failed\nin 0.1 s",
        "status": "completed",
    }
    assert not any("time" in each.more for each in each.session.messages)


def test_a_session_of_the_command_line_is_read_in_order(store: Path) -> None:
    write_session(store, working_session(), metadata={"title": "The empty basket"})
    [each] = read_changed(Cline(), store)

    assert texts_of(each.session) == [
        ("user", "Why is the basket empty? 안녕"),
        ("thinking", "It returns a new list."),
        ("assistant", "I will look."),
        ("tool", "read_files basket.py\n\nreturn []"),
        ("tool", "run pytest\n\n1 failed"),
        ("assistant", "It makes a new list."),
    ]
    assert (each.session.session_id, each.session.project, each.skipped) == (SESSION, SHOP, ())
    assert each.session.title == "The empty basket"
    _, thought, answer, looked, ran, _ = each.session.messages
    assert thought.more["usage"] == {"input_tokens": 90, "output_tokens": 4}
    assert answer.more == {"native_id": "m1:1", "model": "fake"}
    seconds = [round(each.timestamp.timestamp()) - BEGIN // 1000 for each in each.session.messages if each.timestamp]
    assert seconds == [0, 1, 1, 1, 3, 5]
    assert not any("time" in each.more for each in each.session.messages)
    assert [call.more["tool"]["status"] for call in (looked, ran)] == ["completed", "failed"]


def test_an_agents_messages_are_linked_to_its_callers_session(store: Path) -> None:
    write_session(store, working_session())
    write_session(store, [message("user", text("Look around"))], agent="scout")
    agent = next(each for each in read_changed(Cline(), store) if each.session.session_id == "scout")
    assert (agent.session.parent, agent.session.meta["relation"]) == (SESSION, "sub-agent")


def test_only_changed_and_renamed_tasks_are_read_again(store: Path) -> None:
    write_task(store, working_view())
    write_session(store, working_session())
    seen = fingerprints_of(Cline(), store)
    assert read_changed(Cline(), store, seen) == []

    write_session(store, working_session(), metadata={"title": "Another name"})
    assert [each.session.title for each in read_changed(Cline(), store, seen)] == ["Another name"]


def test_damaged_tasks_are_reported_and_stop_nothing(store: Path) -> None:
    write_task(store, [*working_view(), shown("poem", "Roses", 20)])
    broken = store / "tasks" / "2"
    broken.mkdir()
    (broken / "ui_messages.json").write_text('[{"ts": 1', encoding="utf-8")
    (store / "tasks" / "3").mkdir()

    by_id = {each.session.session_id: each for each in read_changed(Cline(), store)}
    assert by_id[TASK].session.messages[-1].text == "Roses"
    assert [(skipped.what, skipped.why) for skipped in by_id[TASK].skipped] == [
        ("1 x message poem", "unknown to this reader")
    ]
    assert by_id["2"].skipped[0].why == "no list of messages in it"


def test_the_stores_of_all_editors_are_found_under_their_client(tmp_path: Path) -> None:
    editor = tmp_path / ".config" / "Code" / "User" / "globalStorage"
    for name in ("saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline"):
        write_task(editor / name, working_view())
    write_session(tmp_path / ".cline" / "data", working_session())
    paths = Paths(tmp_path, {})

    assert list(Cline().find(paths)) == [tmp_path / ".cline" / "data", editor / "saoudrizwan.claude-dev"]
    assert list(RooCode().find(paths)) == [editor / "rooveterinaryinc.roo-cline"]
    roo = editor / "rooveterinaryinc.roo-cline"
    assert list(RooCode().find(Paths(tmp_path / "other", {"CTXR_ROO_CODE_DIR": str(roo)}))) == [roo]


def test_roo_codes_first_text_is_the_users_question(tmp_path: Path) -> None:
    folder = write_task(tmp_path, [shown("text", "Why?"), shown("text", "Because.", 1)])
    (folder / "history_item.json").write_text('{"id": "1", "workspace": "/home/ann/till"}', encoding="utf-8")
    [each] = read_changed(RooCode(), tmp_path)
    assert texts_of(each.session) == [("user", "Why?"), ("assistant", "Because.")]
    assert each.session.project == "/home/ann/till"
    assert read_changed(RooCode(), tmp_path, fingerprints_of(RooCode(), tmp_path)) == []
