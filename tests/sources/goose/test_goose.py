"""Goose: sessions as a user sees them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from sources.base import Skipped
from sources.goose.reader import Goose
from tests.sources.goose.goose_files import SESSION, SHOP, call, message, text, working_messages, write
from tests.sources.reading import fingerprints_of, read_changed, scan, texts_of

TALK = [
    ("user", "Why is the basket empty? 안녕"),
    ("user", "[image/png]"),
    ("thinking", "It returns a new list."),
    ("assistant", "I will look."),
    ("tool", "developer__text_editor basket.py\n\nreturn []"),
    ("tool", "developer__shell pytest\n\n1 failed"),
    ("system", "A summary"),
    ("assistant", "It makes a new list."),
]


def test_a_session_is_read_in_order(tmp_path: Path) -> None:
    store = write(tmp_path, working_messages(), name="The empty basket")
    [each] = read_changed(Goose(), store)

    assert texts_of(each.session) == TALK
    assert (each.session.session_id, each.session.project, each.skipped) == (SESSION, SHOP, ())
    assert each.session.title == "The empty basket"
    _, _, thought, answer, looked, ran, summary, _ = each.session.messages
    assert thought.more == {"native_id": "m1", "model": "fake"}
    assert answer.more["native_id"] == "m1:1"
    assert [call.more["tool"]["status"] for call in (looked, ran)] == ["completed", "failed"]
    assert summary.more["injected"]
    assert all(each.timestamp and "time" not in each.more for each in each.session.messages)


def test_refused_and_failed_calls_have_a_reason(tmp_path: Path) -> None:
    unknown = {"type": "toolRequest", "id": "c1", "toolCall": {"status": "error", "error": "no such tool"}}
    late = {"type": "toolResponse", "id": "c2", "toolResult": {"status": "error", "error": "timed out"}}
    store = write(tmp_path, [message("assistant", unknown, call("c2", "shell"), seconds=1), message("user", late)])
    tools = [each.more["tool"] for each in read_changed(Goose(), store)[0].session.messages]
    assert [(tool["status"], tool["result"]) for tool in tools] == [("failed", "no such tool"), ("failed", "timed out")]


def test_only_changed_sessions_are_read_again(tmp_path: Path) -> None:
    store = write(tmp_path, working_messages())
    write(tmp_path, [message("user", text("Hi"))], session="other")
    seen, stamp = fingerprints_of(Goose(), store), Goose().stamp(store)
    assert read_changed(Goose(), store, seen) == []

    write(tmp_path, [message("user", text("Hi")), message("assistant", text("Hello"), seconds=9)], session="other")
    assert Goose().stamp(store) != stamp
    assert [texts_of(each.session)[-1] for each in read_changed(Goose(), store, seen)] == [("assistant", "Hello")]


def test_a_sub_agents_session_names_its_caller(tmp_path: Path) -> None:
    store = write(tmp_path, [message("user", text("Look"))], session="agent", parent_session_id=SESSION)
    [each] = read_changed(Goose(), store)
    assert (each.session.parent, each.session.meta["relation"]) == (SESSION, "sub-agent")


def test_damaged_messages_are_reported_and_stop_nothing(tmp_path: Path) -> None:
    broken = {**message("user", seconds=20), "content": "[{"}
    store = write(tmp_path, [broken, *working_messages(), message("user", {"type": "poem"}, seconds=30)])
    [each] = read_changed(Goose(), store)
    assert texts_of(each.session) == TALK
    assert {(skipped.what, skipped.why) for skipped in each.skipped} == {
        (f"1 x message of session {SESSION}", "not a list of parts"),
        (f"1 x block poem of session {SESSION}", "unknown to this reader"),
    }


def test_a_database_without_newer_columns_is_read_and_another_one_is_reported(tmp_path: Path) -> None:
    store = write(tmp_path, working_messages())
    with closing(sqlite3.connect(store)) as database, database:
        for column in ("message_id", "metadata_json"):
            database.execute(f"ALTER TABLE messages DROP COLUMN {column}")
    assert len(read_changed(Goose(), store)[0].session.messages) == len(TALK)
    with closing(sqlite3.connect(store)) as database, database:
        database.execute("ALTER TABLE messages DROP COLUMN content_json")
    [skipped] = scan(Goose(), store)
    assert isinstance(skipped, Skipped)
