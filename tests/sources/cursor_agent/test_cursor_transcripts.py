"""Cursor's agent: transcripts next to its databases as a user sees them."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select

from registry.ingest.from_client import ingest_from_client
from registry.storage.connections import create_database_engine
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.tables import conversation
from sources.base import FoundSession, Skipped
from tests.sources.cursor_agent.cursor_agent_files import (
    CWD,
    START_MS,
    AgentFiles,
    agent_id,
    asked,
    entry,
    environment,
    mirror,
    text,
    used,
    working_session,
)
from tests.sources.reading import texts_of


@pytest.fixture
def cursor(tmp_path: Path) -> AgentFiles:
    """An empty configuration folder."""
    return AgentFiles(tmp_path / ".cursor")


def test_a_transcript_without_a_database_is_read_as_a_copy(cursor: AgentFiles) -> None:
    cursor.transcript(1, entry("user", text(str(environment()["content"]))), *mirror())
    session = cursor.only_session()
    assert texts_of(session) == [
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


def test_a_transcript_is_not_read_if_the_conversation_has_a_database(cursor: AgentFiles) -> None:
    cursor.chat(1, *working_session())
    cursor.transcript(1, *mirror())
    assert not cursor.only_session().is_copy


def test_the_transcript_is_read_if_the_database_is_unreadable(cursor: AgentFiles) -> None:
    cursor.chat(1, *working_session()).write_bytes(b"no database" * 500)
    cursor.transcript(1, *mirror())
    skipped, found = cursor.read()
    assert isinstance(skipped, Skipped)
    assert isinstance(found, FoundSession)
    assert found.session.is_copy


def test_a_transcript_of_only_ends_of_turns_is_reported_and_not_read_again(cursor: AgentFiles) -> None:
    cursor.transcript(1, {"type": "turn_ended", "status": "success"})
    found, silent = cursor.read()
    assert isinstance(found, FoundSession)
    assert (found.session.messages, silent) == ((), Skipped("1 conversation", "no messages in it"))
    assert cursor.read({found.key: found.fingerprint}) == []


def test_errors_and_aborted_turns_are_kept(cursor: AgentFiles) -> None:
    cursor.transcript(
        1,
        entry("user", text("Go")),
        {"type": "turn_ended", "status": "error", "error": "No network"},
        {"type": "error", "error": {"message": "Still no network"}},
        {"type": "turn_ended", "status": "aborted"},
    )
    session = cursor.only_session()
    assert texts_of(session)[1:] == [
        ("error", "No network"),
        ("error", "Still no network"),
        ("system", "[Turn ended: aborted]"),
    ]


def test_a_transcript_that_loses_its_first_lines_loses_and_doubles_no_turn(cursor: AgentFiles, sqlite_url: str) -> None:
    texts = [f"step {n}" for n in range(1, 5)] + ["again", "done", "again", "done", "and now?", "ready"]
    lines = [entry("assistant" if n % 2 else "user", text(each)) for n, each in enumerate(texts)]
    engine = create_database_engine(sqlite_url).execution_options(write=True)
    with engine.begin() as connection:
        tx = WriteTransaction(ReadTransaction(connection))
        for part in (lines[:8], lines[4:]):
            cursor.transcript(1, *part)
            ingest_from_client(tx, "cursor", cursor.only_session())
        stored = sorted(tx.execute(select(conversation.c.text)).scalars())
    engine.dispose()
    assert stored == sorted(texts)


def test_text_around_a_redacted_thought_is_kept(cursor: AgentFiles) -> None:
    cursor.transcript(1, entry("user", text("Go")), entry("assistant", text("Sure.\n\n[REDACTED]"), text("[REDACTED]")))
    assert texts_of(cursor.only_session())[1:] == [("assistant", "Sure.")]


def test_the_project_is_found_by_the_name_of_its_folder(cursor: AgentFiles) -> None:
    read = entry("assistant", used("Read", path="/home/ann/old-shop/src/a.py"))
    cursor.transcript(1, entry("user", text("Go")), read, slug="home-ann-old-shop")
    cursor.transcript(2, entry("user", text("Go")), read, slug="home-ann-other")
    cursor.transcript(3, entry("user", text("Go")), slug="empty-window")
    windows = entry("assistant", used("Shell", command="pytest", cwd="C:\\src\\app\\tests"))
    cursor.transcript(4, entry("user", text("Go")), windows, slug="c--src-app")
    cursor.describe(cursor.chat(5, *working_session()).parent, cwd="/known/from here")
    cursor.transcript(6, entry("user", text("Go")), slug="known-from-here")
    sessions = cursor.sessions()
    assert [sessions[agent_id(number)].project for number in (1, 2, 3, 4, 6)] == [
        "/home/ann/old-shop",
        None,
        None,
        "C:\\src\\app",
        "/known/from here",
    ]


def test_a_sub_agents_transcript_names_its_parent(cursor: AgentFiles) -> None:
    cursor.transcript(1, *mirror())
    cursor.transcript(2, entry("user", text("Look for lists")), parent=1)
    sessions = cursor.sessions()
    assert (sessions[agent_id(1)].parent, sessions[agent_id(2)].parent) == (None, agent_id(1))


def test_the_newer_format_of_two_transcripts_is_read(cursor: AgentFiles) -> None:
    cursor.transcript(1, *mirror())
    cursor.text(1, "user:\nold form\n")
    assert cursor.only_session().title == "Why does the basket lose its items?"


def test_plain_text_of_the_oldest_format_is_read(cursor: AgentFiles) -> None:
    cursor.text(
        1,
        f"user:\n{asked('Why?', '9:05 PM')['content']}\n\nA:\n[Thinking] Let me look.\nClosely.\n"
        f"[Tool call] Read\n  path: {CWD}/basket.py\n  note: one\ntwo\n[Tool call] Shell\n  command: pytest\n\n"
        "[Tool result] Read\nreturn []\n\n[Tool result] Grep\nfound\n\nassistant:\nIt makes\na new list.\n",
    )
    session = cursor.only_session()
    assert texts_of(session) == [
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
    cursor.transcript(1, entry("user", text("Go")), "{torn", {"type": "novel"}, entry("assistant", {"type": "video"}))
    [found] = cursor.read()
    assert isinstance(found, FoundSession)
    assert [(one.what, one.why) for one in found.skipped] == [
        ("line 2", "not JSON"),
        ("1 x record novel", "unknown to this reader"),
        ("1 x part video", "unknown to this reader"),
    ]


def test_a_grown_transcript_keeps_its_message_ids(cursor: AgentFiles) -> None:
    cursor.transcript(1, *mirror())
    before = [each.more["native_id"] for each in cursor.only_session().messages]
    cursor.transcript(1, *mirror(), entry("user", text("More")))
    after = [each.more["native_id"] for each in cursor.only_session().messages]
    assert after[:-1] == before
