"""Move conversations to another folder in Cursor's databases of every generation, and back."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from registry.domain import Session
from registry.errors import InvalidRequest, StorageError
from sources.cursor import journal
from sources.cursor.journal import apply, undo
from sources.cursor.moving import plan_copy, plan_move, target_of
from tests.sources.cursor.cursor_files import SECRET, CursorFiles, answered, asked, record, writing

OLD, NEW = "/home/ann/shop", "/home/ann/store"


@pytest.fixture(autouse=True)
def no_cursor(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    running: list[str] = []
    monkeypatch.setattr(journal, "running_programs", lambda: iter(running))
    return running


@pytest.fixture
def cursor(empty_home: Path) -> CursorFiles:
    return CursorFiles(empty_home / ".config" / "Cursor" / "User")


def talk() -> tuple[dict[str, object], dict[str, object]]:
    return asked("a", "How do we store baskets?"), answered("b", "In Redis.")


def of_generation(cursor: CursorFiles, generation: int) -> None:
    """Write a conversation `c1` of OLD and another one, in the format of a generation."""
    listed: dict[str, Any] = {"composer.composerData": {"allComposers": [{"composerId": "c1"}, {"composerId": "c2"}]}}
    place = {"workspaceIdentifier": {"id": "old", "uri": {"fsPath": OLD, "path": OLD, "scheme": "file"}}}
    if generation == 1:  # stored in the workspace
        whole = record("c1", conversation=list(talk()), fullConversationHeadersOnly=[])
        listed = {"composer.composerData": {"allComposers": [whole]}}
    elif generation == 2:
        cursor.conversation("c1", *talk())
        cursor.conversation("c2", *talk())
    else:
        cursor.conversation("c1", *talk(), **place)
        cursor.conversation("c2", *talk(), **place)
        listed = {"composer.composerData": {"selectedComposerIds": ["c1", "c2"], "lastFocusedComposerIds": ["c1"]}}
        heads = [{"composerId": name, **place} for name in ("c1", "c2")]
        cursor.items({"composer.composerHeaders": {"allComposers": heads}})
    if generation == 4:
        for head in heads:
            cursor.header_row(str(head["composerId"]), head, workspaceId="old", recency=5)
    cursor.workspace("old", {"folder": f"file://{OLD}"}, listed)
    cursor.workspace("new", {"folder": f"file://{NEW}"}, {"other": 1})
    with writing(cursor.store):
        pass


GENERATIONS = pytest.mark.parametrize("generation", [1, 2, 3, 4])


def projects(cursor: CursorFiles) -> dict[str, str | None]:
    return {name: session.project for name, session in cursor.sessions().items()}


@GENERATIONS
def test_a_conversation_moves_and_comes_back(cursor: CursorFiles, tmp_path: Path, generation: int) -> None:
    of_generation(cursor, generation)
    before, said = projects(cursor), cursor.sessions()["c1"].messages
    assert before["c1"] == OLD
    changes = plan_move(cursor.user, ["c1"], target_of(cursor.user, NEW))
    assert projects(cursor) == before  # a plan writes nothing
    apply(changes, tmp_path / "journal.json", {})
    assert projects(cursor) == {**before, "c1": NEW}
    assert cursor.sessions()["c1"].messages == said
    assert plan_move(cursor.user, ["c1"], target_of(cursor.user, NEW)) == []
    undo(tmp_path / "journal.json")
    assert projects(cursor) == before
    assert plan_move(cursor.user, ["c1"], target_of(cursor.user, NEW)) == changes


def test_nothing_is_written_while_cursor_runs(cursor: CursorFiles, tmp_path: Path, no_cursor: list[str]) -> None:
    of_generation(cursor, 4)
    changes = plan_move(cursor.user, ["c1"], target_of(cursor.user, NEW))
    no_cursor.append("cursor")
    with pytest.raises(InvalidRequest, match="Cursor is running"):
        apply(changes, tmp_path / "journal.json", {})
    assert projects(cursor)["c1"] == OLD
    assert not (tmp_path / "journal.json").exists()


def test_a_folder_that_cursor_never_opened_is_refused(cursor: CursorFiles) -> None:
    of_generation(cursor, 4)
    with pytest.raises(InvalidRequest, match="does not know"):
        target_of(cursor.user, "/home/ann/nowhere")


@GENERATIONS
def test_rows_changed_since_the_plan_are_not_overwritten(cursor: CursorFiles, tmp_path: Path, generation: int) -> None:
    of_generation(cursor, generation)
    changes = plan_move(cursor.user, ["c1"], target_of(cursor.user, NEW))
    last = max(changes, key=lambda change: change.database)
    with writing(Path(last.database)) as connection:
        if last.before is None:
            connection.execute("INSERT INTO ItemTable VALUES (?, ?)", (last.key, json.dumps({"allComposers": []})))
        else:
            connection.execute("UPDATE ItemTable SET value = '{}' WHERE key = ?", (last.key,))
    others = {one.database for one in changes} - {last.database}
    held = {name: rows(name) for name in others}
    with pytest.raises(StorageError, match="meanwhile"):
        apply(changes, tmp_path / "journal.json", {})
    assert {name: rows(name) for name in others} == held


def rows(database: str) -> list[tuple[str, str]]:
    """Return the rows, regardless of white space in their JSON."""
    query = "SELECT key, json(value) FROM cursorDiskKV UNION ALL SELECT key, json(value) FROM ItemTable ORDER BY key"
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(query).fetchall()


@GENERATIONS
def test_a_copy_is_added_next_to_the_conversation_and_removed_again(
    cursor: CursorFiles, tmp_path: Path, generation: int
) -> None:
    of_generation(cursor, generation)
    before, held = cursor.sessions(), contents(cursor)
    steps = plan_copy(cursor.user, ["c1"], target_of(cursor.user, NEW))
    assert contents(cursor) == held  # a plan writes nothing
    apply(steps, tmp_path / "journal.json", {})
    after = cursor.sessions()
    [copied] = after.keys() - before.keys()
    assert {name: after[name] for name in before} == before
    assert after[copied].project == NEW
    assert [one.text for one in after[copied].messages] == [one.text for one in before["c1"].messages]
    assert not native_ids(after[copied]) & native_ids(before["c1"])
    assert SECRET not in (tmp_path / "journal.json").read_text(encoding="utf-8") or generation == 1
    undo(tmp_path / "journal.json")
    assert cursor.sessions() == before
    assert contents(cursor) == held


@pytest.mark.parametrize("generation", [2, 3, 4])
def test_a_continued_copy_is_not_removed(cursor: CursorFiles, tmp_path: Path, generation: int) -> None:
    of_generation(cursor, generation)
    before = cursor.sessions()
    apply(plan_copy(cursor.user, ["c1"], target_of(cursor.user, NEW)), tmp_path / "journal.json", {})
    [copied] = cursor.sessions().keys() - before.keys()
    with writing(cursor.store) as connection:
        connection.execute(
            "UPDATE cursorDiskKV SET value = json_set(value, '$.status', 'aborted') WHERE key = ?",
            (f"composerData:{copied}",),
        )
    held = contents(cursor)
    with pytest.raises(StorageError, match="was continued"):
        undo(tmp_path / "journal.json")
    assert contents(cursor) == held


@pytest.mark.parametrize("generation", [2, 3, 4])
def test_a_conversation_that_changes_while_a_copy_is_planned_is_not_copied_partly(
    cursor: CursorFiles, tmp_path: Path, generation: int
) -> None:
    of_generation(cursor, generation)
    steps = plan_copy(cursor.user, ["c1"], target_of(cursor.user, NEW))
    with writing(cursor.store) as connection:
        connection.execute("UPDATE cursorDiskKV SET value = '{}' WHERE key = 'bubbleId:c1:b'")
    held = contents(cursor)
    with pytest.raises(StorageError, match="meanwhile"):
        apply(steps, tmp_path / "journal.json", {})
    assert contents(cursor) == held


def contents(cursor: CursorFiles) -> dict[str, list[tuple[str, str]]]:
    """Return all rows of all databases."""
    return {str(name): rows(str(name)) for name in sorted(cursor.user.rglob("state.vscdb"))}


def native_ids(session: Session) -> set[str]:
    return {one.more["native_id"] for one in session.messages}
