"""Cursor: conversations of every generation of its storage, and their changes."""

import json
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from registry.domain import Role
from registry.errors import StorageError
from sources.base import FoundSession, Skipped
from sources.cursor.reader import CursorIde
from tests.sources.cursor.cursor_files import (
    NOW,
    SECRET,
    START,
    START_MS,
    CursorFiles,
    answered,
    asked,
    iso,
    paths,
    record,
    thought,
    writing,
)
from tests.sources.reading import fingerprints

TURN = (
    asked("u1", "Why does the login fail?", createdAt=iso(0)),
    answered("a1", "The token has expired.", createdAt=iso(1)),
)
APP = {"folder": "file:///home/me/app"}


@pytest.fixture
def cursor(empty_home: Path) -> CursorFiles:
    """Cursor's empty folder on Linux."""
    return CursorFiles(empty_home / ".config" / "Cursor" / "User")


def only_texts(cursor: CursorFiles) -> list[tuple[Role, str]]:
    return [(message.role, message.text) for message in cursor.only_session().messages]


SAID = [(Role.USER, "Why does the login fail?"), (Role.ASSISTANT, "The token has expired.")]


# Location


@pytest.mark.parametrize(
    ("folder", "environment"),
    [
        (".config/Cursor/User", {}),
        ("elsewhere/Cursor/User", {"XDG_CONFIG_HOME": "{home}/elsewhere"}),
        ("Library/Application Support/Cursor/User", {}),
        ("AppData/Roaming/Cursor/User", {}),
        ("roaming/Cursor/User", {"APPDATA": "{home}/roaming"}),
        (".config/Cursor Nightly/User", {}),
        ("portable/user-data/User", {"CTXR_CURSOR_DIR": "{home}/portable/user-data/User"}),
    ],
)
def test_cursor_is_found_where_each_system_keeps_it(folder: str, environment: dict[str, str], empty_home: Path) -> None:
    files = CursorFiles(empty_home / folder)
    files.conversation("c1", *TURN)
    given = {name: value.format(home=empty_home) for name, value in environment.items()}
    assert list(CursorIde().find(paths(empty_home, **given))) == [files.store]


# Generations


def test_a_conversation_is_read_in_the_order_of_its_headers(cursor: CursorFiles) -> None:
    cursor.conversation("c1", *reversed(TURN), fullConversationHeadersOnly=[{"bubbleId": "u1"}, {"bubbleId": "a1"}])
    assert only_texts(cursor) == SAID


def test_bubbles_of_a_rewound_turn_are_not_read(cursor: CursorFiles) -> None:
    cursor.conversation("c1", *TURN)
    cursor.rows({"bubbleId:c1:old": json.dumps(answered("old", "A regenerated answer."))})
    assert only_texts(cursor) == SAID


def test_messages_inside_a_first_generation_record_are_read(cursor: CursorFiles) -> None:
    tools = json.dumps({"a1": {"name": "read_file", "rawArgs": '{"target_file": "auth.py"}', "status": "completed"}})
    kept = {"capabilities": [{"type": 15, "data": {"bubbleDataMap": tools}}], "conversation": list(TURN)}
    cursor.rows({"composerData:c1": json.dumps({"composerId": "c1", "createdAt": START_MS, **kept})})
    assert only_texts(cursor) == [*SAID, (Role.TOOL, "read_file auth.py")]


def test_a_missing_bubble_is_read_from_its_copy_in_the_record(cursor: CursorFiles) -> None:
    cursor.conversation("c1", *TURN, conversationMap={"a1": TURN[1]})
    with writing(cursor.store) as connection:
        connection.execute("DELETE FROM cursorDiskKV WHERE key = 'bubbleId:c1:a1'")
    assert only_texts(cursor) == SAID


def test_the_old_chat_panel_is_read_from_its_workspace(cursor: CursorFiles) -> None:
    bubbles = [
        {"type": "user", "id": "b1", "text": "Why does the login fail?", "fileSelections": []},
        {"type": "ai", "id": "b2", "rawText": "The token has expired.", "modelType": "gpt-4"},
        {"type": "ai", "id": "b3", "text": ""},
    ]
    tab = {"tabId": "t1", "chatTitle": "Login", "lastSendTime": START_MS, "bubbles": bubbles}
    cursor.workspace("w1", APP, {"workbench.panel.aichat.view.aichat.chatdata": {"tabs": [tab]}})
    [skipped, found] = cursor.read()
    assert isinstance(skipped, Skipped)
    assert "not there" in skipped.why
    assert isinstance(found, FoundSession)
    session = found.session
    assert (session.session_id, session.title, session.project) == ("t1", "Login", "/home/me/app")
    assert [(message.role, message.text) for message in session.messages] == SAID
    assert [message.timestamp for message in session.messages] == [START, START]
    assert all(message.more["time"] == "inferred" for message in session.messages)
    assert session.messages[1].more["model"] == "gpt-4"
    assert [found for found in cursor.read(fingerprints([found])) if isinstance(found, FoundSession)] == []


def test_a_conversation_stored_in_its_workspace_is_read(cursor: CursorFiles) -> None:
    kept = {"composerId": "c1", "name": "Login", "createdAt": START_MS, "conversation": list(TURN)}
    cursor.workspace("w1", APP, {"composer.composerData": {"allComposers": [kept]}})
    session = cursor.sessions()["c1"]
    assert (session.title, session.project, len(session.messages)) == ("Login", "/home/me/app", 2)


def test_a_conversation_listed_in_two_workspaces_is_read_once(cursor: CursorFiles) -> None:
    listed = {"composer.composerData": {"allComposers": [{"composerId": "c1"}]}}
    cursor.workspace("w1", APP, listed)
    cursor.workspace("w2", {"workspace": "file:///home/me/all.code-workspace"}, listed)
    cursor.conversation("c1", *TURN)
    assert list(cursor.sessions()) == ["c1"]
    assert cursor.only_session().project == "/home/me/app"


def test_the_header_table_is_preferred_to_its_outdated_mirror(cursor: CursorFiles) -> None:
    cursor.conversation("c1", *TURN, name="in the record")
    stale = {"composerId": "c1", "name": "stale", "unifiedMode": "agent"}
    cursor.items({"composer.composerHeaders": {"allComposers": [stale]}})
    assert cursor.only_session().title == "stale"
    cursor.header_row("c1", {"name": "Login fails"}, workspaceId="w1", lastUpdatedAt=START_MS)
    cursor.workspace("w1", APP)
    session = cursor.only_session()
    assert (session.title, session.project, session.meta["mode"]) == ("Login fails", "/home/me/app", "agent")


def test_headers_without_a_record_are_counted(cursor: CursorFiles) -> None:
    cursor.conversation("c1", *TURN)
    for composer_id in ("gone1", "gone2"):
        cursor.header_row(composer_id, {})
    [skipped] = [one for one in cursor.read() if isinstance(one, Skipped)]
    assert skipped == Skipped("2 conversations", "listed by Cursor, but it keeps no record of them")


def test_drafts_and_empty_conversations_are_only_counted(cursor: CursorFiles) -> None:
    cursor.conversation("empty-state-draft", *TURN)
    cursor.conversation("c1", isDraft=True, richText="{}")
    cursor.conversation("c2", answered("a", ""), answered("b", "", errorDetails={"message": "offline"}))
    assert cursor.read() == [Skipped("2 conversations", "drafts or empty conversations")]


def test_a_conversation_without_its_list_is_read_in_the_order_of_rows_and_reported(cursor: CursorFiles) -> None:
    undated = [{name: value for name, value in bubble.items() if name != "createdAt"} for bubble in (*TURN, TURN[0])]
    rows = {f"bubbleId:c3:{key}": json.dumps(bubble) for key, bubble in zip("zyx", undated, strict=False)}
    cursor.rows({"composerData:c3": json.dumps(record("c3")), **rows})
    [found] = cursor.read()
    assert isinstance(found, FoundSession)
    assert [each.text for each in found.session.messages][:2] == [each["text"] for each in TURN[:2]]
    assert "order in which they were written" in found.skipped[0].why


@pytest.mark.parametrize("has_record", [True, False])
def test_unlisted_messages_have_their_times(cursor: CursorFiles, has_record: bool) -> None:
    bubbles = [{**bubble, "createdAt": f"2026-03-01T10:0{minute}:00Z"} for minute, bubble in enumerate(TURN)]
    rows = {f"bubbleId:c3:{bubble['bubbleId']}": json.dumps(bubble) for bubble in bubbles}
    cursor.header_row("c3", {"name": "Basket"})
    cursor.rows({"composerData:c3": json.dumps(record("c3")), **rows} if has_record else rows)
    [found] = cursor.read()
    assert isinstance(found, FoundSession)
    assert [message.text for message in found.session.messages] == [bubble["text"] for bubble in TURN]
    assert not any("time" in message.more for message in found.session.messages)
    assert found.session.title == "Basket"
    assert "lost, or not written yet" in found.skipped[0].why
    assert cursor.read(fingerprints([found])) == []


def test_a_database_without_conversation_tables_is_empty(cursor: CursorFiles) -> None:
    cursor.store.parent.mkdir(parents=True)
    with closing(sqlite3.connect(cursor.store)) as connection:
        connection.execute("CREATE TABLE other (x)")
    assert cursor.read() == []


# Fields of a session


def test_a_session_has_title_project_model_and_parent(cursor: CursorFiles) -> None:
    known = {
        "name": "Login fails",
        "subtitle": "Edited auth.py",
        "modelConfig": {"modelName": "claude-4.5-sonnet"},
        "unifiedMode": "agent",
        "isArchived": True,
        "workspaceIdentifier": {"id": "w1", "uri": {"fsPath": "/home/me/app", "scheme": "file"}},
        "subagentComposerIds": ["c2"],
    }
    cursor.conversation("c1", *TURN, **known)
    cursor.conversation("c2", *TURN, subagentInfo={"parentComposerId": "c1", "subagentTypeName": "explore"})
    parent, child = cursor.sessions()["c1"], cursor.sessions()["c2"]
    assert (parent.title, parent.project, parent.parent) == ("Login fails", "/home/me/app", None)
    assert parent.meta == {"model": "claude-4.5-sonnet", "mode": "agent"}
    assert child.parent == "c1"
    assert (child.title, child.project) == ("Why does the login fail?", None)


def test_an_answer_has_its_own_model_or_the_conversations(cursor: CursorFiles) -> None:
    bubbles = (
        asked("u1", "Go"),
        answered("a1", "One", modelInfo={"modelName": "gpt-5"}),
        answered("a2", "Two", modelInfo={"modelName": "default"}),
    )
    cursor.conversation("c1", *bubbles, modelConfig={"modelName": "sonnet"})
    assert [message.more.get("model") for message in cursor.only_session().messages] == [None, "gpt-5", "sonnet"]


def test_credentials_in_the_database_are_never_returned(cursor: CursorFiles) -> None:
    cursor.conversation("c1", *TURN, thought("t1", "Look at the clock."))
    cursor.items({"cursorAuth/accessToken": SECRET, "secret://x": SECRET, "mcpOAuth.y": SECRET})
    assert SECRET not in repr(cursor.read())


def test_times_are_stored_or_marked_as_estimated(cursor: CursorFiles) -> None:
    bubbles = [
        asked("u1", "First"),
        answered("a1", "dated by itself", createdAt=iso(2)),
        asked("u2", "Second"),
        answered("a2", "Between"),
        answered("a3", "dated by its header"),
        asked("u3", "Third"),
        answered("a4", "from a clock that runs ahead", createdAt="2027-01-01T00:00:00.000Z"),
        answered("a5", "timed", timingInfo={"clientStartTime": 5321.5, "clientSettleTime": START_MS + 600_000}),
    ]
    headers = [{"bubbleId": bubble["bubbleId"], "type": bubble["type"]} for bubble in bubbles]
    headers[4]["createdAt"] = iso(8)
    cursor.conversation("c1", *bubbles, fullConversationHeadersOnly=headers, lastUpdatedAt=START_MS)
    messages = cursor.only_session().messages
    minutes = [(message.timestamp - START) / timedelta(minutes=1) for message in messages if message.timestamp]
    assert minutes[:5] == [1, 2, 4, 6, 8]
    assert [message.timestamp for message in messages[6:]] == [NOW, START + timedelta(minutes=10)]
    assert [message.more.get("time") for message in messages] == [
        "inferred", None, "inferred", "inferred", None, "inferred", "inferred", None
    ]  # fmt: skip


# Changes


def read_changed(cursor: CursorFiles, seen: dict[str, str]) -> list[str]:
    return [found.key for found in cursor.read(seen) if isinstance(found, FoundSession)]


def test_only_the_conversation_that_grew_is_read_again(cursor: CursorFiles) -> None:
    cursor.conversation("c1", *TURN)
    cursor.conversation("c2", *TURN)
    seen = fingerprints(cursor.read())
    cursor.conversation("c2", *TURN, asked("u2", "And now?"))
    assert read_changed(cursor, seen) == ["c2"]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO cursorDiskKV SELECT key, replace(value, 'ired', 'IRED') FROM cursorDiskKV WHERE key LIKE 'b%a1'",
        "DELETE FROM cursorDiskKV WHERE key LIKE '%a1'",
        "UPDATE cursorDiskKV SET value = replace(value, 'completed', 'aborted') WHERE key LIKE 'composerData%'",
    ],
    ids=["a bubble rewritten at the same length", "a bubble removed", "the record updated in its row"],
)
def test_rewritten_rows_are_noticed(statement: str, cursor: CursorFiles) -> None:
    cursor.conversation("c1", *TURN)
    seen = fingerprints(cursor.read())
    with writing(cursor.store) as connection:
        connection.execute(statement)
    assert read_changed(cursor, seen) == ["c1"]


def test_a_new_name_in_the_list_is_noticed(cursor: CursorFiles) -> None:
    cursor.conversation("c1", *TURN)
    seen = fingerprints(cursor.read())
    cursor.header_row("c1", {"name": "Login"})
    assert read_changed(cursor, seen) == ["c1"]


def test_a_streaming_answer_waits_and_its_question_does_not(cursor: CursorFiles) -> None:
    just_now = int(NOW.timestamp() * 1000) - 5000
    cursor.conversation("c1", *TURN, status="generating", lastUpdatedAt=just_now)
    [found] = cursor.read()
    assert isinstance(found, FoundSession)
    assert [message.text for message in found.session.messages] == ["Why does the login fail?"]
    seen = fingerprints([found])
    [later] = cursor.read(seen, now=NOW + timedelta(minutes=2))
    assert isinstance(later, FoundSession)
    assert len(later.session.messages) == 2


def test_the_stamp_of_a_store_changes_only_after_a_write(cursor: CursorFiles) -> None:
    cursor.conversation("c1", *TURN)
    database = cursor.workspace("w1", APP, {"composer.composerData": {}})
    reader = CursorIde()
    before = reader.stamp(cursor.store)
    assert reader.stamp(cursor.store) == before
    cursor.items({"composer.composerData": {"allComposers": []}}, database)
    assert reader.stamp(cursor.store) != before


def test_the_stamp_changes_once_more_after_cursor_is_idle(cursor: CursorFiles) -> None:
    cursor.conversation("c1", *TURN)
    written = cursor.store.stat().st_mtime
    moments = [NOW.fromtimestamp(written + seconds, NOW.tzinfo) for seconds in (1, 59, 61, 3600)]
    stamps = [CursorIde(clock=lambda at=moment: at).stamp(cursor.store) for moment in moments]  # type: ignore[misc]
    assert stamps[0] == stamps[1] != stamps[2] == stamps[3]


# Damage


def test_only_damaged_rows_are_lost(cursor: CursorFiles) -> None:
    bubbles = [*TURN, *(answered(f"x{n}", "lost") for n in range(5)), answered("a9", "Still here.")]
    cursor.conversation("c1", *bubbles)
    damage: dict[str, Any] = {"x0": None, "x1": "{torn", "x2": "[1, 2]", "x3": b"\xff\xfe", "x4": '{"type": 7}'}
    headers = [{"bubbleId": bubble["bubbleId"]} for bubble in bubbles]
    torn = record("c1", *TURN, fullConversationHeadersOnly=[*headers, {"bubbleId": 3}, "x", None])
    rows = {f"bubbleId:c1:{name}": value for name, value in damage.items()}
    cursor.rows({"composerData:c1": json.dumps(torn), "composerData:c2": "{torn", "composerData:c3": None, **rows})
    found, *skipped = cursor.read()
    assert isinstance(found, FoundSession)
    assert [message.text for message in found.session.messages] == [text for _, text in SAID] + ["Still here."]
    assert found.skipped == (
        Skipped("1 message of c1", "listed in the conversation but not stored"),
        Skipped("3 messages of c1", "not a JSON object"),
        Skipped("1 message of c1", "of an unknown type"),
    )
    assert skipped == [Skipped(f"conversation {name}", "its record is not a JSON object") for name in ("c2", "c3")]


def test_a_damaged_page_loses_only_its_conversations(cursor: CursorFiles) -> None:
    for number in range(40):
        cursor.conversation(f"c{number:02}", asked("u", "x" * 3000))
    content = bytearray(cursor.store.read_bytes())
    position = content.index(b"xxxx", len(content) // 2) // 4096 * 4096
    content[position : position + 4096] = b"\xff" * 4096
    cursor.store.write_bytes(content)
    found = cursor.read()
    assert any(isinstance(one, Skipped) and "malformed" in one.why for one in found)
    assert sum(isinstance(one, FoundSession) for one in found) > 20


def test_a_damaged_workspace_is_reported_and_the_rest_is_read(cursor: CursorFiles) -> None:
    cursor.conversation("c1", *TURN)
    database = cursor.workspace("w1", APP)
    database.write_bytes(b"no database" * 500)
    skipped, found = cursor.read()
    assert isinstance(skipped, Skipped)
    assert skipped.what == "workspace w1"
    assert isinstance(found, FoundSession)


def test_an_unreadable_store_is_an_error_not_an_empty_store(cursor: CursorFiles) -> None:
    cursor.store.parent.mkdir(parents=True)
    cursor.store.write_bytes(b"no database" * 500)
    with pytest.raises(StorageError):
        cursor.read()


def test_an_unfinished_reader_closes_the_store(cursor: CursorFiles) -> None:
    cursor.conversation("c1", *TURN)
    cursor.conversation("c2", *TURN)
    sessions = CursorIde().sessions(cursor.store, {})
    next(sessions)
    sessions.close()  # type: ignore[attr-defined]
    cursor.conversation("c3", *TURN)
    assert not cursor.store.with_name("state.vscdb-wal").exists()
