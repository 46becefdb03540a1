"""Kimi Code: sessions as a user sees them."""

from __future__ import annotations

from pathlib import Path

from sources.kimi.reader import KimiCode
from tests.sources.kimi.kimi_files import SESSION, SHOP, asked, read, working_session, write
from tests.sources.reading import read_changed, texts_of


def test_a_session_is_read_in_order_and_its_sub_agent_is_linked_to_it(tmp_path: Path) -> None:
    write(tmp_path, working_session())
    write(tmp_path, [asked("Look for baskets", kind="system_trigger", name="subagent")], "agent-0")
    by_id = {each.session.session_id: each for each in read_changed(KimiCode(), tmp_path)}
    each, helper = by_id[SESSION], by_id[f"{SESSION}-agent-0"].session
    assert texts_of(each.session) == [
        ("user", "Why is the basket empty? 안녕"),
        ("system", "<system-reminder>\nToday\n</system-reminder>"),
        ("thinking", "Hm."),
        ("assistant", "I look."),
        ("tool", "Bash pytest\n\n1 failed"),
        ("assistant", "It makes a new list."),
    ]
    assert (each.session.project, each.session.title, each.skipped) == (SHOP, "Why is the basket empty? 안녕", ())
    question, _, thought, answer, ran, _ = each.session.messages
    assert question.more["attachments"] == ["image"]
    assert thought.more["usage"]["input_tokens"] == 100
    assert answer.more == {"native_id": "u2", "model": "k2"}
    assert ran.more["tool"]["status"] == "failed"
    assert (texts_of(helper), helper.parent) == ([("user", "Look for baskets")], SESSION)


def test_undone_turns_are_marked_and_a_compaction_becomes_a_message() -> None:
    undo = {"type": "context.undo", "count": 1}
    compacted = {"type": "context.apply_compaction", "summary": "About a basket."}
    records = [asked("First"), asked("Second"), undo, asked("Third"), undo, undo, compacted]
    messages = read(records).messages
    assert [each.text for each in messages if "superseded" in each.more] == ["First", "Second", "Third"]
    assert [(each.text, each.more["compaction"]) for each in messages[3:]] == [("About a basket.", {})]


def test_a_fork_has_its_given_name_and_names_its_origin(tmp_path: Path) -> None:
    write(tmp_path, working_session(), title="Another way", forkedFrom="origin")
    [each] = read_changed(KimiCode(), tmp_path)
    assert (each.session.title, each.session.parent, each.session.meta["relation"]) == ("Another way", "origin", "fork")
