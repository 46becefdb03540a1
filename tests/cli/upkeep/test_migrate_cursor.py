"""Test that a renamed project is also renamed in Cursor's own list."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sources.cursor import journal
from tests.cli.conftest import Ctxr
from tests.sources.cursor.cursor_files import SECRET, CursorFiles, answered, asked

OLD, NEW = "/home/ann/shop", "/home/ann/store"


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    monkeypatch.setattr(journal, "running_programs", lambda: iter(names))
    return names


@pytest.fixture
def cursor(ctxr: Ctxr, empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> CursorFiles:
    files = CursorFiles(empty_home / "cursor" / "User")
    monkeypatch.setenv("CTXR_CURSOR_DIR", str(files.user))
    place = {"workspaceIdentifier": {"id": "old", "uri": {"fsPath": OLD, "path": OLD, "scheme": "file"}}}
    files.conversation("c1", asked("a", "How do we store baskets?"), answered("b", "In Redis."), **place)
    files.workspace("old", {"folder": f"file://{OLD}"})
    files.workspace("new", {"folder": f"file://{NEW}"})
    assert ctxr("sync").exit_code == 0
    return files


def project_in(cursor: CursorFiles) -> str | None:
    return cursor.sessions()["c1"].project


def test_a_project_moves_in_cursor_and_here_and_back(ctxr: Ctxr, cursor: CursorFiles, running: list[str]) -> None:
    move = ("migrate", "workspace", OLD, NEW, "--in-cursor", "--json")
    would = json.loads(ctxr(*move, "--dry-run").stdout)
    assert (would["in_cursor"], project_in(cursor)) == ({"values": 1}, OLD)
    done = json.loads(ctxr(*move).stdout)
    assert project_in(cursor) == NEW
    noted = Path(done["in_cursor"]["journal"])
    assert SECRET not in noted.read_text(encoding="utf-8")
    assert json.loads(ctxr("show", "c1", "--json").stdout)["session"]["project_path"] == NEW
    assert ctxr("migrate", "undo", str(noted)).exit_code == 0
    assert project_in(cursor) == OLD
    assert json.loads(ctxr("show", "c1", "--json").stdout)["session"]["project_path"] == OLD


def test_nothing_moves_while_cursor_runs(ctxr: Ctxr, cursor: CursorFiles, running: list[str]) -> None:
    running.append("Cursor")
    refused = ctxr("migrate", "workspace", OLD, NEW, "--in-cursor")
    assert (refused.exit_code, project_in(cursor)) == (2, OLD)
    assert "Cursor is running" in refused.stderr
    assert json.loads(ctxr("show", "c1", "--json").stdout)["session"]["project_path"] == OLD


def test_a_copy_is_a_separate_conversation_in_cursor_and_here(
    ctxr: Ctxr, cursor: CursorFiles, running: list[str]
) -> None:
    copy = ("migrate", "session", "c1", NEW, "--in-cursor", "--copy", "--json")
    assert json.loads(ctxr(*copy, "--dry-run").stdout)["in_cursor"] == {"values": 3}
    done = json.loads(ctxr(*copy).stdout)
    assert ctxr("sync").exit_code == 0
    [copied] = cursor.sessions().keys() - {"c1"}
    shown = {name: json.loads(ctxr("show", name, "--json").stdout)["session"] for name in ("c1", copied)}
    assert [shown[name]["project_path"] for name in ("c1", copied)] == [OLD, NEW]
    assert ctxr("migrate", "undo", done["in_cursor"]["journal"]).exit_code == 0
    assert list(cursor.sessions()) == ["c1"]


def test_a_copy_is_made_in_cursor_or_not_at_all(ctxr: Ctxr, cursor: CursorFiles, running: list[str]) -> None:
    refused = ctxr("migrate", "session", "c1", NEW, "--copy")
    assert refused.exit_code == 2
    assert "in_cursor" in refused.stderr
