"""Test a registry that this user can read but not write: it answers, and says what it cannot do."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cli.running.exposure import local_secret
from orchestrator import opening
from orchestrator.lazy import LazyOrchestrator
from registry.errors import StorageError
from registry.registry import Registry
from registry.settings import Settings
from registry.storage import connections, database
from tests.cli.conftest import FIBONACCI, Ctxr


@pytest.fixture
def read_only(ctxr: Ctxr, empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> Ctxr:
    """Make the registry look read-only: file modes do not stop root, but SQLite opens it read-only all the same."""
    ctxr("log", "-", given=FIBONACCI)
    ctxr("list")
    pretend(monkeypatch, lambda file: file.name == "registry.db" and file.is_file())
    return ctxr


def pretend(monkeypatch: pytest.MonkeyPatch, is_read_only: Callable[[Path], bool]) -> None:
    for place in (connections, database):
        monkeypatch.setattr(place, "is_read_only", is_read_only)


def json_of(done: Any) -> Any:
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_read_only_registry_lists_shows_searches_and_extracts(
    read_only: Ctxr, empty_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = {file.name: file.read_bytes() for file in (empty_home / "ctxr").glob("registry.db*")}
    assert len(json_of(read_only("list", "--json"))["sessions"]) == 1
    assert len(json_of(read_only("show", FIBONACCI["channel"], "--json"))["messages"]) == 2
    assert len(json_of(read_only("search", "피보나치", "--json"))["sessions"]) == 1
    assert len(json_of(read_only("extract", "피보나치", "--json"))["messages"]) == 2
    assert json_of(read_only("token", "list", "--json"))["tokens"] == []
    assert json_of(read_only("forget", FIBONACCI["channel"], "--dry-run", "--json"))["messages"] == 2
    assert "No secrets" in read_only("scan").output
    assert "The registry is read only" in caplog.text
    assert {file.name: file.read_bytes() for file in (empty_home / "ctxr").glob("registry.db*")} == before


def test_on_a_full_disk_commands_that_read_work(ctxr: Ctxr, empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ctxr("log", "-", given=FIBONACCI)
    monkeypatch.setattr(connections, "disk_usage", lambda _: SimpleNamespace(free=0))
    assert len(json_of(ctxr("list", "--json"))["sessions"]) == 1
    assert len(json_of(ctxr("extract", "피보나치", "--json"))["messages"]) == 2
    refused = ctxr("log", "-", given=FIBONACCI)
    assert (refused.exit_code, "or the disk is full" in refused.stderr) == (1, True)
    assert [file.name for file in (empty_home / "ctxr").glob("registry.db*")] == ["registry.db"]


def test_a_command_that_writes_says_why_it_cannot(read_only: Ctxr) -> None:
    for words in (["log", "-"], ["forget", FIBONACCI["channel"], "--yes"]):
        done = read_only(*words, given=FIBONACCI)
        assert done.exit_code == 1
        assert "The registry is read only." in done.output
        assert "cannot be written by this user" in done.output


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that root cannot write")
def test_a_folder_in_which_no_registry_can_be_made_is_named(ctxr: Ctxr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXR_HOME", "/proc/self")
    refused = ctxr("list")
    assert (refused.exit_code, "set CTXR_HOME" in refused.stderr) == (1, True)
    assert "error: STORAGE_ERROR: The folder /proc/self cannot be written.\n" in refused.stderr


@pytest.mark.anyio
async def test_messages_that_another_user_writes_meanwhile_are_read(
    read_only: Ctxr, empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{empty_home / 'ctxr' / 'registry.db'}"
    reader = Registry(url)
    pretend(monkeypatch, lambda _: False)
    assert len(await reader.get_conversations(FIBONACCI["channel"])) == 2
    writer = Registry(url)
    await writer.save_conversation(FIBONACCI["channel"], [{"role": "user", "text": "And now?"}], "cursor")
    writer.close()
    assert len(await reader.get_conversations(FIBONACCI["channel"])) == 3
    reader.close()


@pytest.mark.anyio
async def test_a_chat_window_stores_again_as_soon_as_it_can(read_only: Ctxr, monkeypatch: pytest.MonkeyPatch) -> None:
    asking = {"operation": "extract", "query": {"text": "피보나치"}}
    storing = {"operation": "conversation_log", "channel": "c", "messages": [{"role": "user", "text": "And now?"}]}
    window = LazyOrchestrator(Settings())
    try:
        refused = await window.run(storing)
        before = await window.run(asking)
        pretend(monkeypatch, lambda _: False)
        after = [await window.run(given) for given in (storing, asking)]
    finally:
        await window.close()
    assert refused["error"]["message"] == "The registry is read only."
    assert before["success"]
    assert all(answer["success"] for answer in after)


@pytest.mark.anyio
async def test_a_chat_window_keeps_reading_while_the_writable_registry_cannot_be_opened(
    read_only: Ctxr, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asking = {"operation": "extract", "query": {"text": "피보나치"}}
    window = LazyOrchestrator(Settings())
    try:
        answers = [await window.run(asking)]
        pretend(monkeypatch, lambda _: False)
        with monkeypatch.context() as refused:
            refused.setattr(opening, "Registry", raising(StorageError("Could not open the registry.", "locked")))
            answers.append(await window.run(asking))
        storing = {"operation": "conversation_log", "channel": "c", "messages": [{"role": "user", "text": "And now?"}]}
        answers.append(await window.run(storing))
    finally:
        await window.close()
    assert all(answer["success"] for answer in answers)
    assert "The registry stays read only: Could not open the registry. locked" in caplog.text


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS])
def test_serving_a_read_only_registry_makes_a_secret_for_that_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    (tmp_path / "registry.db").touch()
    with monkeypatch.context() as refused:
        refused.setattr(os, "open", raising(OSError(code, "not here")))
        assert local_secret(tmp_path) != local_secret(tmp_path)
    assert local_secret(tmp_path) == local_secret(tmp_path)
    (tmp_path / "local-secret").unlink()
    monkeypatch.setattr(os, "open", raising(OSError(errno.ENOSPC, "full")))
    with pytest.raises(StorageError):
        local_secret(tmp_path)


def raising(error: Exception) -> Any:
    def refuse(*_: Any, **__: Any) -> Any:
        raise error

    return refuse


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everything")
def test_the_modes_of_file_and_folder_decide_whether_it_is_read_only(tmp_path: Path) -> None:
    file = tmp_path / "registry.db"
    assert not connections.is_read_only(file)
    file.touch(0o400)
    assert connections.is_read_only(file)
    file.chmod(0o600)
    tmp_path.chmod(0o500)
    assert connections.is_read_only(file)
