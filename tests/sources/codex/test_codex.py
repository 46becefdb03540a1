"""Codex: threads as a user sees them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import zstandard

from registry.domain import Role, Session
from registry.extras import install_command
from sources.base import FoundSession, Skipped
from sources.codex import rollout as codex_rollout
from sources.codex.reader import Codex
from sources.kit import zst
from tests.sources.codex.codex_files import CWD, Rollout, flat, legacy, paginated, thread_id, write
from tests.sources.reading import texts_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty folder of the client."""
    folder = tmp_path / "codex"
    (folder / "sessions").mkdir(parents=True)
    return folder


def read(rollout: Rollout, inherited: tuple[str, ...] = ()) -> Session:
    """Parse the records of a rollout, without a file."""
    reading = codex_rollout.Rollout(rollout.thread, copied=inherited, is_agent=True)
    for record in rollout.records:
        reading.read(record)
    return reading.session()


def read_changed(root: Path, seen: Mapping[str, str] | None = None) -> dict[str, FoundSession]:
    """Return the store's changed threads by id."""
    return {each.key: each for each in Codex().sessions(root, seen or {}) if isinstance(each, FoundSession)}


def test_a_legacy_thread_is_read_in_order_each_text_once() -> None:
    session = read(legacy())

    assert texts_of(session) == [
        ("system", "<permissions instructions>Ask first</permissions instructions>"),
        ("system", f"# AGENTS.md instructions for {CWD}\n\nUse tabs"),
        ("system", f"<environment_context>\n  <cwd>{CWD}</cwd>\n</environment_context>"),
        ("user", "Why does the basket lose its items?"),
        ("thinking", "**Reading** the basket"),
        ("tool", "shell bash -lc cat basket.py\n\nreturn []"),
        ("tool", "shell pytest\n\n1 failed"),
        ("assistant", "It makes a new list."),
    ]
    assert (session.session_id, session.project) == (thread_id(1), CWD)
    assert session.title == "Why does the basket lose its items?"
    assert session.meta == {}
    assert all(message.more.get("injected") is (message.role is Role.SYSTEM or None) for message in session.messages)
    answered = {"native_id": "t1:assistant 1", "model": "gpt-5.2-codex", "phase": "final_answer"}
    assert session.messages[-1].more == answered


def test_a_tool_call_keeps_its_parameters_result_and_outcome() -> None:
    first, second = (message.more["tool"] for message in read(legacy()).messages if "tool" in message.more)

    assert first == {
        "name": "shell",
        "params": {"command": ["bash", "-lc", "cat basket.py"]},
        "result": "return []",
        "status": "completed",
    }
    assert (second["result"], second["status"]) == ("1 failed", "failed")


def test_a_flat_thread_is_read_in_order() -> None:
    session = read(flat())

    assert texts_of(session) == [
        ("user", "Hello, 안녕"),
        ("tool", "shell ls\n\nbasket.py"),
        ("assistant", "One file."),
    ]
    assert session.session_id == thread_id(2)


def dates_of(root: Path) -> set[tuple[datetime | None, str | None]]:
    """Return (time, how it is known) of the only thread's messages."""
    (only,) = read_changed(root).values()
    return {(message.timestamp, message.more.get("time")) for message in only.session.messages}


def test_a_flat_thread_has_the_time_of_its_header(root: Path) -> None:
    write(root, flat())

    assert dates_of(root) == {(datetime(2025, 5, 4, 9, tzinfo=UTC), "inferred")}


def test_a_flat_thread_without_any_time_has_the_time_of_its_file(root: Path) -> None:
    rollout = flat()
    del rollout.records[0]["timestamp"]
    file = write(root, rollout)
    os.utime(file, (1_746_000_000, 1_746_000_000))

    assert dates_of(root) == {(datetime.fromtimestamp(1_746_000_000, UTC), "inferred")}


def test_a_paginated_thread_is_read_in_order_each_text_and_command_once() -> None:
    session = read(paginated())

    assert texts_of(session) == [
        ("user", "Fix the basket"),
        ("thinking", "Thinking about lists"),
        ("tool", "exec ls\n\nbasket.py"),
        ("tool", "exec pytest\n\n1 failed"),
        ("tool", "apply_patch basket.py"),
        ("tool", "registry.extract\n\nnothing"),
        ("tool", "update_plan\n\nPlan updated"),
        ("assistant", "Fixed."),
    ]
    assert session.messages[0].more["native_id"] == "t1:i1"
    assert session.messages[0].more["attachments"] == ["basket.png"]
    statuses = [message.more["tool"]["status"] for message in session.messages if "tool" in message.more]
    assert statuses == ["completed", "failed", "completed", "completed", "completed"]


def test_a_prompt_has_the_same_id_whenever_the_growing_file_of_a_paginated_thread_is_read() -> None:
    rollout = Rollout(thread_id(3), ordinals=True)
    rollout.meta(history_mode="paginated")
    rollout.turn("t1")
    rollout.message("user", "Fix the basket", id="msg_1")
    before = read(rollout)
    rollout.item("UserMessage", "i1", content=[{"type": "text", "text": "Fix the basket"}])
    after = read(rollout)

    assert before.messages == ()
    assert [(message.text, message.more["native_id"]) for message in after.messages] == [("Fix the basket", "t1:i1")]


def test_a_plan_in_a_legacy_thread_replaces_no_other_message() -> None:
    rollout = legacy()
    rollout.item("Plan", "p1", text="1. Test it. 2. Fix it.")

    assert texts_of(read(rollout)) == [*texts_of(read(legacy())), ("assistant", "1. Test it. 2. Fix it.")]


def test_a_legacy_thread_that_a_newer_version_continued_is_read_whole() -> None:
    rollout = legacy()
    rollout.turn("t2")
    rollout.item("UserMessage", "i1", "t2", content=[{"type": "text", "text": "Test it"}])
    rollout.event("user_message", message="Test it", images=[])
    rollout.item("AgentMessage", "i2", "t2", content=[{"type": "Text", "text": "Tested."}])
    rollout.message("assistant", "Tested.")

    assert texts_of(read(rollout)) == [*texts_of(read(legacy())), ("user", "Test it"), ("assistant", "Tested.")]


def test_a_thread_with_model_traffic_only_is_read_in_order() -> None:
    rollout = legacy()
    rollout.records = [record for record in rollout.records if record["type"] != "event_msg"]

    assert texts_of(read(rollout)) == texts_of(read(legacy()))


def test_text_that_an_editor_adds_before_the_request_is_separated() -> None:
    rollout = Rollout(thread_id(1))
    rollout.event(
        "user_message", message="# Context from my IDE\n## Open tabs\n- a.py\n## My request for Codex:\nFix it\n"
    )

    session = read(rollout)
    assert texts_of(session) == [("system", "# Context from my IDE\n## Open tabs\n- a.py"), ("user", "Fix it")]
    assert session.title == "Fix it"


def test_a_compaction_an_abort_and_an_error_become_messages() -> None:
    rollout = legacy()
    rollout.event("task_started", turn_id="t2")
    rollout.message("assistant", "We looked at baskets.")
    rollout.records[-1]["metadata"] = {"compaction_output": True}
    rollout.add("compacted", message="We looked at baskets.", replacement_history=[{"type": "message"}])
    rollout.event("turn_aborted", reason="interrupted")
    rollout.event("error", message="stream disconnected")

    *_, answer, compaction, aborted, error = read(rollout).messages
    assert answer.text == "It makes a new list."
    assert (compaction.text, compaction.more["compaction"]) == ("We looked at baskets.", {})
    assert aborted.text == "[Turn aborted: interrupted]"
    assert (error.role, error.text) == (Role.ERROR, "stream disconnected")


def test_rolled_back_turns_are_kept_and_marked() -> None:
    rollout = Rollout(thread_id(1))
    for text in ("one", "two", "three"):
        rollout.event("user_message", message=text)
        rollout.event("agent_message", message=f"answer {text}")
    rollout.event("thread_rolled_back", num_turns=2)
    rollout.event("user_message", message="four")
    rollout.event("thread_rolled_back", num_turns=1)
    rollout.event("user_message", message="five")

    standing = [message.text for message in read(rollout).messages if "superseded" not in message.more]
    assert standing == ["one", "answer one", "five"]
    assert len(read(rollout).messages) == 8


def test_a_call_without_a_result_and_a_result_without_a_call_are_kept() -> None:
    rollout = Rollout(thread_id(1))
    rollout.call("view_image", {"path": "a.png"}, "call_1")
    rollout.add("response_item", type="function_call_output", call_id="gone", output={"content": "x", "success": False})

    tools = [(tool["name"], tool["status"]) for tool in (each.more["tool"] for each in read(rollout).messages)]
    assert tools == [("view_image", "pending"), ("tool", "failed")]


def test_times_are_read_in_every_format() -> None:
    rollout = Rollout(thread_id(1))
    for written in ("2026-05-04T09:00:00Z", 1777885200, 1777885200000, None):
        rollout.event("user_message", message=str(written))
        rollout.records[-1]["timestamp"] = written

    messages = read(rollout).messages
    assert len({message.timestamp for message in messages}) == 1
    assert [message.more.get("time") for message in messages] == [None, None, None, "inferred"]


def test_a_thread_has_its_name_given_by_the_user(root: Path) -> None:
    write(root, legacy())
    names = [{"id": thread_id(1), "thread_name": "Old name"}, {"id": thread_id(1), "thread_name": "Basket bug"}]
    (root / "session_index.jsonl").write_text("\n".join(map(json.dumps, names)) + '\n{"torn', encoding="utf-8")
    assert read_changed(root)[thread_id(1)].session.title == "Basket bug"

    rollout = legacy()
    rollout.event("thread_name_updated", thread_name="Newest name")
    write(root, rollout, day="2026/05/05")
    assert read_changed(root)[thread_id(1)].session.title == "Newest name"


def test_a_thread_that_names_itself_as_its_origin_has_none() -> None:
    thread = Rollout(thread_id(5))
    thread.meta(forked_from_id=thread_id(5))
    assert read(thread).parent is None
    assert "relation" not in read(thread).meta


def test_a_fork_and_a_sub_agent_name_their_origin() -> None:
    fork = Rollout(thread_id(5))
    fork.meta(forked_from_id=thread_id(1))
    agent = Rollout(thread_id(6))
    agent.meta(source={"subagent": {"thread_spawn": {"parent_thread_id": thread_id(1)}}}, agent_nickname="Ada")

    assert (read(fork).parent, read(fork).meta["relation"]) == (thread_id(1), "fork")
    assert (read(agent).parent, read(agent).meta["relation"]) == (thread_id(1), "sub-agent")


@pytest.mark.parametrize("by_ordinal", [True, False])
def test_a_sub_agents_thread_omits_records_copied_from_its_caller(root: Path, by_ordinal: bool) -> None:
    caller = legacy()
    write(root, caller)
    agent = Rollout(thread_id(6), ordinals=True)
    start = {"subagent_history_start_ordinal": 1 + len(caller.records)} if by_ordinal else {}
    agent.meta(parent_thread_id=caller.thread, **start)
    agent.records += [{**record, "ordinal": number} for number, record in enumerate(caller.records, 1)]
    agent.turn("t7")
    agent.event("user_message", message="Find baskets")
    agent.event("agent_message", message="Three.")
    write(root, agent)

    session = read_changed(root)[agent.thread].session
    assert texts_of(session) == [("user", "Find baskets"), ("assistant", "Three.")]
    assert session.session_id == agent.thread


def test_a_sub_agents_first_record_that_is_not_copied_is_kept(root: Path) -> None:
    caller = legacy()
    write(root, caller)
    agent = Rollout(thread_id(6), ordinals=True)
    agent.meta(parent_thread_id=caller.thread, subagent_history_start_ordinal=1 + len(caller.records))
    agent.records += [{**record, "ordinal": number} for number, record in enumerate(caller.records, 1)]
    agent.event("user_message", message="Find baskets")
    write(root, agent)
    assert texts_of(read_changed(root)[agent.thread].session) == [("user", "Find baskets")]


def test_a_review_and_a_helper_thread_are_read_once(root: Path) -> None:
    turn: dict[str, Any] = {"turn_id": "t-review"}
    asker, reviewer = Rollout(thread_id(1)), Rollout(thread_id(6))
    asker.meta()
    asker.call("spawn_agent", {"message": "Count"}, "call_1", "started")
    asker.item("CollabAgentToolCall", "call_1", tool="spawn_agent", prompt="Count", status="completed")
    asker.item("EnteredReviewMode", "i1", target={"type": "uncommittedChanges"})
    reviewer.meta(parent_thread_id=asker.thread, source={"subagent": "review"})
    for thread in (asker, reviewer):  # the client writes the reviewer's turn into both
        thread.event("task_started", **turn)
        thread.item("UserMessage", "i2", **turn, content=[{"type": "text", "text": "Review the changes"}])
        thread.item("CommandExecution", "i3", **turn, command="git diff", exit_code=0, aggregated_output="+ a")
    asker.item("ExitedReviewMode", "i4", review_output={"findings": []})
    asker.item("AgentMessage", "i5", content=[{"type": "Text", "text": "One finding"}])
    for thread in (asker, reviewer):
        write(root, thread)

    threads = read_changed(root)
    assert texts_of(threads[reviewer.thread].session) == []
    assert threads[asker.thread].skipped == ()
    assert texts_of(threads[asker.thread].session) == [
        ("tool", "spawn_agent\n\nstarted"),
        ("user", "Review the changes"),
        ("tool", "exec git diff\n\n+ a"),
        ("assistant", "One finding"),
    ]


def continued(number: int, base: str, end: int, text: str = "Another way") -> Rollout:
    """Return a thread whose file has only its new part."""
    rollout = Rollout(thread_id(number), ordinals=True)
    rollout.meta(history_base={"thread_id": base, "end_ordinal_exclusive": end, "end_byte_offset": 1})
    rollout.item("UserMessage", "i9", f"t{number}9", content=[{"type": "text", "text": text}])
    return rollout


def test_a_thread_with_only_its_new_part_is_read_with_the_part_before(root: Path) -> None:
    write(root, paginated())
    write(root, continued(7, thread_id(3), 3))
    write(root, continued(8, thread_id(8), 3))

    threads = read_changed(root)
    assert texts_of(threads[thread_id(7)].session) == [("user", "Fix the basket"), ("user", "Another way")]
    assert threads[thread_id(7)].session.parent == thread_id(3)
    assert texts_of(threads[thread_id(8)].session) == [("user", "Another way")]


def test_records_after_the_end_of_the_part_before_are_omitted(root: Path) -> None:
    base = Rollout(thread_id(3), ordinals=True)
    base.meta(history_mode="paginated")
    for number, word in enumerate(("one", "two", "three"), 1):
        base.item("UserMessage", f"i{number}", f"t{number}", content=[{"type": "text", "text": word}])
    write(root, base)
    write(root, continued(7, base.thread, 3))
    assert [text for _, text in texts_of(read_changed(root)[thread_id(7)].session)] == ["one", "two", "Another way"]


def test_a_thread_without_its_beginning_is_reported_and_read_again_when_it_arrives(root: Path) -> None:
    write(root, continued(7, thread_id(3), 3))
    [partial] = read_changed(root).values()
    assert texts_of(partial.session) == [("user", "Another way")]
    assert partial.skipped == (
        Skipped(f"the beginning of {thread_id(7)}", f"it is in thread {thread_id(3)}, which is not here"),
    )
    assert read_changed(root, {partial.key: partial.fingerprint}) == {}

    write(root, paginated())
    again = read_changed(root, {partial.key: partial.fingerprint})
    assert len(texts_of(again[thread_id(7)].session)) == 2
    assert read_changed(root, {key: each.fingerprint for key, each in again.items()}) == {}


def test_the_files_of_a_long_thread_are_one_conversation(root: Path) -> None:
    write(root, legacy())
    second = Rollout(thread_id(1), at=legacy().at)
    second.meta()
    second.event("user_message", message="Next")
    write(root, second, segment=f"_{thread_id(99)}")

    [thread] = read_changed(root).values()
    assert [text for _, text in texts_of(thread.session, Role.USER)][-1] == "Next"


def test_a_thread_that_was_rewound_into_a_new_file_marks_the_turns_behind_the_point(root: Path) -> None:
    first = Rollout(thread_id(3), ordinals=True)
    first.meta(history_mode="paginated")
    for number, word in enumerate(("one", "two", "three"), 1):
        first.item("UserMessage", f"i{number}", f"t{number}", content=[{"type": "text", "text": word}])
    write(root, first)
    second = continued(3, first.thread, 3)
    second.at = first.at + timedelta(minutes=1)
    write(root, second, segment=f"_{thread_id(99)}")

    [thread] = read_changed(root).values()
    assert [(each.text, "superseded" in each.more) for each in thread.session.messages] == [
        ("one", False),
        ("two", False),
        ("three", True),
        ("Another way", False),
    ]


def test_a_fork_has_the_turns_that_stood_when_it_was_made(root: Path) -> None:
    first = Rollout(thread_id(3), ordinals=True)
    first.meta(history_mode="paginated")
    for number, word in enumerate(("one", "two", "three"), 1):
        first.item("UserMessage", f"i{number}", f"t{number}", content=[{"type": "text", "text": word}])
    write(root, first)
    rewound = continued(3, first.thread, 3)
    rewound.at = first.at + timedelta(minutes=1)
    write(root, rewound, segment=f"_{thread_id(99)}")
    write(root, continued(7, first.thread, 4, "Forked"))  # before the rewind
    write(root, continued(8, thread_id(99), 5, "Forked"))  # after it

    threads = read_changed(root)
    assert threads[thread_id(8)].skipped == ()
    told = {
        number: [(each.text, "superseded" in each.more) for each in threads[thread_id(number)].session.messages]
        for number in (7, 8)
    }
    assert told[7] == [("one", False), ("two", False), ("three", False), ("Forked", False)]
    assert told[8] == [("one", False), ("two", False), ("Another way", False), ("Forked", False)]


def compress(file: Path) -> Path:
    """Compress a file, and return the copy."""
    compressed = file.with_name(file.name + ".zst")
    compressed.write_bytes(zstandard.compress(file.read_bytes()))
    return compressed


def test_a_compressed_thread_is_the_same_thread(root: Path) -> None:
    file = write(root, legacy())
    plain = read_changed(root)
    compress(file)
    assert read_changed(root) == plain  # both exist for a moment

    file.unlink()
    [thread] = read_changed(root).values()
    assert (thread.key, thread.session) == (thread_id(1), plain[thread_id(1)].session)


@pytest.mark.parametrize("damage", [b"", b"(\xb5/\xfd", b"garbage" * 10, zstandard.compress(b"{}" * 10)[:-5]])
def test_a_damaged_compressed_thread_is_reported_and_the_others_are_read(root: Path, damage: bytes) -> None:
    file = write(root, legacy())
    write(root, flat())
    compress(file).write_bytes(damage)
    file.unlink()

    threads = read_changed(root)
    assert threads[thread_id(2)].session.messages
    assert threads[thread_id(1)].skipped


def test_without_the_library_a_compressed_thread_is_reported_and_the_others_are_read(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zst, "HAS_ZST", False)
    file = write(root, legacy())
    write(root, flat())
    compressed = compress(file)
    file.unlink()

    results = list(Codex().sessions(root, {}))
    assert Skipped(str(compressed), f"compressed; to read it: {install_command('zst')}") in results
    assert [each.key for each in results if isinstance(each, FoundSession)] == [thread_id(2)]


def test_an_archived_thread_is_not_read_twice(root: Path) -> None:
    file = write(root, legacy())
    before = read_changed(root)[thread_id(1)].session
    file.unlink()
    write(root, legacy(), day="")

    [thread] = read_changed(root).values()
    assert (thread.key, thread.session) == (thread_id(1), before)


def test_a_file_deleted_while_reading_is_reported_and_the_others_are_read(root: Path) -> None:
    files = {thread_id(number): write(root, legacy(number)) for number in (1, 2, 3)}
    results = Codex().sessions(root, {})
    first = next(results)
    assert isinstance(first, FoundSession)
    gone = next(file for key, file in files.items() if key != first.key)
    gone.unlink()

    assert [each for each in results if isinstance(each, Skipped)] == [Skipped(str(gone), "no such file or directory")]


def test_a_task_that_one_agent_gave_another_is_known() -> None:
    reading = codex_rollout.Rollout(thread_id(1))
    rollout = Rollout(thread_id(1))
    rollout.add("inter_agent_communication_metadata", trigger_turn=True)
    task = {"author": "/root", "recipient": "/root/counter", "content": [{"type": "input_text", "text": "Count"}]}
    rollout.add("response_item", type="agent_message", **task)
    for record in rollout.records:
        reading.read(record)

    assert reading.skipped() == ()
    assert texts_of(reading.session()) == [("system", "Count")]


def test_unknown_records_are_counted_and_their_text_is_kept() -> None:
    reading = codex_rollout.Rollout(thread_id(1))
    rollout = Rollout(thread_id(1))
    rollout.add("brand_new")
    rollout.event("brand_new")
    rollout.add("response_item", type="brand_new", content=[{"type": "input_text", "text": "A task"}])
    rollout.item("BrandNew", "i1", content=[{"type": "Text", "text": "A result"}])
    for record in rollout.records:
        reading.read(record)

    assert {skipped.what for skipped in reading.skipped()} == {
        "1 x record brand_new",
        "1 x event brand_new",
        "1 x response brand_new",
        "1 x item BrandNew",
    }
    assert texts_of(reading.session()) == [("system", "A task"), ("system", "A result")]


def test_a_responses_tokens_are_stored_once_with_the_next_answer() -> None:
    def token_count(given: int, output: int) -> dict[str, Any]:
        total = {"input_tokens": given, "cached_input_tokens": given * 2 // 5, "output_tokens": output}
        return {"type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": total}}}

    call = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    rollout = codex_rollout.Rollout("id")
    for record in (
        {"type": "response_item", "payload": call},
        token_count(100, 50),
        token_count(100, 50),
        {"type": "response_item", "payload": said},
        {"type": "event_msg", "payload": {"type": "agent_message", "message": "Done."}},
        {"type": "event_msg", "payload": {"type": "token_count", "info": None}},
        token_count(200, 60),
    ):
        rollout.read(record)
    [usage] = [message.more["usage"] for message in rollout.session().messages if "usage" in message.more]
    assert usage == {"input_tokens": 120, "output_tokens": 60, "cache_read_input_tokens": 80}
