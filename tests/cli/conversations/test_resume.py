"""Test `ctxr resume`: a conversation is continued in another client and stays one conversation."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import pytest

from registry.domain import format_time, now
from tests.cli.conftest import Ctxr
from tests.sources.opencode import opencode_files

TALK = {
    "channel": "cursor_session_payments",
    "messages": [
        {"role": "user", "text": "결제를 몇 번까지 재시도할까?", "timestamp": "2026-01-05T10:00:00Z"},
        {"role": "assistant", "text": "다섯 번까지, 지수 백오프로.", "timestamp": "2026-01-05T10:00:09Z"},
        {"role": "tool", "text": "Read src/pay.py", "timestamp": "2026-01-05T10:00:10Z"},
        {"role": "user", "text": "And the idempotency key?", "timestamp": "2026-01-05T10:01:00Z"},
        {"role": "assistant", "text": "The order's id.", "timestamp": "2026-01-05T10:01:09Z"},
    ],
    "meta": {"source": "cursor", "title": "Retries"},
}
PROGRAMS = {
    "claude-code": ("claude", "2.1.332 (Claude Code)"),
    "codex": ("codex", "codex-cli 0.171.0"),
    "gemini-cli": ("gemini", "0.61.0"),
    "opencode": ("opencode", "1.18.33"),
    "copilot-cli": ("copilot", "GitHub Copilot CLI 1.0.102."),
    "qwen-code": ("qwen", "0.24.4"),
}


@pytest.fixture
def folder(empty_home: Path, ctxr: Ctxr) -> Path:
    """Log a conversation, and make its project folder known to Gemini CLI."""
    folder = empty_home / "work"
    folder.mkdir()
    known = empty_home / ".gemini" / "projects.json"
    known.parent.mkdir()
    known.write_text(json.dumps({"projects": {str(folder): "work"}}))
    model = empty_home / "config" / "opencode" / "opencode.json"
    model.parent.mkdir(parents=True)
    model.write_text('{\n  // 내 설정\n  "model": "anthropic/claude-sonnet-4-6",\n}\n', encoding="utf-8")
    assert ctxr("log", "-", given=TALK).exit_code == 0
    return folder


@pytest.fixture
def installed(empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder of programs that only print the clients' versions; use it as PATH."""
    programs = empty_home / "bin"
    programs.mkdir()
    for name, version in PROGRAMS.values():
        write_program(programs / name, version)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    return programs


def write_program(program: Path, version: str) -> None:
    program.write_text(f"#!/bin/sh\necho '{version}'\n")
    program.chmod(0o755)


def resume(ctxr: Ctxr, client: str, folder: Path, *more: str) -> dict[str, Any]:
    done = ctxr("resume", "cursor_session_payments", "--in", client, "--folder", str(folder), "--json", *more)
    assert done.exit_code == 0, done.output
    return dict(json.loads(done.output))


def messages(ctxr: Ctxr) -> list[str]:
    [session] = json.loads(ctxr("list", "--json").output)["sessions"]
    shown = json.loads(ctxr("show", session["channel"], "--json").output)
    return [message["text"] for message in shown["messages"]]


def continue_session(client: str, path: Path, session_id: str, question: str) -> None:
    """Write one more question into the session, as the client does."""
    at = format_time(now())
    records: dict[str, dict[str, Any]] = {
        "claude-code": {
            "type": "user",
            "uuid": "5c0ffee0-0000-4000-8000-000000000001",
            "parentUuid": json.loads(path.read_text().splitlines()[3])["uuid"] if client == "claude-code" else None,
            "sessionId": session_id,
            "message": {"role": "user", "content": question},
        },
        "codex": {"type": "event_msg", "payload": {"type": "user_message", "message": question}},
        "gemini-cli": {"id": "new", "type": "user", "content": [{"text": question}]},
        "copilot-cli": {"id": "new", "type": "user.message", "data": {"content": question, "messageId": "new"}},
        "qwen-code": {
            "type": "user",
            "uuid": "new",
            "parentUuid": json.loads(path.read_text().splitlines()[-1]).get("uuid") if client == "qwen-code" else None,
            "sessionId": session_id,
            "message": {"role": "user", "parts": [{"text": question}]},
        },
    }
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**records[client], "timestamp": at}) + "\n")


def test_messages_in_other_clients_join_the_conversation_also_the_same_question_in_several(
    ctxr: Ctxr, folder: Path, installed: Path
) -> None:
    said, question = messages(ctxr), "And the idempotency key?"
    written = {client: resume(ctxr, client, folder) for client in ("codex", "gemini-cli", "copilot-cli", "qwen-code")}
    for client in (*written, "claude-code"):
        session = written.get(client) or resume(ctxr, client, folder)
        path, session_id = Path(session["path"]), session["session_id"]
        assert session["command"][0] == PROGRAMS[client][0]
        assert session_id in " ".join(session["command"])
        assert path.stat().st_mode & 0o777 == 0o600
        assert ctxr("sync").exit_code == 0
        assert messages(ctxr) == said, f"reading the session of {client} adds nothing"
        continue_session(client, path, session_id, question)
        assert ctxr("sync").exit_code == 0
        said.append(question)
        assert messages(ctxr) == said, client
        assert ctxr("show", session_id).exit_code == 0, "it is found by its new id"


def test_opencode_gets_a_document_that_it_can_import(ctxr: Ctxr, folder: Path, installed: Path) -> None:
    written = resume(ctxr, "opencode", folder)
    assert written["before"] == ["opencode", "import", written["path"]]
    document = json.loads(Path(written["path"]).read_text())
    assert [message["info"]["role"] for message in document["messages"]] == ["user", "assistant"] * 2
    assert document["messages"][1]["parts"][0]["text"] == "다섯 번까지, 지수 백오프로.\n\n[Read src/pay.py]"
    ids = [message["info"]["id"] for message in document["messages"]]
    assert ids == sorted(ids), "the client sorts by them"
    assert document["messages"][0]["info"]["model"] == {"providerID": "anthropic", "modelID": "claude-sonnet-4-6"}


def test_the_client_is_opened_after_it_has_imported_the_document(ctxr: Ctxr, folder: Path, installed: Path) -> None:
    calls = folder / "calls"
    (installed / "opencode").write_text(f"#!/bin/sh\necho 1.18.33\necho $PWD $1 >> {calls}\n")
    done = ctxr("resume", "cursor_session_payments", "--in", "opencode", "--folder", str(folder), "--run")
    assert done.exit_code == 0, done.output
    assert calls.read_text().splitlines()[-2:] == [f"{folder} import", f"{folder} -s"]


def test_a_session_that_opencode_has_imported_cannot_be_undone(
    ctxr: Ctxr, folder: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = resume(ctxr, "opencode", folder)
    session_id = written["session_id"]
    store = folder.parent / "data" / "opencode"
    monkeypatch.setattr(opencode_files.Dialogue, "session", session_id)
    opencode_files.write_database(store, opencode_files.working_dialogue())
    assert ctxr("sync").exit_code == 0
    refused = ctxr("resume", "cursor_session_payments", "--in", "opencode", "--undo")
    assert refused.exit_code == 2
    assert "imported the session" in refused.output
    assert not Path(written["path"]).exists(), "our file is removed after the client imported it"


def test_the_document_of_a_resumed_session_is_deleted_when_it_is_forgotten(
    ctxr: Ctxr, folder: Path, installed: Path
) -> None:
    written = resume(ctxr, "opencode", folder)
    assert ctxr("forget", "--channel", "cursor_session_payments", "--yes").exit_code == 0
    assert not Path(written["path"]).exists()


def test_messages_that_do_not_fit_are_left_out_and_the_note_says_so(ctxr: Ctxr, folder: Path, installed: Path) -> None:
    before = messages(ctxr)
    written = resume(ctxr, "claude-code", folder, "--last", "1")
    assert (written["left_out"], written["message_count"]) == (3, 3)
    note, *said = map(json.loads, Path(written["path"]).read_text().splitlines())
    assert "3 earlier messages are left out" in note["message"]["content"]
    assert "began in Cursor." in note["message"]["content"]
    assert said[0]["message"]["content"] == "And the idempotency key?"
    ctxr("sync")
    assert messages(ctxr) == before, "the note is not imported"


def test_tool_calls_stay_calls_and_replaced_answers_are_left_out(ctxr: Ctxr, folder: Path, installed: Path) -> None:
    call = {"name": "Read File!", "params": {"file_path": "a.py"}, "result": "x" * 9_000, "status": "completed"}
    said = [{"role": "tool", "text": "Read a.py", "tool": call}, {"role": "assistant", "text": "It is long."}]
    said.append({"role": "assistant", "text": "It is short.", "superseded": True})
    talk = {"channel": "calls", "messages": [{"role": "user", "text": "Look into a.py"}, *said]}
    assert ctxr("log", "-", given=talk).exit_code == 0

    def written(*more: str) -> list[dict[str, Any]]:
        done = ctxr("resume", "calls", "--in", "codex", "--folder", str(folder), "--json", *more)
        lines = map(json.loads, Path(json.loads(done.output)["path"]).read_text().splitlines())
        return [line["payload"] for line in lines if line["type"] == "response_item"]

    question, asked, told, answer = written()
    assert (asked["name"], json.loads(asked["arguments"])) == ("Read_File_", {"file_path": "a.py"})
    assert told["call_id"] == asked["call_id"]
    assert len(told["output"]) < 4_100, "shortened to its beginning and end"
    assert [part["content"][0]["text"] for part in (question, answer)] == ["Look into a.py", "It is long."]
    question, answer = written("--max-tokens", "100")
    assert answer["content"][0]["text"].startswith("[Read a.py]"), "one line in a small budget"


def test_a_dry_run_writes_nothing(ctxr: Ctxr, folder: Path, installed: Path) -> None:
    assert not Path(resume(ctxr, "codex", folder, "--dry-run")["path"]).exists()


def test_a_written_session_can_be_undone_until_it_is_continued(ctxr: Ctxr, folder: Path, installed: Path) -> None:
    path = Path(resume(ctxr, "codex", folder)["path"])
    assert resume(ctxr, "codex", folder, "--undo")["removed"] == [str(path)]
    assert not path.exists()
    assert ctxr("resume", "1", "--in", "codex", "--undo").exit_code == 3
    written = resume(ctxr, "codex", folder)
    continue_session("codex", Path(written["path"]), written["session_id"], "Go on")
    refused = ctxr("resume", "1", "--in", "codex", "--undo")
    assert refused.exit_code == 2
    assert "continued there" in refused.output
    assert Path(written["path"]).exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_leaves_no_part_of_a_session(
    ctxr: Ctxr, folder: Path, installed: Path, empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_full(descriptor: int, *_: str, **__: str) -> IO[str]:
        os.close(descriptor)
        return Path("/dev/full").open("w")

    with monkeypatch.context() as full:
        full.setattr("orchestrator.operations.resume.open", open_full, raising=False)
        refused = ctxr("resume", "1", "--in", "codex", "--folder", str(folder))
    assert (refused.exit_code, "No space left on device" in refused.output) == (1, True)
    assert list(empty_home.glob(".codex/**/*.jsonl")) == []
    assert Path(resume(ctxr, "codex", folder)["path"]).exists()


def test_a_client_in_an_untested_version_is_refused(ctxr: Ctxr, folder: Path, installed: Path) -> None:
    write_program(installed / "codex", "codex-cli 9.0.0")
    refused = ctxr("resume", "1", "--in", "codex")
    assert refused.exit_code == 2
    assert "tested: 0.171.0" in refused.output
    (installed / "gemini").unlink()
    assert "isn't installed here" in ctxr("resume", "1", "--in", "gemini-cli").output
    assert not list((installed.parent / ".codex").glob("**/*.jsonl"))


def test_a_client_that_is_slow_to_print_its_version_counts_as_tested(
    ctxr: Ctxr, folder: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(command: list[str], **_: object) -> None:
        raise subprocess.TimeoutExpired(command, 10)

    monkeypatch.setattr(subprocess, "run", slow)
    assert Path(resume(ctxr, "codex", folder)["path"]).exists()


def test_a_clients_own_session_is_opened_if_the_client_has_it(ctxr: Ctxr, folder: Path, installed: Path) -> None:
    written = resume(ctxr, "claude-code", folder)
    Path(written["path"]).rename(folder.parent / "kept.jsonl")
    with closing(sqlite3.connect(folder.parent / "ctxr" / "registry.db")) as registry, registry:
        registry.execute("DELETE FROM channel_alias")
    own = Path(written["path"])
    own.write_text((folder.parent / "kept.jsonl").read_text().replace("결제를", "배송을"))
    assert ctxr("sync").exit_code == 0
    opened = json.loads(ctxr("resume", written["session_id"], "--in", "claude-code", "--json").output)
    assert opened["command"] == ["claude", "--resume", written["session_id"]]
    assert "path" not in opened
    folder.rmdir()
    elsewhere = json.loads(ctxr("resume", written["session_id"], "--in", "claude-code", "--json", "--dry-run").output)
    assert elsewhere["folder"] == str(folder.parent), "Claude Code finds a session only in its folder, which is gone"
    assert Path(elsewhere["path"]).parent.name.endswith("-home")
    folder.mkdir()
    own.unlink()
    anew = json.loads(ctxr("resume", written["session_id"], "--in", "claude-code", "--json").output)
    assert "배송을" in Path(anew["path"]).read_text(), "deleted by the client, kept in the registry"
    assert anew["command"] == ["claude", "--resume", anew["session_id"]]
    sessions = len(json.loads(ctxr("list", "--json").output)["sessions"])
    assert ctxr("sync").exit_code == 0
    assert len(json.loads(ctxr("list", "--json").output)["sessions"]) == sessions
