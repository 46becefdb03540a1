"""Test the choice of watched folders: few, and most of what clients write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orchestrator.sync import watch
from orchestrator.sync.watch import plan
from sources.base import Paths
from sources.readers import READERS


def folders(home: Path) -> dict[str, frozenset[str]]:
    watched = plan(READERS, Paths(home, {}))
    return {os.path.relpath(folder, home): names for folder, names in watched.items()}


def made(*paths: Path) -> None:
    for path in paths:
        path.mkdir(parents=True)


def test_only_folders_with_conversations_are_watched_each_for_its_reader(empty_home: Path) -> None:
    cursor = empty_home / ".config" / "Cursor" / "User"
    made(
        empty_home / ".claude" / "projects" / "-shop" / "s-1" / "subagents",
        empty_home / ".claude" / "plugins" / "enormous",
        empty_home / ".codex" / "sessions" / "2026" / "05",
        empty_home / ".codex" / "log",
        cursor / "globalStorage",
        cursor / "workspaceStorage" / "w-1",
        cursor / "History" / "many",
    )
    claude, codex, ide = frozenset({"claude-code"}), frozenset({"codex"}), frozenset({"cursor"})
    assert folders(empty_home) == {
        ".claude/projects": claude,
        ".claude/projects/-shop": claude,
        ".claude/projects/-shop/s-1": claude,
        ".claude/projects/-shop/s-1/subagents": claude,
        ".codex/sessions": codex,
        ".codex/sessions/2026": codex,
        ".codex/sessions/2026/05": codex,
        ".config/Cursor/User/globalStorage": ide,
        ".config/Cursor/User/workspaceStorage": ide,
        ".config/Cursor/User/workspaceStorage/w-1": ide,
    }


def test_the_latest_of_too_many_folders_are_watched(empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "MAX_FOLDERS", 5)
    projects = empty_home / ".claude" / "projects"
    for number in range(4):
        made(projects / f"p-{number}" / "s")
        os.utime(projects / f"p-{number}", (number, number))
    watched = {Path(folder).relative_to(".claude/projects").as_posix() for folder in folders(empty_home)}
    assert watched == {".", "p-3", "p-3/s", "p-2", "p-2/s"}


def test_a_folder_that_cannot_be_listed_leaves_the_others_watched(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    projects = empty_home / ".claude" / "projects"
    made(projects / "closed" / "s-1", projects / "open" / "s-1")
    scandir = os.scandir

    def refused(folder: str) -> object:
        if folder == str(projects / "closed"):
            raise PermissionError(folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refused)
    watched = {Path(folder).relative_to(".claude/projects").as_posix() for folder in folders(empty_home)}
    assert watched == {".", "open", "open/s-1"}


def test_a_link_to_a_parent_folder_is_not_followed(empty_home: Path) -> None:
    project = empty_home / ".claude" / "projects" / "p"
    made(project)
    (project / "loop").symlink_to(empty_home)
    assert sorted(folders(empty_home)) == [".claude/projects", ".claude/projects/p"]


def test_without_clients_no_folder_is_watched(empty_home: Path) -> None:
    assert folders(empty_home) == {}
