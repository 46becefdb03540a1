"""Qwen Code: chats as a user sees them."""

from __future__ import annotations

from pathlib import Path

import pytest

from registry.domain import Role, Session
from sources.base import Skipped
from sources.qwen.reader import QwenChat as Reading
from sources.qwen.reader import QwenCode
from tests.sources.qwen.qwen_files import SESSION, SHOP, Chat, call, working_chat, write
from tests.sources.reading import read_changed, texts_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The client's folder without a chat."""
    folder = tmp_path / "home" / ".qwen"
    (folder / "projects").mkdir(parents=True)
    return folder


def read(chat: Chat) -> Session:
    """Parse the records of a chat, without a file."""
    reading = Reading(chat.session)
    for record in chat.lines:
        reading.read(record)
    return reading.session()


def test_a_chat_is_read_in_order(root: Path) -> None:
    write(root, working_chat())
    [each] = read_changed(QwenCode(), root)

    assert texts_of(each.session) == [
        ("user", "Why is @basket.py empty? 안녕"),
        (
            "system",
            "--- Content from referenced files ---\nContent from basket.py:\nreturn []\n--- End of content ---",
        ),
        ("thinking", "It returns a new list."),
        ("assistant", "I will look."),
        ("tool", "read_file basket.py\n\nreturn []"),
        ("tool", "run_shell_command pytest\n\n1 failed"),
        ("assistant", "It makes a new list."),
    ]
    assert (each.session.session_id, each.session.project) == (SESSION, SHOP)
    assert each.session.title == "Why is @basket.py empty? 안녕"
    assert each.skipped == ()


def test_messages_keep_ids_models_times_tokens_and_outcomes() -> None:
    asked, system, thought, answer, looked, ran, _ = read(working_chat()).messages

    assert asked.more == {"native_id": "r1"}
    assert system.more == {"native_id": "r1:context", "injected": True}
    assert thought.more["usage"] == {"input_tokens": 90, "output_tokens": 4}
    assert answer.more == {"native_id": "r3", "model": "qwen3-coder"}
    assert (looked.more["native_id"], looked.more["tool"]["status"]) == ("c1", "completed")
    assert ran.more["tool"]["status"] == "failed"
    assert all(message.timestamp and "time" not in message.more for message in (asked, thought, looked))


def test_rewound_messages_are_marked_and_their_replacements_are_not() -> None:
    chat = Chat()
    chat.user("First")
    kept = chat.parent
    chat.assistant({"text": "Wrong way"})
    chat.parent = kept
    chat.noted("rewind", truncatedCount=1)
    chat.assistant({"text": "Right way"})

    assert [(message.text, message.more.get("superseded", False)) for message in read(chat).messages] == [
        ("First", False),
        ("Wrong way", True),
        ("Right way", False),
    ]


def test_a_chain_with_a_lost_line_marks_nothing() -> None:
    chat = working_chat()
    del chat.lines[3]
    assert not any(message.more.get("superseded") for message in read(chat).messages)


def test_a_name_is_the_title_and_a_fork_names_its_origin() -> None:
    chat = working_chat()
    chat.noted("custom_title", customTitle="The empty basket", titleSource="manual")
    chat.user("And?", forkedFrom={"sessionId": "origin", "messageUuid": "r0"})
    session = read(chat)
    assert (session.title, session.parent) == ("The empty basket", "origin")


def test_a_notice_of_the_client_is_not_a_user_message() -> None:
    chat = Chat()
    chat.user("The task is done", provenance="system", subtype="notification")
    [message] = read(chat).messages
    assert (message.role, message.more["injected"]) == (Role.SYSTEM, True)


def test_a_reminder_of_the_client_before_a_prompt_is_separated() -> None:
    reminder = "<system-reminder>\n1 background agent was restored.\n</system-reminder>"
    chat = Chat()
    chat.user(f"{reminder}\n\n", "And now?")
    assert texts_of(read(chat)) == [("user", "And now?"), ("system", reminder)]


def test_a_sub_agents_chat_is_linked_to_its_session(root: Path) -> None:
    chat = Chat("agent-explore-7f3c")
    chat.user("Look around")
    write(root, chat, agent_of=SESSION)
    [each] = read_changed(QwenCode(), root)
    assert (each.session.session_id, each.session.parent) == ("agent-explore-7f3c", SESSION)
    assert each.session.meta["relation"] == "sub-agent"


def test_damaged_and_unknown_lines_are_reported_and_stop_nothing(root: Path) -> None:
    chat = working_chat()
    chat.add("poem")
    chat.noted("moon_phase")
    file = write(root, chat)
    file.write_text(file.read_text(encoding="utf-8") + '{"type": "user", "mess', encoding="utf-8")
    (file.parent / "empty.jsonl").touch()

    by_id = {each.session.session_id: each for each in read_changed(QwenCode(), root)}
    assert len(by_id[SESSION].session.messages) == 7
    assert {(skipped.what, skipped.why) for skipped in by_id[SESSION].skipped} == {
        (f"line {len(chat.lines) + 1}", "incomplete line"),
        ("1 x record poem", "unknown to this reader"),
        ("1 x record system moon_phase", "unknown to this reader"),
    }
    assert by_id["empty"].skipped == (Skipped(str(file.parent / "empty.jsonl"), "no conversation in it"),)


def test_answers_in_an_unknown_form_are_reported(root: Path) -> None:
    chat = Chat()
    chat.user("First")
    chat.add("assistant", message={"role": "model", "pieces": [{"text": "Renamed"}]})
    write(root, chat)
    [each] = read_changed(QwenCode(), root)
    assert each.skipped == (Skipped("1 x message without parts", "unknown to this reader"),)


def test_a_compaction_is_kept_with_its_summary() -> None:
    chat = Chat()
    chat.user("First")
    summary = {"role": "user", "parts": [{"text": "Only the till is left."}]}
    chat.noted("chat_compression", compressedHistory=[summary, {"role": "model", "parts": [{"text": "Got it."}]}])
    chat.noted("chat_compression")
    _, compacted, without_summary = read(chat).messages
    assert (compacted.text, compacted.more["compaction"]) == ("Only the till is left.", {})
    assert (without_summary.text, without_summary.more["injected"]) == ("Conversation compacted", True)


def test_a_call_without_a_result_is_pending() -> None:
    chat = Chat()
    chat.assistant(call("c1", "run_shell_command", command="make"))
    [message] = read(chat).messages
    assert message.more["tool"]["status"] == "pending"


def test_a_call_stopped_by_the_user_is_rejected() -> None:
    chat = Chat()
    chat.assistant(call("c1", "run_shell_command", command="make"))
    chat.result("c1", "stopped", "cancelled")
    [message] = read(chat).messages
    assert (message.more["tool"]["status"], message.more["tool"]["result"]) == ("rejected", "stopped")
