"""Test that a project is its repository: subfolders, worktrees and clones belong to it, even if it is moved."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Ctxr

pytestmark = pytest.mark.both_databases


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Make a repository with a subfolder, a worktree elsewhere, and a submodule."""
    shop, library = tmp_path / "shop", tmp_path / "library"
    for folder in (shop, library):
        folder.mkdir()
        git(folder, "init", "--quiet")
        git(folder, "commit", "--quiet", "--allow-empty", "--message", f"begin {folder.name}")
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


def test_sessions_of_subfolders_and_worktrees_belong_to_the_repository(
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


def test_a_chat_continued_in_a_subfolder_stays_one_channel(ctxr: Ctxr, shop: Path) -> None:
    log(ctxr, "one", shop)
    log(ctxr, "one", shop / "web")
    assert listed(ctxr, "all") == {"one"}


def test_a_repository_in_the_home_folder_is_no_project(
    ctxr: Ctxr, empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(empty_home, "init", "--quiet")
    for name in ("diary", "garden"):
        (empty_home / name).mkdir()
        log(ctxr, name, empty_home / name)
    monkeypatch.chdir(empty_home / "diary")
    assert listed(ctxr) == {"diary"}


def test_extract_searches_the_named_project(
    ctxr: Ctxr, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for channel, folder in (("baskets", shop / "web"), ("wicker baskets", tmp_path / "other")):
        log(ctxr, channel, folder)

    def extracted(*words: str) -> str:
        return str(json.loads(ctxr("extract", "about baskets", *words, "--json").output)["channel"])

    monkeypatch.chdir(shop.parent / "elsewhere")
    assert extracted("--project", "current") == "baskets"
    assert extracted("--project", "other") == "wicker baskets"


@pytest.fixture(params=["sqlite", "postgresql"])
def either_ctxr(request: pytest.FixtureRequest, ctxr: Ctxr, monkeypatch: pytest.MonkeyPatch) -> Ctxr:
    if request.param == "postgresql":
        monkeypatch.setenv("CTXR_DATABASE_URL", request.getfixturevalue("postgres_url"))
    return ctxr


def found_in(ctxr: Ctxr, folder: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the channels listed for a folder, after checking that the note and `extract` know them all."""
    monkeypatch.chdir(folder)
    channels = listed(ctxr)
    note, extracted = ctxr("note").output, ctxr("extract", "about", "--project", "current", "--json").output
    assert {channel for channel in channels if f"about {channel}" in note} == channels
    assert all(json.loads(extracted)["channel"] in channels for _ in channels)
    return channels


def test_a_moved_repository_and_its_clones_find_its_sessions(
    either_ctxr: Ctxr, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log(either_ctxr, "basket", shop / "web")
    clone, bare, fork, other = (tmp_path / name for name in ("clone", "other/bare.git", "fork", "other"))
    git(tmp_path, "init", "--quiet", str(other))
    git(other, "commit", "--quiet", "--allow-empty", "--message", "another")
    git(tmp_path, "clone", "--quiet", str(shop), str(clone))
    git(tmp_path, "clone", "--quiet", "--bare", str(shop), str(bare))
    git(tmp_path, "clone", "--quiet", str(bare), str(fork))
    assert found_in(either_ctxr, clone, monkeypatch) == {"basket"}
    moved = shop.rename(tmp_path / "store")
    assert found_in(either_ctxr, moved, monkeypatch) == {"basket"}
    log(either_ctxr, "till", moved)
    assert found_in(either_ctxr, moved / "web", monkeypatch) == {"basket", "till"}
    for stranger in (fork, other):
        assert found_in(either_ctxr, stranger, monkeypatch) == set()
    log(either_ctxr, "fork", fork)
    second = tmp_path / "second"
    git(tmp_path, "clone", "--quiet", str(bare), str(second))
    assert found_in(either_ctxr, second, monkeypatch) == {"fork"}
    assert found_in(either_ctxr, moved, monkeypatch) == {"basket", "till"}
    assert found_in(either_ctxr, other, monkeypatch) == set()


@pytest.mark.parametrize(
    ("one", "another", "is_same"),
    [
        ("https://ann:s3cr3tpass@Example.org/me/shop.git", "git@example.org:me/shop", True),
        ("ssh://git@example.org/me/shop.git/", "https://example.org/me/shop?token=s3cr3tpass", True),
        ("https://example.org/me/shop", "https://example.org/fork/shop", False),
        ("https://example.org:8001/me/shop", "https://example.org:8002/me/shop", False),
    ],
)
def test_clones_belong_together_by_any_url_of_their_remote(
    ctxr: Ctxr,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    one: str,
    another: str,
    is_same: bool,
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, remote in ((first, one), (second, another)):
        git(tmp_path, "init", "--quiet", str(folder))
        git(folder, "remote", "add", "upstream", "https://example.org/all/shop")
        git(folder, "remote", "add", "origin", remote)
    log(ctxr, "basket", first)
    assert found_in(ctxr, second, monkeypatch) == ({"basket"} if is_same else set())
    kept = b"".join(file.read_bytes() for file in Path(os.environ["CTXR_HOME"]).rglob("*") if file.is_file())
    assert b"s3cr3tpass" not in kept
    assert b"example.org" not in kept


def test_a_repository_whose_first_commit_is_newer_than_its_first_session_is_recognised(
    ctxr: Ctxr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    young, empty = tmp_path / "young", tmp_path / "empty"
    for folder in (young, empty):
        folder.mkdir()
        log(ctxr, folder.name, folder)
        git(folder, "init", "--quiet")
    git(young, "commit", "--quiet", "--allow-empty", "--message", "first")
    assert listed(ctxr, "all") == {"young", "empty"}  # any question updates the registry
    assert found_in(ctxr, young.rename(tmp_path / "grown"), monkeypatch) == {"young"}
    assert found_in(ctxr, empty.rename(tmp_path / "bare"), monkeypatch) == set()


def test_sessions_moved_to_another_project_leave_its_clones(
    ctxr: Ctxr, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log(ctxr, "basket", shop)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(shop), str(clone))
    assert found_in(ctxr, clone, monkeypatch) == {"basket"}
    assert ctxr("project", "move", str(shop), str(tmp_path / "garden")).exit_code == 0
    assert found_in(ctxr, clone, monkeypatch) == set()
