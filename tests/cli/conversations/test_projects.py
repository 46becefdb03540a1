"""A project is its repository: its subfolders and worktrees belong to it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Ctxr


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with a subfolder, a worktree elsewhere, and a submodule."""
    shop, library = tmp_path / "shop", tmp_path / "library"
    for folder in (shop, library):
        folder.mkdir()
        git(folder, "init", "--quiet")
        git(folder, "commit", "--quiet", "--allow-empty", "--message", "first")
    (shop / "web").mkdir()
    git(shop, "worktree", "add", "--quiet", str(tmp_path / "elsewhere"))
    git(shop, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "vendored")
    return shop


def git(folder: Path, *words: str) -> None:
    named = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    subprocess.run(["git", "-C", str(folder), *named, *words], check=True, capture_output=True)


def log(ctxr: Ctxr, channel: str, folder: Path) -> None:
    talk = {
        "channel": channel,
        "messages": [{"role": "user", "text": f"about {channel}"}],
        "meta": {"project": str(folder)},
    }
    assert ctxr("log", "-", given=talk).exit_code == 0


def listed(ctxr: Ctxr, project: str = "current") -> set[str]:
    return {one["channel"] for one in json.loads(ctxr("list", "--project", project, "--json").output)["sessions"]}


def test_sessions_of_subfolders_and_worktrees_are_the_repositorys(
    ctxr: Ctxr, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worktree = shop.parent / "elsewhere"
    for channel, folder in (("top", shop), ("sub", shop / "web"), ("tree", worktree), ("module", shop / "vendored")):
        log(ctxr, channel, folder)
    for folder in (shop, shop / "web", worktree):
        monkeypatch.chdir(folder)
        assert listed(ctxr) == {"top", "sub", "tree"}, folder
        assert "about" in ctxr("note").output
        assert listed(ctxr, str(folder)) == {"top", "sub", "tree"}
    monkeypatch.chdir(shop / "vendored")
    assert listed(ctxr) == {"module"}


def test_a_chat_that_goes_on_in_a_subfolder_stays_one_channel(ctxr: Ctxr, shop: Path) -> None:
    log(ctxr, "one", shop)
    log(ctxr, "one", shop / "web")
    assert listed(ctxr, "all") == {"one"}


def test_a_repository_of_the_home_folder_is_no_project(
    ctxr: Ctxr, empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(empty_home, "init", "--quiet")
    for name in ("diary", "garden"):
        (empty_home / name).mkdir()
        log(ctxr, name, empty_home / name)
    monkeypatch.chdir(empty_home / "diary")
    assert listed(ctxr) == {"diary"}


def test_extract_looks_in_the_project_that_is_named(
    ctxr: Ctxr, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for channel, folder in (("baskets", shop / "web"), ("wicker baskets", tmp_path / "other")):
        log(ctxr, channel, folder)

    def extracted(*words: str) -> str:
        return str(json.loads(ctxr("extract", "about baskets", *words, "--json").output)["channel"])

    monkeypatch.chdir(shop.parent / "elsewhere")
    assert extracted("--project", "current") == "baskets"
    assert extracted("--project", "other") == "wicker baskets"
