"""OpenCode: sessions as a user sees them."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from registry.domain import Session
from sources.base import FoundSession, Paths, Skipped
from sources.opencode import reader as opencode_reader
from sources.opencode.reader import OpenCode
from tests.sources.opencode.opencode_files import (
    SHOP,
    Dialogue,
    Record,
    row_of,
    text,
    tool,
    working_dialogue,
    write_database,
)
from tests.sources.reading import texts_of

SAID = [
    ("user", "Why does the basket lose its items? 안녕"),
    ("system", "Called the Read tool"),
    ("thinking", "The basket first."),
    ("assistant", "I will look."),
    ("tool", "read basket.py\n\nreturn []"),
    ("tool", "bash pytest\n\n1 failed"),
    ("tool", "edit a\n\nThe user rejected permission to use this specific tool call."),
    ("tool", "task Find baskets\n\nThree."),
    ("assistant", "It makes a new list.\n\n```python\nreturn items\n```"),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The client's empty folder."""
    return tmp_path / "home" / ".local" / "share" / "opencode"


def read(dialogue: Dialogue) -> Session:
    """Parse a session, without a store."""
    reading = opencode_reader.OpenCodeDialogue(described=row_of(dialogue))
    for message, parts in dialogue.messages:
        reading.read(message, parts)
    return reading.session()


def stores(root: Path) -> list[Path]:
    return list(OpenCode().find(Paths(root.parents[2], {})))


def scan(store: Path, seen: Mapping[str, str] | None = None) -> list[FoundSession | Skipped]:
    return list(OpenCode().sessions(store, seen or {}))


def read_changed(store: Path, seen: Mapping[str, str] | None = None) -> dict[str, FoundSession]:
    """Return the store's changed sessions by id."""
    return {each.key: each for each in scan(store, seen) if isinstance(each, FoundSession)}


def fingerprints_of(sessions: Mapping[str, FoundSession]) -> dict[str, str]:
    return {key: each.fingerprint for key, each in sessions.items()}


def test_a_session_is_read_in_order(root: Path) -> None:
    write_database(root, working_dialogue())
    [store] = stores(root)
    [each] = read_changed(store).values()

    assert texts_of(each.session) == SAID
    assert (each.session.session_id, each.session.title) == (working_dialogue().session, "Basket bug")
    assert (each.session.project, each.session.parent) == (SHOP, None)
    assert each.session.meta == {}
    assert each.skipped == ()
    assert all(message.timestamp and "time" not in message.more for message in each.session.messages)


def test_messages_keep_their_ids_models_attachments_and_tokens() -> None:
    question, context, thought, answer, *_ = read(working_dialogue()).messages

    assert question.more == {"native_id": "msg_001_000", "attachments": ["shot.png"]}
    assert context.more == {"native_id": "prt_msg_001_000_001", "injected": True}
    usage = {"input_tokens": 90, "output_tokens": 4, "reasoning_tokens": 0, "cache_read_input_tokens": 7}
    usage["cache_creation_input_tokens"] = 0
    assert thought.more == {"native_id": "prt_msg_001_001_001", "model": "claude-sonnet-4-6", "usage": usage}
    assert answer.more == {"native_id": "prt_msg_001_001_003", "model": "claude-sonnet-4-6"}


def test_parts_stay_in_order_regardless_of_their_times() -> None:
    dialogue = Dialogue()
    dialogue.answer(text("First"), text("Second"), text("Third"))
    parts = dialogue.messages[0][1]
    parts[1]["time"], parts[2]["time"] = {"start": 1_000_000_000_000}, None
    messages = read(dialogue).messages
    assert [message.more.get("time") for message in messages] == [None, "inferred", "inferred"]
    assert messages[0].timestamp == messages[1].timestamp == messages[2].timestamp


def test_a_tool_call_keeps_its_parameters_result_and_outcome() -> None:
    tools = [message.more["tool"] for message in read(working_dialogue()).messages if "tool" in message.more]

    assert tools[0] == {
        "name": "read",
        "params": {"filePath": f"{SHOP}/basket.py"},
        "result": "return []",
        "status": "completed",
    }
    assert [call["status"] for call in tools] == ["completed", "failed", "rejected", "completed"]


def test_a_call_has_its_outcome() -> None:
    cases: list[tuple[Record, str]] = [
        (tool("invalid", {}, "no such tool"), "failed"),
        (tool("bash", {}, "boom", "error"), "failed"),
        (tool("bash", {}, status="running"), "pending"),
        (tool("bash", {}, metadata={"exit": 0}), "completed"),
        ({"type": "tool"}, "pending"),
    ]
    for part, status in cases:
        dialogue = Dialogue()
        dialogue.answer(part)
        assert read(dialogue).messages[0].more["tool"]["status"] == status


def test_errors_retries_aborts_and_compactions_become_messages() -> None:
    dialogue = Dialogue()
    dialogue.user("Hi", {"type": "compaction", "auto": True})
    dialogue.answer(
        {"type": "retry", "attempt": 1, "error": {"data": {"message": "Overloaded"}}}, text("We greeted."), summary=True
    )
    dialogue.answer(error={"name": "ProviderAuthError", "data": {"message": "No key"}})
    completed = datetime.fromtimestamp(dialogue.at / 1000 - 10, UTC)  # ten seconds before it was written
    dialogue.answer(text("Well"), error={"name": "MessageAbortedError", "data": {"message": "aborted"}})

    session = read(dialogue)
    assert texts_of(session)[1:] == [
        ("system", "Conversation compacted"),
        ("error", "Overloaded"),
        ("system", "We greeted."),
        ("error", "No key"),
        ("assistant", "Well"),
        ("system", "[Turn aborted: aborted]"),
    ]
    assert session.messages[3].more["compaction"] == {}
    [failed] = [message for message in session.messages if message.text == "No key"]
    assert failed.timestamp == completed


def test_a_command_that_starts_a_sub_agent_is_a_user_message() -> None:
    dialogue = Dialogue(more={"title": "New session - 2026-05-05T19:54:00.000Z"})
    dialogue.message("user", {"type": "subtask", "prompt": "Review all of it", "agent": "review", "command": "review"})
    session = read(dialogue)
    assert texts_of(session) == [("user", "/review"), ("system", "Review all of it")]
    assert session.title == "/review"


def test_a_sub_agents_session_names_its_caller(root: Path) -> None:
    store = write_database(root, working_dialogue(), Dialogue(2, {"parentID": working_dialogue().session}))
    session = read_changed(store)[Dialogue(2).session].session
    assert (session.parent, session.meta["relation"]) == (working_dialogue().session, "sub-agent")


@pytest.mark.parametrize(("part", "standing"), [(None, 2), ("prt_msg_001_001_003", 3), ("unknown", 9)])
def test_reverted_messages_are_kept_and_marked(part: str | None, standing: int) -> None:
    dialogue = working_dialogue()
    dialogue.more["revert"] = {"messageID": "msg_001_001", **({"partID": part} if part else {})}
    session = read(dialogue)
    assert [message.more.get("superseded") for message in session.messages].count(None) == standing
    assert len(session.messages) == 9


def test_only_changed_sessions_are_read_again(root: Path) -> None:
    dialogue = working_dialogue(2)
    store = write_database(root, working_dialogue(1), dialogue)
    seen, stamp = fingerprints_of(read_changed(store)), OpenCode().stamp(store)
    assert scan(store, seen) == []
    assert OpenCode().stamp(store) == stamp

    dialogue.user("And now?")
    write_database(root, dialogue)
    assert OpenCode().stamp(store) != stamp
    assert [each.session.messages[-1].text for each in read_changed(store, seen).values()] == ["And now?"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE part SET data = replace(data, '[]', '{}'), time_updated = time_updated + 1 WHERE id LIKE '%001_004'",
        "UPDATE message SET time_updated = time_updated + 1 WHERE id = 'msg_001_002'",
        "DELETE FROM part WHERE id LIKE '%001_004'",
        "UPDATE session SET title = 'Other'",
        """UPDATE session SET revert = '{"messageID": "msg_001_001"}'""",
    ],
    ids=["a part rewritten", "a message rewritten", "a part removed", "renamed", "reverted"],
)
def test_rows_rewritten_in_place_are_noticed(root: Path, statement: str) -> None:
    store = write_database(root, working_dialogue())
    seen = fingerprints_of(read_changed(store))
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute(statement)
    assert list(read_changed(store, seen)) == [working_dialogue().session]
    assert scan(store, fingerprints_of(read_changed(store))) == []


def test_a_session_is_not_read_again_because_of_a_newer_one(root: Path) -> None:
    first, second = working_dialogue(), Dialogue(2)
    second.user("Later")
    seen = fingerprints_of(read_changed(write_database(root, first)))
    store = write_database(root, first, second)
    with closing(sqlite3.connect(store)) as connection, connection:
        later = "UPDATE message SET time_updated = time_updated + ? WHERE session_id = ?"
        connection.execute(later, (2 * 24 * 3600 * 1000, second.session))
    assert list(read_changed(store, seen)) == [second.session]


def test_a_database_of_another_program_is_reported(root: Path) -> None:
    root.mkdir(parents=True)
    store = root / "opencode.db"
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("CREATE TABLE session (id text)")
    assert scan(store) == [Skipped(str(store), "not a database version that this reader knows")]


def test_only_damaged_rows_are_lost(root: Path) -> None:
    store = write_database(root, working_dialogue())
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("UPDATE part SET data = '{torn' WHERE id = 'prt_msg_001_001_004'")
        connection.execute("UPDATE message SET data = '[]' WHERE id = 'msg_001_002'")
    [each] = read_changed(store).values()
    assert texts_of(each.session) == SAID[:4]
    assert each.skipped == (Skipped(f"2 x message or part of session {each.key}", "not a JSON object"),)


def test_unknown_parts_are_counted(root: Path) -> None:
    dialogue = Dialogue()
    dialogue.user("Hi", {"type": "brandNew"}, {})
    dialogue.message("robot", text("Ho"))
    [each] = read_changed(write_database(root, dialogue)).values()
    assert {skipped.what.partition(" of ")[0] for skipped in each.skipped} == {
        "1 x part brandNew",
        "1 x part without type",
        "1 x message robot",
    }
    empty = read_changed(write_database(root, Dialogue(2)))[Dialogue(2).session]
    assert empty.skipped == (Skipped(f"session {empty.key}", "no conversation in it"),)


def test_the_quotes_around_a_prompt_of_opencode_run_are_removed() -> None:
    for kept, typed in (
        ('"Why does it lose \\"items\\"?"', 'Why does it lose "items"?'),
        ('"one" and "two"', '"one" and "two"'),
        ('"word"', '"word"'),
    ):
        dialogue = Dialogue()
        dialogue.user(kept)
        assert [message.text for message in read(dialogue).messages] == [typed]
