"""Test `ctxr backup`: create, list, validate, and restore."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from orchestrator.archive import container
from registry.temporary_folder import TemporaryFolder
from sources.kit.sqlite_store import ClientDatabase
from tests.cli.conftest import FIBONACCI, Ctxr

SESSION = "5e550000-0000-4000-8000-000000000000"


def made(ctxr: Ctxr, *options: str) -> dict[str, Any]:
    result = ctxr("backup", "create", "--json", *options)
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.output))


def test_a_backup_is_created_validated_and_restored(ctxr: Ctxr) -> None:
    ctxr("log", "-", given=FIBONACCI)
    answer = made(ctxr)
    assert answer.keys() == {"path", "manifest"}
    assert all(len(part["sha256"]) == 64 for part in answer["manifest"]["parts"])
    ctxr("log", "-", given={**FIBONACCI, "channel": "later"})
    assert ctxr("backup", "validate", answer["path"]).exit_code == 0
    restored = ctxr("backup", "restore", answer["path"])
    assert restored.exit_code == 0, restored.output
    assert restored.output.startswith("1 session with 2 messages restored.\nThe previous contents: ")
    sessions = json.loads(ctxr("list", "--json").output)["sessions"]
    assert [session["channel"] for session in sessions] == [FIBONACCI["channel"]]
    assert len(json.loads(ctxr("backup", "list", "--json").output)["backups"]) == 2


def test_what_was_forgotten_after_a_backup_does_not_come_back_and_the_restore_says_so(ctxr: Ctxr) -> None:
    ctxr("log", "-", given=FIBONACCI)
    path = made(ctxr)["path"]
    ctxr("forget", "--matching", FIBONACCI["messages"][0]["text"], "--yes")
    restored = ctxr("backup", "restore", path).output.splitlines()
    assert restored[:2] == [
        "1 session with 2 messages restored.",
        "Of these, forgotten since the backup and not restored: 1 message.",
    ]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_named_and_no_partial_backup_stays(
    ctxr: Ctxr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctxr("log", "-", given=FIBONACCI)
    file, partial = tmp_path / "all.zip", tmp_path / "partial"
    partial.symlink_to("/dev/full")
    monkeypatch.setattr(container, "mkstemp", lambda **_: (os.open(partial, os.O_RDWR), str(partial)))
    refused = ctxr("backup", "create", str(file))
    assert (refused.exit_code, "Traceback" in refused.stderr) == (1, False)
    said = f"error: STORAGE_ERROR: The backup could not be written.\n{file}: No space left on device\n"
    assert refused.stderr.endswith(said)
    assert list(tmp_path.glob("ctxr-*")) == []


WRITE_AND_DIE = """
import os
from pathlib import Path
from registry.temporary_folder import TemporaryFolder
folder = TemporaryFolder({})
Path(folder.name, "registry.db").touch()
os._exit(1)
"""


def test_a_temporary_copy_of_a_killed_process_is_removed_and_that_of_a_running_one_stays(
    ctxr: Ctxr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    ctxr("log", "-", given=FIBONACCI)
    backups = Path(made(ctxr)["path"]).parent
    for folder in (tmp_path, backups):
        subprocess.run([sys.executable, "-c", WRITE_AND_DIE.format(repr(str(folder)))], check=False)
        assert len(list(folder.glob("ctxr-*/registry.db"))) == 1
    with TemporaryFolder(backups) as running:
        ctxr("list")
        assert list(tmp_path.glob("ctxr-*")) == []
        assert list(backups.glob("ctxr-*")) == [Path(running)]


def test_a_damaged_backup_is_refused_with_the_name_of_its_part(ctxr: Ctxr) -> None:
    ctxr("log", "-", given=FIBONACCI)
    path = Path(made(ctxr)["path"])
    part = b"registry/conversation.jsonl.0001"
    content = bytearray(path.read_bytes())
    content[content.index(part) + len(part) + 40] ^= 0xFF
    path.write_bytes(content)
    for verb in ("validate", "restore"):
        result = ctxr("backup", verb, str(path))
        assert result.exit_code == 1
        assert result.stderr.startswith("error: STORAGE_ERROR: The backup is damaged.")
        assert part.decode() in result.stderr
    assert json.loads(ctxr("backup", "validate", "--json", str(path)).stdout)["valid"] is False
    assert ctxr("backup", "restore", "--rest", str(path)).exit_code == 0


def test_a_backup_has_the_histories_of_clients_without_their_keys(ctxr: Ctxr, empty_home: Path) -> None:
    session = empty_home / ".claude" / "projects" / "shop" / f"{SESSION}.jsonl"
    session.parent.mkdir(parents=True)
    session.write_text('{"type":"user"}\n', encoding="utf-8")
    (empty_home / ".claude" / ".credentials.json").write_text("secret", encoding="utf-8")
    cursor = empty_home / "config" / "Cursor" / "User" / "globalStorage" / "state.vscdb"
    fill_cursor(cursor)
    answer = made(ctxr)
    names = [part["name"] for part in answer["manifest"]["parts"]]
    assert any(SESSION in name for name in names)
    assert not any("credentials" in name for name in names)
    assert {store["source"]: store["files"] for store in answer["manifest"]["stores"]} == {
        "claude-code": 1,
        "cursor": 1,
    }
    out = empty_home / "out"
    assert ctxr("backup", "restore", answer["path"], "--stores", str(out)).exit_code == 0
    assert (out / "claude-code" / "0" / "projects" / "shop" / f"{SESSION}.jsonl").read_bytes() == session.read_bytes()
    copy = out / "cursor" / "0" / "globalStorage" / "state.vscdb"
    with closing(sqlite3.connect(copy)) as database:
        assert database.execute("SELECT key FROM cursorDiskKV").fetchall() == [("composerData:1",)]
    assert b"bearer" not in copy.read_bytes()
    assert ctxr("backup", "restore", answer["path"], "--stores", str(out)).exit_code == 2, "it is not empty now"


def fill_cursor(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        database.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        database.execute("INSERT INTO ItemTable VALUES ('cursorAuth/accessToken', 'bearer')")
        database.execute("INSERT INTO cursorDiskKV VALUES ('composerData:1', '{}')")


def test_a_name_in_another_encoding_is_escaped_in_a_backup(ctxr: Ctxr, empty_home: Path) -> None:
    project = empty_home / os.fsdecode(b"\xc7\xd1")
    project.mkdir()
    (project / ".aider.chat.history.md").write_text("# aider chat started at 2026-11-22 07:11:16\n", encoding="utf-8")
    memory = empty_home / ".claude" / "projects" / "shop" / "memory"
    memory.mkdir(parents=True)
    (memory / os.fsdecode(b"\xc7\xd1.md")).write_text("A note.", encoding="utf-8")
    path = made(ctxr)["path"]
    restored = ctxr("backup", "restore", path, "--stores", str(empty_home / "restored"))
    assert restored.exit_code == 0, restored.output
    files = {file.name for file in (empty_home / "restored").rglob("*") if file.is_file()}
    assert files == {".aider.chat.history.md", r"\xc7\xd1.md"}


def test_a_store_that_its_client_is_writing_is_copied_in_its_committed_state(tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    fill_cursor(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as client:
        client.execute("PRAGMA journal_mode=WAL")
        client.execute("INSERT INTO cursorDiskKV VALUES ('composerData:2', '{}')")
        client.execute("BEGIN IMMEDIATE")
        client.execute("INSERT INTO cursorDiskKV VALUES ('composerData:3', '{}')")
        before = sorted((file.name, file.stat().st_mtime_ns) for file in tmp_path.iterdir())
        with ClientDatabase(path) as database:
            database.copy_to(tmp_path / "copy.db")
        (copy,) = (file for file in tmp_path.iterdir() if file.name == "copy.db")
        with closing(sqlite3.connect(copy)) as copied:
            keys = [key for (key,) in copied.execute("SELECT key FROM cursorDiskKV ORDER BY key")]
        assert keys == ["composerData:1", "composerData:2"]
        copy.unlink()
        assert sorted((file.name, file.stat().st_mtime_ns) for file in tmp_path.iterdir()) == before


def test_a_token_revoked_after_the_backup_stays_revoked(ctxr: Ctxr, tmp_path: Path) -> None:
    assert ctxr("token", "create", "--name", "laptop").exit_code == 0
    copy = tmp_path / "copy.zip"
    assert ctxr("backup", "create", "--no-stores", str(copy)).exit_code == 0
    assert ctxr("token", "revoke", "laptop").exit_code == 0
    assert ctxr("backup", "restore", str(copy)).exit_code == 0
    (laptop,) = json.loads(ctxr("token", "list", "--json").stdout)["tokens"]
    assert laptop["state"] == "revoked"
