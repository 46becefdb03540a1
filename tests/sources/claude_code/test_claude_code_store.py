"""Claude Code's folder on disk: damage, changes, secrets, and no writes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from registry.errors import StorageError
from sources.base import FoundSession, Paths, Skipped
from sources.claude_code.reader import ClaudeCode
from sources.kit import jsonl
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, working_session, write, write_agent
from tests.sources.untouched import opened_files, state_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A configuration folder with one session."""
    folder = tmp_path / ".claude"
    write(folder, working_session())
    return folder


def read(root: Path, seen: Mapping[str, str] | None = None) -> tuple[list[FoundSession], list[Skipped]]:
    """Return the changed sessions of a store sorted by key, and what was skipped."""
    results = list(ClaudeCode().sessions(root, seen or {}))
    sessions = sorted((each for each in results if isinstance(each, FoundSession)), key=lambda each: each.key)
    return sessions, [each for each in results if isinstance(each, Skipped)]


def test_only_changed_sessions_are_read_again(root: Path) -> None:
    file = write(root, working_session(2))
    [first, second], _ = read(root)
    seen = {each.key: each.fingerprint for each in (first, second)}
    assert read(root, seen) == ([], [])

    talk = working_session(2)
    talk.user("One more")
    file.write_bytes(talk.lines())
    [changed], _ = read(root, seen)
    assert (changed.key, changed.session.messages[-1].text) == (second.key, "One more")


def test_the_newest_session_comes_first(root: Path) -> None:
    for number, age in ((2, 500), (3, 100), (4, 300)):
        os.utime(write(root, working_session(number)), (time.time() - age, time.time() - age))

    order = [each.session.session_id for each in ClaudeCode().sessions(root, {}) if isinstance(each, FoundSession)]
    assert order == [session_id(number) for number in (1, 3, 4, 2)]


@pytest.mark.parametrize(
    ("damage", "reported"),
    [
        (b"\n\n   \n", None),
        (b"\0\0\0\0\n", None),
        (b"not JSON\n{broken\n", ("line 2 and 1 more", "not JSON")),
        (b"[1,2]\n", ("line 2", "not a JSON object")),
        (b"[" * 100_000 + b"\n", ("line 2", "not JSON")),
        (b'{"n":' + b"9" * 5000 + b"}\n", ("line 2", "not JSON")),
    ],
)
def test_damage_in_the_middle_is_reported_and_the_rest_is_read(
    root: Path, damage: bytes, reported: tuple[str, str] | None
) -> None:
    file = write(root, working_session())
    whole = read(root)[0][0].session.messages
    head, *rest = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(head + damage + b"".join(rest))

    [found], _ = read(root)
    assert found.session.messages == whole
    assert found.skipped == ((Skipped(*reported),) if reported else ())


def test_two_records_on_one_line_and_invalid_utf_8_are_read(root: Path) -> None:
    talk = Dialogue(session_id(1))
    talk.user("One")
    talk.user("Two \udcff")
    lines = [json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogateescape") for record in talk.records]
    write(root, working_session()).write_bytes(b"\xef\xbb\xbf" + b"".join(lines) + b"\n")

    [found], _ = read(root)
    assert [message.text for message in found.session.messages] == ["One", "Two \N{REPLACEMENT CHARACTER}"]
    assert found.skipped == ()


def test_a_line_with_a_large_image_is_read_and_a_too_long_one_is_skipped(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl.read_lines, "__defaults__", (12 * 2**20,))
    talk = Dialogue(session_id(1))
    for text, size in (("large", 11), ("endless", 13)):
        picture = {"type": "image", "source": {"media_type": "image/png", "data": "A" * size * 2**20}}
        talk.user([{"type": "text", "text": text}, picture])
    talk.user("after")
    write(root, talk)

    [found], _ = read(root)
    assert [message.text for message in found.session.messages] == ["large", "after"]
    assert found.skipped[0].what == "line 2"


def test_a_file_without_a_conversation_is_reported_once_and_not_read_again(root: Path) -> None:
    snapshots = Dialogue(session_id(2))
    snapshots.aside("file-history-snapshot", messageId="m-1", snapshot={})
    titles = Dialogue(session_id(3))
    titles.aside("ai-title", aiTitle="Only a title")
    paths = [str(write(root, snapshots)), str(write(root, titles)), str(write(root, Dialogue(session_id(4))))]

    sessions, _ = read(root)
    empty = [each for each in sessions if not each.session.messages]
    assert [each.key for each in empty] == paths
    assert [each.skipped for each in empty] == [(Skipped(path, "no conversation in it"),) for path in paths]
    assert read(root, {each.key: each.fingerprint for each in sessions}) == ([], [])


def test_a_folder_a_pipe_and_a_broken_link_are_skipped(root: Path) -> None:
    project = write(root, working_session()).parent
    (project / "folder.jsonl").mkdir()
    os.mkfifo(project / "pipe.jsonl")
    (project / "circle.jsonl").symlink_to("circle.jsonl")
    (project / "notes.txt").write_text("no transcript", encoding="utf-8")

    sessions, skipped = read(root)
    assert len(sessions) == 1
    assert {(Path(each.what).name, each.why) for each in skipped} == {
        ("folder.jsonl", "a folder, not a file"),
        ("pipe.jsonl", "not a file"),
        ("circle.jsonl", "too many levels of symbolic links"),
    }


def test_a_file_deleted_while_reading_is_reported_and_the_others_are_read(root: Path) -> None:
    files = {str(write(root, working_session(number))) for number in (1, 2, 3)}
    results = ClaudeCode().sessions(root, {})
    first = next(results)
    assert isinstance(first, FoundSession)
    gone = min(files - {first.key})
    Path(gone).unlink()

    assert [each for each in results if isinstance(each, Skipped)] == [Skipped(gone, "no such file or directory")]


def test_an_unreadable_file_is_reported_and_the_others_are_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = str(write(root, working_session(2)))
    really_open = open

    def guarded_open(path: str, mode: str) -> object:
        if path == locked:
            raise PermissionError(13, "Permission denied", path)
        return really_open(path, mode, encoding=None)

    monkeypatch.setattr("builtins.open", guarded_open)
    sessions, skipped = read(root)
    assert [each.session.session_id for each in sessions] == [session_id(1)]
    assert skipped == [Skipped(locked, "permission denied")]


def test_an_unreadable_store_is_an_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("os.scandir", refuse)
    with pytest.raises(StorageError) as raised:
        read(root)
    assert raised.value.details == "permission denied"


def test_an_unreadable_project_folder_is_reported_and_the_others_are_read(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = str(write(root, working_session(2), project="/home/ann/other").parent)
    really_scan = os.scandir

    def guarded_scan(path: str) -> object:
        if path == locked:
            raise PermissionError(13, "Permission denied", path)
        return really_scan(path)

    monkeypatch.setattr("os.scandir", guarded_scan)
    sessions, skipped = read(root)
    assert [each.session.session_id for each in sessions] == [session_id(1)]
    assert skipped == [Skipped(locked, "permission denied")]


def everything(home: Path) -> Path:
    """Write a home folder with all files of the client, including secrets."""
    root = home / ".claude"
    write(root, working_session())
    write(root, working_session(2), project="/home/ann/other")
    write_agent(root, working_session(), "a1", {"agentType": "Explore"})
    secrets = (
        ".claude.json",
        ".claude/.credentials.json",
        ".claude/backups/projects/x/s.jsonl",
        ".claude/history.jsonl",
    )
    for secret in secrets:
        (home / secret).parent.mkdir(parents=True, exist_ok=True)
        (home / secret).write_text('{"type":"user","message":{"content":"sk-ant-oat01-secret"}}\n', encoding="utf-8")
    desktop = home / ".config" / "Claude" / "local-agent-mode-sessions" / "org" / "account"
    write(desktop / "local_7" / ".claude", working_session(7))
    record = {"sessionId": "local_7", "title": "Sort my invoices", "emailAddress": "ann@example.com"}
    (desktop / "local_7.json").write_text(json.dumps(record), encoding="utf-8")
    (desktop / "local_7" / "audit.jsonl").write_text("{}\n", encoding="utf-8")
    return root


def test_nothing_in_the_clients_folders_changes_and_no_secret_is_opened(empty_home: Path) -> None:
    everything(empty_home)
    before = state_of(empty_home)
    source = ClaudeCode()
    with opened_files() as opened:
        results = [each for store in source.find(Paths(empty_home, {})) for each in source.sessions(store, {})]

    assert len(results) == 4
    assert state_of(empty_home) == before
    inside = [Path(path) for path in opened if path.startswith(str(empty_home))]
    assert {path.suffix for path in inside} == {".jsonl", ".json"}
    assert not any("backups" in path.parts or path.name.startswith(("history", ".c", "audit")) for path in inside)
    assert "ann@example.com" not in repr(results)


def test_sessions_of_the_desktop_app_are_read_with_their_title(empty_home: Path) -> None:
    everything(empty_home)
    source = ClaudeCode()
    _, desktop = source.find(Paths(empty_home, {}))

    [found] = [each for each in source.sessions(desktop, {}) if isinstance(each, FoundSession)]
    assert (found.session.session_id, found.session.title) == (session_id(7), "Sort my invoices")
