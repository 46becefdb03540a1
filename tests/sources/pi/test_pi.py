"""Pi: sessions as a user sees them."""

from __future__ import annotations

from pathlib import Path

from sources.pi.reader import Pi
from tests.sources.pi.pi_files import SESSION, SHOP, Dialogue, read, text, working_session, write
from tests.sources.reading import read_changed, texts_of


def test_a_session_is_read_in_order(tmp_path: Path) -> None:
    write(tmp_path, working_session())
    [each] = read_changed(Pi(), tmp_path)

    assert texts_of(each.session) == [
        ("user", "Why is the basket empty? 안녕"),
        ("thinking", "It returns a new list."),
        ("assistant", "I will look."),
        ("tool", "read basket.py\n\nreturn []"),
        ("tool", "bash pytest\n\n1 failed"),
        ("assistant", "It makes a new list."),
    ]
    assert (each.session.session_id, each.session.project, each.skipped) == (SESSION, SHOP, ())
    question, thought, answer, looked, ran, _ = each.session.messages
    assert question.more == {"native_id": "e2", "attachments": ["image/png"]}
    assert thought.more["usage"] == {"input_tokens": 100, "output_tokens": 50, "cache_read_input_tokens": 0}
    assert (answer.more["native_id"], answer.more["model"]) == ("e3", "claude-sonnet-4-6")
    assert [call.more["tool"]["status"] for call in (looked, ran)] == ["completed", "failed"]


def test_an_abandoned_branch_is_marked_and_followed_by_its_summary() -> None:
    talk = Dialogue()
    talk.says("user", text("First"))
    root = talk.parent
    talk.answers(text("Wrong way"))
    talk.parent = root
    talk.add("branch_summary", fromId="e2", summary="Tried the wrong way.")
    talk.answers(text("Right way"))
    assert [(message.text, message.more.get("superseded", False)) for message in read(talk.lines).messages] == [
        ("First", False),
        ("Wrong way", True),
        ("Tried the wrong way.", False),
        ("Right way", False),
    ]


def test_a_name_is_the_title_and_a_fork_names_its_origin() -> None:
    talk = working_session()
    talk.lines[0]["parentSession"] = f"{SHOP}/2026-11-24T10-00-00-000Z_origin.jsonl"
    talk.add("session_info", name="The empty basket")
    session = read(talk.lines)
    assert (session.title, session.parent, session.meta["relation"]) == ("The empty basket", "origin", "fork")


def test_user_commands_errors_and_compactions_become_messages(tmp_path: Path) -> None:
    talk = Dialogue()
    talk.add("message", message={"role": "bashExecution", "command": "make", "output": "no rule", "exitCode": 2})
    talk.answers(stopReason="error", errorMessage="overloaded")
    talk.add("compaction", summary="About make.")
    talk.add("poem")
    write(tmp_path, talk)
    [each] = read_changed(Pi(), tmp_path)
    assert texts_of(each.session) == [
        ("tool", "bash make\n\nno rule"),
        ("error", "overloaded"),
        ("system", "About make."),
    ]
    assert each.session.messages[0].more["tool"]["status"] == "failed"
    assert [skipped.what for skipped in each.skipped] == ["1 x entry poem"]
