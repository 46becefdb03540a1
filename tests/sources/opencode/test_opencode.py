"""What a user sees of the sessions that OpenCode keeps."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from registry.domain import Session
from registry.errors import StorageError
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
from tests.sources.untouched import opened_files, state_of

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
    """Where the client keeps everything; nothing is there yet."""
    return tmp_path / "home" / ".local" / "share" / "opencode"


def read(dialogue: Dialogue) -> Session:
    """The session, without any store."""
    reading = opencode_reader.OpenCodeDialogue(described=row_of(dialogue))
    for message, parts in dialogue.messages:
        reading.read(message, parts)
    return reading.session()


def stores(root: Path) -> list[Path]:
    return list(OpenCode().find(Paths(root.parents[2], {})))


def results(store: Path, seen: Mapping[str, str] | None = None) -> list[FoundSession | Skipped]:
    return list(OpenCode().sessions(store, seen or {}))


def found(store: Path, seen: Mapping[str, str] | None = None) -> dict[str, FoundSession]:
    """The changed sessions of a store by id."""
    return {each.key: each for each in results(store, seen) if isinstance(each, FoundSession)}


def seen_of(sessions: Mapping[str, FoundSession]) -> dict[str, str]:
    return {key: each.fingerprint for key, each in sessions.items()}


def said(session: Session) -> list[tuple[str, str]]:
    return [(each.role.value, each.text) for each in session.messages]


def test_a_session_reads_as_it_went(root: Path) -> None:
    write_database(root, working_dialogue())
    [store] = stores(root)
    [each] = found(store).values()

    assert said(each.session) == SAID
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


def test_the_order_of_parts_holds_whatever_their_times_say() -> None:
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
    assert tools[3]["agent"] == "ses_agent"


def test_a_call_says_how_it_ended() -> None:
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


def test_errors_retries_aborts_and_compactions_are_told() -> None:
    dialogue = Dialogue()
    dialogue.user("Hi", {"type": "compaction", "auto": True})
    dialogue.answer(
        {"type": "retry", "attempt": 1, "error": {"data": {"message": "Overloaded"}}}, text("We greeted."), summary=True
    )
    dialogue.answer(error={"name": "ProviderAuthError", "data": {"message": "No key"}})
    completed = datetime.fromtimestamp(dialogue.at / 1000 - 10, UTC)  # ten seconds before it was written
    dialogue.answer(text("Well"), error={"name": "MessageAbortedError", "data": {"message": "aborted"}})

    session = read(dialogue)
    assert said(session)[1:] == [
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


def test_a_command_that_starts_a_sub_agent_is_what_the_user_said() -> None:
    dialogue = Dialogue(more={"title": "New session - 2026-05-05T19:54:00.000Z"})
    dialogue.message("user", {"type": "subtask", "prompt": "Review all of it", "agent": "review", "command": "review"})
    session = read(dialogue)
    assert said(session) == [("user", "/review"), ("system", "Review all of it")]
    assert session.title == "/review"


def test_a_sub_agents_session_names_the_session_it_works_for(root: Path) -> None:
    store = write_database(root, working_dialogue(), Dialogue(2, {"parentID": working_dialogue().session}))
    session = found(store)[Dialogue(2).session].session
    assert (session.parent, session.meta["relation"]) == (working_dialogue().session, "sub-agent")


@pytest.mark.parametrize(("part", "standing"), [(None, 2), ("prt_msg_001_001_003", 3), ("unknown", 9)])
def test_what_was_reverted_is_kept_and_marked(part: str | None, standing: int) -> None:
    dialogue = working_dialogue()
    dialogue.more["revert"] = {"messageID": "msg_001_001", **({"partID": part} if part else {})}
    session = read(dialogue)
    assert [message.more.get("superseded") for message in session.messages].count(None) == standing
    assert len(session.messages) == 9


def test_a_second_pass_finds_only_what_has_changed(root: Path) -> None:
    dialogue = working_dialogue(2)
    store = write_database(root, working_dialogue(1), dialogue)
    seen, stamp = seen_of(found(store)), OpenCode().stamp(store)
    assert results(store, seen) == []
    assert OpenCode().stamp(store) == stamp

    dialogue.user("And now?")
    write_database(root, dialogue)
    assert OpenCode().stamp(store) != stamp
    assert [each.session.messages[-1].text for each in found(store, seen).values()] == ["And now?"]


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
def test_what_the_client_rewrites_in_place_is_noticed(root: Path, statement: str) -> None:
    store = write_database(root, working_dialogue())
    seen = seen_of(found(store))
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute(statement)
    assert list(found(store, seen)) == [working_dialogue().session]
    assert results(store, seen_of(found(store))) == []


def test_a_session_is_not_read_again_only_because_another_one_is_newer(root: Path) -> None:
    first, second = working_dialogue(), Dialogue(2)
    second.user("Later")
    seen = seen_of(found(write_database(root, first)))
    store = write_database(root, first, second)
    with closing(sqlite3.connect(store)) as connection, connection:
        later = "UPDATE message SET time_updated = time_updated + ? WHERE session_id = ?"
        connection.execute(later, (2 * 24 * 3600 * 1000, second.session))
    assert list(found(store, seen)) == [second.session]


def test_messages_that_are_only_in_the_wal_are_read_and_nothing_in_the_folder_changes(root: Path) -> None:
    write_database(root, working_dialogue(1))
    store = write_database(root, working_dialogue(2), is_crashed=True)
    (root / "auth.json").write_text('{"anthropic": {"access": "sk-secret"}}', encoding="utf-8")
    before = state_of(root)
    with opened_files() as opened:
        everything = [each for place in stores(root) for each in found(place).values()]
        OpenCode().stamp(store)

    assert len(everything) == 2
    assert all(said(each.session) == SAID for each in everything)
    assert state_of(root) == before
    assert not any("auth.json" in path for path in opened)
    assert "sk-secret" not in repr(everything)


def test_a_locked_database_is_an_error_of_the_store_and_read_when_it_is_free(root: Path) -> None:
    store = write_database(root, working_dialogue())
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=delete")
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StorageError, match="locked"):
            results(store)
    assert len(found(store)) == 1


@pytest.mark.parametrize("content", [b"", b"no database" * 500])
def test_a_database_that_cannot_be_read_is_an_error_not_an_empty_store(root: Path, content: bytes) -> None:
    root.mkdir(parents=True)
    store = root / "opencode.db"
    store.write_bytes(content)
    with pytest.raises(StorageError):
        results(store)


def test_a_database_of_another_make_is_told(root: Path) -> None:
    root.mkdir(parents=True)
    store = root / "opencode.db"
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("CREATE TABLE session (id text)")
    assert results(store) == [Skipped(str(store), "not a database version that this reader knows")]


def test_damaged_rows_cost_only_themselves(root: Path) -> None:
    store = write_database(root, working_dialogue())
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("UPDATE part SET data = '{torn' WHERE id = 'prt_msg_001_001_004'")
        connection.execute("UPDATE message SET data = '[]' WHERE id = 'msg_001_002'")
    [each] = found(store).values()
    assert said(each.session) == SAID[:4]
    assert each.skipped == (Skipped(f"2 x message or part of session {each.key}", "not a JSON object"),)


def test_what_this_reader_does_not_know_is_counted(root: Path) -> None:
    dialogue = Dialogue()
    dialogue.user("Hi", {"type": "brandNew"}, {})
    dialogue.message("robot", text("Ho"))
    [each] = found(write_database(root, dialogue)).values()
    assert {skipped.what for skipped in each.skipped} == {
        "1 x part brandNew",
        "1 x part without type",
        "1 x message robot",
    }
    empty = found(write_database(root, Dialogue(2)))[Dialogue(2).session]
    assert empty.skipped == (Skipped(f"session {empty.key}", "no conversation in it"),)


def test_a_prompt_of_opencode_run_is_without_the_quotes_that_it_is_kept_in() -> None:
    for kept, typed in (
        ('"Why does it lose \\"items\\"?"', 'Why does it lose "items"?'),
        ('"one" and "two"', '"one" and "two"'),
        ('"word"', '"word"'),
    ):
        dialogue = Dialogue()
        dialogue.user(kept)
        assert [message.text for message in read(dialogue).messages] == [typed]
