"""Test `ctxr import` with exports of accounts and of sessions."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.operations import run_operation
from tests.cli.conftest import Ctxr
from tests.sources.claude_code.claude_code_files import working_session, write
from tests.sources.exports.export_files import (
    ClaudeChat,
    chatgpt_chat,
    chatgpt_files,
    claude_chat,
    claude_files,
    write_zip,
)


def test_both_exports_are_imported_and_can_be_searched(ctxr: Ctxr, tmp_path: Path) -> None:
    claude = write_zip(tmp_path / "claude.zip", claude_files(claude_chat()))
    chatgpt = write_zip(tmp_path / "chatgpt.zip", chatgpt_files(chatgpt_chat(2)))
    done = ctxr("import", str(claude), str(chatgpt))
    assert done.output.splitlines() == [
        f"claude: 1 session read, 10 new messages ({claude})",
        f"chatgpt: 1 session read, 9 new messages ({chatgpt})",
        "in all: 2 sessions read, 19 new messages",
    ]
    found = json.loads(ctxr("search", "basket", "--json").output)
    assert {session["source"] for session in found["sessions"]} == {"claude", "chatgpt"}


def test_the_report_has_the_format_of_a_sync(ctxr: Ctxr, tmp_path: Path) -> None:
    path = write_zip(tmp_path / "x.zip", chatgpt_files(chatgpt_chat()))
    [store] = json.loads(ctxr("import", str(path), "--json").output)["stores"]
    assert store == {
        "source": "chatgpt",
        "path": str(path),
        "seen": 1,
        "parsed": 1,
        "new_messages": 9,
        "skipped": [],
        "skipped_count": 0,
        "has_news": True,
        "is_complete": True,
    }
    [again] = json.loads(ctxr("import", str(path), "--json").output)["stores"]
    assert (again["seen"], again["parsed"], again["new_messages"]) == (1, 0, 0)


@pytest.mark.parametrize("command", ["show", "export"])
def test_attachments_are_named_in_a_conversation(ctxr: Ctxr, tmp_path: Path, command: str) -> None:
    ctxr("import", str(write_zip(tmp_path / "x.zip", claude_files(claude_chat()))))
    assert "(attached: pasted text, shot.png)" in ctxr(command, "1").output


def test_a_damaged_export_lists_what_was_skipped(ctxr: Ctxr, tmp_path: Path) -> None:
    whole = claude_files(claude_chat(1), claude_chat(2))["conversations.json"]
    (tmp_path / "conversations.json").write_bytes(whole[:-10])
    done = ctxr("import", str(tmp_path))
    assert done.exit_code == 1
    assert "claude: 1 session read, 10 new messages, 2 skipped" in done.output
    assert "skipped: conversations.json, conversation 2: cut off or damaged" in done.output


def test_a_conversation_without_messages_is_named_and_is_no_failure(ctxr: Ctxr, tmp_path: Path) -> None:
    path = write_zip(tmp_path / "x.zip", claude_files(claude_chat(1), ClaudeChat(2)))
    done = ctxr("import", str(path))
    assert (done.exit_code, "1 x a conversation: no messages in it" in done.output) == (0, True)


def test_a_wrong_file_is_refused_and_nothing_is_imported(ctxr: Ctxr, tmp_path: Path) -> None:
    right = write_zip(tmp_path / "x.zip", claude_files(claude_chat()))
    (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8")
    done = ctxr("import", str(right), str(tmp_path / "photo.jpg"))
    assert done.exit_code == 2
    assert "error: INVALID_REQUEST: Not an export of an account: photo.jpg\n" in done.output
    assert "Expected: the zip from Claude.ai or ChatGPT" in done.output
    assert json.loads(ctxr("list", "--json").output)["sessions"] == []


@pytest.mark.slow
def test_a_terminal_shows_progress_and_ctrl_c_loses_nothing(ctxr: Ctxr, tmp_path: Path) -> None:
    chats = [chatgpt_chat(number) for number in range(300)]
    path = write_zip(tmp_path / "x.zip", chatgpt_files(*chats))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "cli.entry", "import", str(path)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs) as running:
        os.close(theirs)
        shown = b""
        while not re.search(rb"[3-9]\d%", shown):
            shown += os.read(ours, 1000)
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=60) == 130
    os.close(ours)
    assert b"chatgpt" in shown
    stored = json.loads(ctxr("list", "--json", "--limit", "1").output)["pagination"]["total"]
    [rest] = json.loads(ctxr("import", str(path), "--json").output)["stores"]
    assert (0 < stored < 300, rest["parsed"], rest["new_messages"]) == (True, 300 - stored, 9 * (300 - stored))


def test_a_pipe_is_refused_and_not_waited_for(ctxr: Ctxr, tmp_path: Path) -> None:
    pipe = tmp_path / "export.json"
    os.mkfifo(pipe)
    done = ctxr("import", str(pipe))
    assert (done.exit_code, f"There is no file or folder {pipe}." in done.output) == (2, True)


@pytest.fixture
def exported_session(ctxr: Ctxr, empty_home: Path, tmp_path: Path) -> Path:
    """Export a session that its client's store holds, with thoughts and tool calls."""
    write(empty_home / ".claude", working_session())
    ctxr("sync")
    ctxr("export", "1", "--format", "json", "--output", str(tmp_path / "session.json"))
    return tmp_path / "session.json"


def all_messages(ctxr: Ctxr) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = json.loads(ctxr("show", "1", "--all", "--json").output)["messages"]
    return messages


def test_importing_a_document_of_a_session_in_a_clients_store_adds_nothing(ctxr: Ctxr, exported_session: Path) -> None:
    before = all_messages(ctxr)
    assert {"tool", "thinking"} <= {message["role"] for message in before}
    assert "1 session read, 0 new messages" in ctxr("import", str(exported_session)).output
    assert all_messages(ctxr) == before


def test_syncing_a_session_that_was_imported_as_a_document_adds_nothing(
    ctxr: Ctxr, exported_session: Path, empty_home: Path
) -> None:
    shutil.rmtree(empty_home / "ctxr")  # as in the registry of another machine
    ctxr("import", str(exported_session))
    ctxr("sync")
    told = json.loads(exported_session.read_bytes())["messages"]
    assert [message["text"] for message in all_messages(ctxr)] == [message["text"] for message in told]


def title_of(ctxr: Ctxr) -> str | None:
    title: str | None = json.loads(ctxr("list", "--json").output)["sessions"][0]["title"]
    return title


def test_a_title_that_the_user_gave_is_kept_in_an_import_unless_a_later_one_was_given(
    ctxr: Ctxr, exported_session: Path, empty_home: Path
) -> None:
    exported_session.unlink()
    run_operation("tag", {"title": "Basket"}, json.loads(ctxr("list", "--json").output)["sessions"][0]["channel"])
    ctxr("export", "1", "--format", "json", "--output", str(exported_session))
    shutil.rmtree(empty_home / "ctxr")
    assert ctxr("import", str(exported_session)).exit_code == 0
    [file] = (empty_home / ".claude").rglob("*.jsonl")
    renamed = {"type": "custom-title", "customTitle": "The client's", "sessionId": file.stem}
    file.write_text(f"{file.read_text(encoding='utf-8')}{json.dumps(renamed)}\n", encoding="utf-8")
    ctxr("sync")
    assert title_of(ctxr) == "Basket"
    run_operation("tag", {"title": "Later"}, json.loads(ctxr("list", "--json").output)["sessions"][0]["channel"])
    ctxr("import", str(exported_session))
    assert title_of(ctxr) == "Later"
