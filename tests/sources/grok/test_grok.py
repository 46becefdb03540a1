"""Grok CLI: sessions as a user sees them."""

from __future__ import annotations

from pathlib import Path

from sources.grok.reader import GrokCli
from tests.sources.grok.grok_files import SESSION, SHOP, asked, chunk, done, read, updates, working_session, write
from tests.sources.reading import fingerprints_of, read_changed, texts_of


def test_a_session_is_read_in_order(tmp_path: Path) -> None:
    write(tmp_path, working_session())
    [each] = read_changed(GrokCli(), tmp_path)

    assert texts_of(each.session) == [
        ("user", "Why is the basket empty? 안녕"),
        ("thinking", "It returns a new list."),
        ("assistant", "I will look."),
        ("tool", "read_file basket.py\n\nreturn []"),
        ("tool", "run_terminal_command pytest\n\n1 failed"),
        ("assistant", "It makes a new list."),
    ]
    assert (each.session.session_id, each.session.project, each.skipped) == (SESSION, SHOP, ())
    assert (each.session.title, each.session.parent) == ("The empty basket", None)


def test_messages_keep_times_models_tokens_and_outcomes() -> None:
    question, thought, answer, looked, ran, _ = read(working_session()).messages
    assert question.timestamp
    assert thought.timestamp
    assert (thought.timestamp - question.timestamp).total_seconds() == 1
    assert thought.more["usage"] == {"input_tokens": 100, "output_tokens": 50}
    assert answer.more["model"] == "grok-4.6"
    assert [call.more["tool"]["status"] for call in (looked, ran)] == ["completed", "failed"]
    assert not any("time" in message.more for message in read(working_session()).messages)


def test_rewound_turns_are_marked_and_their_replacements_are_not() -> None:
    rewind = {"sessionUpdate": "rewind_marker", "target_prompt_index": 1}
    turns = (
        asked("First"),
        chunk("Yes"),
        done(),
        asked("Wrong", 1),
        chunk("No"),
        rewind,
        asked("Right", 1),
        chunk("So"),
    )
    assert [message.text for message in read(updates(*turns)).messages if message.more.get("superseded")] == [
        "Wrong",
        "No",
    ]


def test_a_renamed_session_is_read_again_and_a_fork_names_its_origin(tmp_path: Path) -> None:
    write(tmp_path, working_session())
    seen = fingerprints_of(GrokCli(), tmp_path)
    write(tmp_path, working_session(), generated_title="Renamed by hand", parent_session_id="origin")
    [each] = read_changed(GrokCli(), tmp_path, seen)
    assert (each.session.title, each.session.parent) == ("Renamed by hand", "origin")
    assert each.session.meta["relation"] == "fork"


def test_a_summary_of_the_history_is_a_system_message_and_unknown_updates_are_counted(tmp_path: Path) -> None:
    compacted = {"sessionUpdate": "auto_compact_completed", "summary_preview": "About baskets."}
    write(tmp_path, updates(asked("Hi"), compacted, {"sessionUpdate": "poem"}))
    [each] = read_changed(GrokCli(), tmp_path)
    assert texts_of(each.session) == [("user", "Hi"), ("system", "About baskets.")]
    assert each.session.messages[1].more["injected"] is True
    assert [skipped.what for skipped in each.skipped] == ["1 x update poem"]
