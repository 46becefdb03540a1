"""What a user sees of the transcripts that Cursor keeps beside its stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from registry.domain import Session
from sources.base import FoundSession, Skipped
from tests.sources.cursor_agent.cursor_agent_files import (
    CWD,
    START_MS,
    AgentFiles,
    agent_id,
    asked,
    environment,
    mirror,
    said,
    text,
    used,
    working_session,
)


@pytest.fixture
def cursor(tmp_path: Path) -> AgentFiles:
    """An empty configuration folder."""
    return AgentFiles(tmp_path / ".cursor")


def spoken(session: Session) -> list[tuple[str, str]]:
    return [(each.role.value, each.text) for each in session.messages]


def test_a_transcript_without_a_database_is_read_as_a_copy(cursor: AgentFiles) -> None:
    cursor.transcript(1, said("user", text(str(environment()["content"]))), *mirror())
    session = cursor.only_session()
    assert spoken(session) == [
        ("system", str(environment()["content"])),
        ("user", "Why does the basket lose its items?"),
        ("assistant", "I will read it."),
        ("tool", "Read basket.py"),
        ("tool", "Shell pytest"),
        ("assistant", "It makes a new list."),
    ]
    assert (session.session_id, session.project, session.is_copy) == (agent_id(1), CWD, True)
    assert session.title == "Why does the basket lose its items?"
    assert session.messages[3].more["tool"]["status"] == "pending"
    marks = [(each.more.get("injected"), each.more.get("time")) for each in session.messages]
    assert marks == [(True, "inferred"), (None, None), *[(None, "inferred")] * 4]


def test_a_conversation_that_has_a_database_is_not_read_from_its_transcript(cursor: AgentFiles) -> None:
    cursor.chat(1, *working_session())
    cursor.transcript(1, *mirror())
    assert not cursor.only_session().is_copy


def test_the_transcript_stands_in_for_a_database_that_cannot_be_read(cursor: AgentFiles) -> None:
    cursor.chat(1, *working_session()).write_bytes(b"no database" * 500)
    cursor.transcript(1, *mirror())
    skipped, found = cursor.read()
    assert isinstance(skipped, Skipped)
    assert isinstance(found, FoundSession)
    assert found.session.is_copy


def test_a_transcript_of_nothing_but_ends_of_turns_is_told_and_not_read_again(cursor: AgentFiles) -> None:
    cursor.transcript(1, {"type": "turn_ended", "status": "success"})
    found, silent = cursor.read()
    assert isinstance(found, FoundSession)
    assert (found.session.messages, silent) == ((), Skipped("1 conversation", "no messages in it"))
    assert cursor.read({found.key: found.fingerprint}) == []


def test_errors_and_turns_that_were_broken_off_are_kept(cursor: AgentFiles) -> None:
    cursor.transcript(
        1,
        said("user", text("Go")),
        {"type": "turn_ended", "status": "error", "error": "No network"},
        {"type": "error", "error": {"message": "Still no network"}},
        {"type": "turn_ended", "status": "aborted"},
    )
    session = cursor.only_session()
    assert spoken(session)[1:] == [
        ("error", "No network"),
        ("error", "Still no network"),
        ("system", "[Turn ended: aborted]"),
    ]
    assert [one.more["native_id"] for one in session.messages[1:]] == [f"transcript:{line}:0" for line in (2, 3, 4)]


def test_words_around_a_withheld_thought_are_kept(cursor: AgentFiles) -> None:
    cursor.transcript(1, said("user", text("Go")), said("assistant", text("Sure.\n\n[REDACTED]"), text("[REDACTED]")))
    assert spoken(cursor.only_session())[1:] == [("assistant", "Sure.")]


def test_the_project_is_found_by_the_name_of_its_folder(cursor: AgentFiles) -> None:
    read = said("assistant", used("Read", path="/home/ann/old-shop/src/a.py"))
    cursor.transcript(1, said("user", text("Go")), read, slug="home-ann-old-shop")
    cursor.transcript(2, said("user", text("Go")), read, slug="home-ann-other")
    cursor.transcript(3, said("user", text("Go")), slug="empty-window")
    windows = said("assistant", used("Shell", command="pytest", cwd="C:\\src\\app\\tests"))
    cursor.transcript(4, said("user", text("Go")), windows, slug="c--src-app")
    cursor.describe(cursor.chat(5, *working_session()).parent, cwd="/known/from here")
    cursor.transcript(6, said("user", text("Go")), slug="known-from-here")
    sessions = cursor.sessions()
    assert [sessions[agent_id(number)].project for number in (1, 2, 3, 4, 6)] == [
        "/home/ann/old-shop",
        None,
        None,
        "C:\\src\\app",
        "/known/from here",
    ]


def test_a_sub_agents_transcript_names_whose_it_is(cursor: AgentFiles) -> None:
    cursor.transcript(1, *mirror())
    cursor.transcript(2, said("user", text("Look for lists")), parent=1)
    sessions = cursor.sessions()
    assert (sessions[agent_id(1)].parent, sessions[agent_id(2)].parent) == (None, agent_id(1))


def test_of_two_transcripts_of_one_conversation_the_newer_form_is_read(cursor: AgentFiles) -> None:
    cursor.transcript(1, *mirror())
    cursor.text(1, "user:\nold form\n")
    assert cursor.only_session().title == "Why does the basket lose its items?"


def test_the_oldest_form_is_plain_text(cursor: AgentFiles) -> None:
    cursor.text(
        1,
        f"user:\n{asked('Why?', '9:05 PM')['content']}\n\nA:\n[Thinking] Let me look.\nClosely.\n"
        f"[Tool call] Read\n  path: {CWD}/basket.py\n  note: one\ntwo\n[Tool call] Shell\n  command: pytest\n\n"
        "[Tool result] Read\nreturn []\n\n[Tool result] Grep\nfound\n\nassistant:\nIt makes\na new list.\n",
    )
    session = cursor.only_session()
    assert spoken(session) == [
        ("user", "Why?"),
        ("thinking", "Let me look.\nClosely."),
        ("tool", f"Read {CWD}/basket.py\n\nreturn []"),
        ("tool", "Shell pytest"),
        ("tool", "Grep\n\nfound"),
        ("assistant", "It makes\na new list."),
    ]
    tools = [each.more["tool"] for each in session.messages if "tool" in each.more]
    assert tools[0]["params"] == {"path": f"{CWD}/basket.py", "note": "one\ntwo"}
    assert [tool["status"] for tool in tools] == ["completed", "pending", "completed"]
    assert session.messages[0].timestamp
    assert session.messages[0].timestamp.timestamp() * 1000 == START_MS + 5 * 60_000


def test_torn_lines_and_unknown_records_are_reported(cursor: AgentFiles) -> None:
    cursor.transcript(1, said("user", text("Go")), "{torn", {"type": "novel"}, said("assistant", {"type": "video"}))
    [found] = cursor.read()
    assert isinstance(found, FoundSession)
    assert [(one.what, one.why) for one in found.skipped] == [
        ("line 2", "not JSON"),
        ("1 x record novel", "unknown to this reader"),
        ("1 x part video", "unknown to this reader"),
    ]


def test_a_transcript_that_has_grown_names_its_messages_as_before(cursor: AgentFiles) -> None:
    cursor.transcript(1, *mirror())
    before = [each.more["native_id"] for each in cursor.only_session().messages]
    cursor.transcript(1, *mirror(), said("user", text("More")))
    after = [each.more["native_id"] for each in cursor.only_session().messages]
    assert after[:-1] == before
