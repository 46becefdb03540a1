"""Test `ctxr try`: it answers one question from the user's history and leaves nothing behind."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest

from benchmarks.setup.homes import write_home
from tests.cli.conftest import bare_ctxr


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def files_below(folder: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_question_is_answered_from_the_users_history_and_nothing_else_is_written(
    empty_home: Path, temporary_folder: Path
) -> None:
    write_home(empty_home, {"claude-code": 3, "codex": 2})
    before = files_below(empty_home)
    shown = bare_ctxr("try")
    assert shown.exit_code == 0, shown.output
    assert "claude-code: 3 sessions" in shown.output
    assert "codex: 2 sessions" in shown.output
    assert re.search(r", [\d-]{10} to [\d-]{10}; deleted by the client after 30 days", shown.output)
    assert "and gets this" in shown.output
    [folder] = temporary_folder.iterdir()
    assert f"rm -r {folder}" in shown.output
    assert files_below(empty_home) == before


def test_without_a_history_a_sample_is_searched(empty_home: Path) -> None:
    shown = bare_ctxr("try")
    assert shown.exit_code == 0, shown.output
    assert "No histories here yet" in shown.output
    assert "access tokens live 15 minutes" in shown.output


def test_the_users_registry_is_neither_read_nor_written(empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXR_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    shown = bare_ctxr("try")
    assert shown.exit_code == 0, shown.output
    assert not (empty_home / "ctxr").exists()
