"""Zed: threads as a user sees them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from sources.zed.reader import Zed
from tests.sources.reading import fingerprints_of, read_changed, texts_of
from tests.sources.zed.zed_files import (
    AT,
    LATER,
    SHOP,
    THREAD,
    agent,
    call,
    result,
    thread,
    user,
    working_messages,
    write,
)


@pytest.mark.parametrize("kind", ["zstd", "json"])
def test_a_thread_is_read_in_order_compressed_or_not(tmp_path: Path, kind: str) -> None:
    store = write(tmp_path, THREAD, thread(working_messages()), kind=kind)
    [each] = read_changed(Zed(), store)

    assert texts_of(each.session) == [
        ("user", "Why is the basket empty? 안녕"),
        ("system", "return []"),
        ("thinking", "It returns a new list."),
        ("assistant", "I will look."),
        ("tool", "read_file basket.py\n\nreturn []"),
        ("tool", "terminal pytest\n\n1 failed"),
        ("assistant", "It makes a new list."),
    ]
    assert (each.session.session_id, each.session.project, each.skipped) == (THREAD, SHOP, ())
    assert each.session.title == "The empty basket"
    asked, system, thought, _, looked, ran, _ = each.session.messages
    assert asked.timestamp == datetime.fromisoformat(AT)
    assert asked.more["attachments"] == [f"{SHOP}/basket.py"]
    assert system.more["usage"] == {"input_tokens": 90, "output_tokens": 4}
    assert thought.more["model"] == "claude-sonnet-4-6"
    assert [call.more["tool"]["status"] for call in (looked, ran)] == ["completed", "failed"]


def test_a_thread_of_zeds_first_year_is_read(tmp_path: Path) -> None:
    messages = [
        {"id": 0, "role": "user", "segments": [{"type": "text", "text": "Why?"}], "context": "basket.py"},
        {
            "id": 1,
            "role": "assistant",
            "segments": [{"type": "thinking", "text": "Hm."}, {"type": "text", "text": "Because."}],
            "tool_uses": [{"id": "c1", "name": "read_file", "input": {"path": "a.py"}}],
            "tool_results": [{"tool_use_id": "c1", "is_error": False, "content": "return []"}],
        },
    ]
    store = write(tmp_path, THREAD, thread(messages, version="0.2.0"))
    assert texts_of(read_changed(Zed(), store)[0].session) == [
        ("user", "Why?"),
        ("system", "basket.py"),
        ("thinking", "Hm."),
        ("assistant", "Because."),
        ("tool", "read_file a.py\n\nreturn []"),
    ]


def test_zeds_earliest_format_is_read_with_its_roles(tmp_path: Path) -> None:
    messages = [{"id": 0, "role": "user", "text": "Why?"}, {"id": 1, "role": "assistant", "text": "Because."}]
    store = write(tmp_path, THREAD, thread(messages, version="0.1.0"))
    assert texts_of(read_changed(Zed(), store)[0].session) == [("user", "Why?"), ("assistant", "Because.")]


def test_an_image_result_leaves_a_mark_and_a_call_without_a_result_is_pending(tmp_path: Path) -> None:
    seen = result("c1", [{"Text": "the page"}, {"Image": {"source": "AA"}}])
    store = write(tmp_path, THREAD, thread([agent(call("c1", "look"), call("c2", "terminal"), results=seen)]))
    looked, ran = (each.more["tool"] for each in read_changed(Zed(), store)[0].session.messages)
    assert (looked["result"], looked["status"]) == ("the page\n[image]", "completed")
    assert (ran["result"], ran["status"]) == (None, "pending")


def test_a_sub_agents_thread_names_its_caller(tmp_path: Path) -> None:
    store = write(tmp_path, "agent", thread([user({"Text": "Look"})]), parent_id=THREAD)
    [each] = read_changed(Zed(), store)
    assert (each.session.parent, each.session.meta["relation"]) == (THREAD, "sub-agent")


def test_only_changed_threads_are_read_again(tmp_path: Path) -> None:
    store = write(tmp_path, THREAD, thread([user({"Text": "Why?"})]))
    write(tmp_path, "other", thread([user({"Text": "Hi"})]))
    seen, stamp = fingerprints_of(Zed(), store), Zed().stamp(store)
    assert read_changed(Zed(), store, seen) == []
    assert Zed().stamp(store) == stamp

    write(tmp_path, "other", thread([user({"Text": "Hi"}), agent({"Text": "Hello"})]), at=LATER)
    assert Zed().stamp(store) != stamp
    assert [texts_of(each.session)[-1] for each in read_changed(Zed(), store, seen)] == [("assistant", "Hello")]


@pytest.mark.parametrize(
    ("kept", "kind"),
    [(b"\x28\xb5\x2f\xfd rubbish", "zstd"), (b"{", "json"), (b"", "zstd"), (b"[]", "json"), (b"{}", "poem")],
)
def test_a_damaged_thread_is_reported_and_stops_nothing(tmp_path: Path, kept: bytes, kind: str) -> None:
    write(tmp_path, "broken", kept, kind=kind, at=LATER)
    store = write(tmp_path, THREAD, thread([*working_messages(), {"Poem": {}}, agent({"Rose": 1})]))
    by_id = {each.session.session_id: each for each in read_changed(Zed(), store)}
    assert by_id["broken"].skipped
    assert len(by_id[THREAD].session.messages) == 7
    assert {skipped.why for skipped in by_id[THREAD].skipped} == {"unknown to this reader"}
