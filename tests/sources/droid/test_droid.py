"""Droid: sessions as a user sees them."""

from __future__ import annotations

from pathlib import Path

from registry.domain import Role
from sources.droid.reader import Droid
from tests.sources.droid.droid_files import SESSION, SHOP, read, says, text, working_session, write
from tests.sources.reading import read_changed, texts_of


def test_a_session_is_read_in_order(tmp_path: Path) -> None:
    write(tmp_path, working_session())
    [each] = read_changed(Droid(), tmp_path)
    assert texts_of(each.session) == [
        ("system", "<system-reminder>\nTools: …\n</system-reminder>"),
        ("user", "Why is the basket empty? 안녕"),
        ("user", "[image/png]"),
        ("thinking", "Hm."),
        ("assistant", "I look."),
        ("tool", "Execute pytest\n\n1 failed"),
        ("assistant", "It makes a new list."),
    ]
    session = each.session
    assert (session.session_id, session.project, session.title, each.skipped) == (
        *(SESSION, SHOP, "The empty basket"),
        (),
    )
    assert session.messages[4].more == {"native_id": "m2:1", "model": "m-1"}
    assert session.messages[5].more["tool"]["status"] == "failed"


def test_an_abandoned_branch_is_marked_and_a_compaction_becomes_a_message() -> None:
    again = says(5, "user", text("And now?"), after=1)
    noted = says(6, "user", text("Go on from the summary."), after=5, visibility="llm_only")
    compacted = {"type": "compaction_state", "id": "k", "summaryText": "About a basket."}
    messages = read([*working_session(), again, noted, compacted]).messages
    assert [each.text for each in messages if "superseded" in each.more] == [
        *("Hm.", "I look.", "Execute pytest\n\n1 failed", "It makes a new list.")
    ]
    assert messages[-2].role is Role.SYSTEM
    assert (messages[-1].text, messages[-1].more["compaction"]) == ("About a basket.", {})


def test_a_fork_names_its_origin() -> None:
    records = working_session()
    records[0]["parent"] = "origin"
    session = read(records)
    assert (session.parent, session.meta["relation"]) == ("origin", "fork")
