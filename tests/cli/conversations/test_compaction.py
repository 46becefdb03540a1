"""Test the note after a compaction: it has what the summary dropped, and nothing that is in the summary."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cli.incoming import hook
from orchestrator.sync import sync
from tests.cli.conftest import Ctxr, bare_ctxr
from tests.sources.claude_code.claude_code_files import CWD, Dialogue, session_id, write

SUMMARY = "This session continues an earlier one. The shop's orders were moved to PostgreSQL 17 and its port is 5433."


@pytest.fixture
def chat(empty_home: Path) -> Dialogue:
    """Write a chat with decisions, commands that worked and failed, and a summary with one of them."""
    talk = Dialogue(session_id(1))
    talk.user("Move the shop's orders to PostgreSQL 17. We decided to use port 5433.")
    talk.calls("Bash", {"command": "make migrate"}, "c1", "m1")
    talk.result("c1", "relation orders does not exist", is_error=True)
    talk.calls("Bash", {"command": f"cd {CWD} && createdb orders && make migrate"}, "c2", "m2")
    talk.result("c2", "42 rows")
    talk.calls("Edit", {"file_path": f"{CWD}/shop/orders.py", "old_string": "a", "new_string": "b"}, "c3", "m3")
    talk.result("c3", "ok")
    talk.says("The orders are moved.", "m4")
    talk.user("We decided to retry five times with the order's id as idempotency key, never with the user's.")
    talk.says("I will keep it so.", "m5")
    talk.add(
        "system", subtype="compact_boundary", content="Conversation compacted", compactMetadata={"trigger": "auto"}
    )
    talk.user(SUMMARY, isCompactSummary=True, isVisibleInTranscriptOnly=True)
    write(empty_home / ".claude", talk)
    return talk


def test_the_note_has_what_the_summary_dropped_and_nothing_that_it_has(ctxr: Ctxr, chat: Dialogue) -> None:
    note = ctxr("note", CWD, "--session", chat.session_id, "--compacted").output
    assert "idempotency key" in note
    assert "worked: `createdb orders && make migrate`" in note
    assert "failed: `make migrate`: relation orders does not exist" in note
    assert "shop/orders.py" in note
    assert "5433" not in note
    assert len(note) <= 1501


def test_a_chat_that_was_never_stored_gets_the_note_although_a_sync_takes_longer_than_a_question_waits(
    ctxr: Ctxr, chat: Dialogue, empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctxr("sync")
    monkeypatch.setattr(sync, "MAX_WAIT_S", 0.0)
    chat.session_id = session_id(3)
    for record in chat.records:
        record["sessionId"] = chat.session_id
    write(empty_home / ".claude", chat)
    assert "idempotency key" in ctxr("note", CWD, "--session", chat.session_id, "--compacted").output


def test_the_clients_hook_gives_the_note_to_the_model(
    ctxr: Ctxr, chat: Dialogue, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(subprocess, "run", run_here)
    payload = {"session_id": chat.session_id, "cwd": CWD, "source": "compact", "hook_event_name": "SessionStart"}
    monkeypatch.setattr(hook, "_read_all", lambda _: json.dumps(payload).encode())
    hook.run_hook("claude-code", "SessionStart")
    given: dict[str, Any] = json.loads(capfd.readouterr().out)
    assert "idempotency key" in given["hookSpecificOutput"]["additionalContext"]


def run_here(words: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
    """Run ctxr in this process; another one takes two seconds."""
    done = bare_ctxr(*words[words.index("cli.entry") + 1 :])
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout.encode())


def test_a_complete_summary_needs_no_note(ctxr: Ctxr, empty_home: Path) -> None:
    talk = Dialogue(session_id(2))
    talk.user("We decided to use pnpm in the web folder.")
    talk.says("Understood.", "m1")
    talk.user("We decided to use pnpm in the web folder. Understood.", isCompactSummary=True)
    write(empty_home / ".claude", talk)
    assert ctxr("note", CWD, "--session", talk.session_id, "--compacted").output == ""


def test_a_rule_that_the_user_repeated_is_in_the_note_once(ctxr: Ctxr, empty_home: Path) -> None:
    talk = Dialogue(session_id(3))
    for number in range(40):
        talk.user("Never touch the migrations of the shop, they are reviewed by Kim on Mondays.")
        talk.says("Understood.", f"m{number}")
    talk.user("The work on the basket goes on.", isCompactSummary=True)
    write(empty_home / ".claude", talk)
    note = ctxr("note", CWD, "--session", talk.session_id, "--compacted").output
    assert note.count("Never touch the migrations") == 1


def test_room_is_filled_with_the_last_answer_of_each_turn(ctxr: Ctxr, empty_home: Path) -> None:
    talk = Dialogue(session_id(7))
    talk.user("Work on the data platform.")
    talk.user("Yes, switch.")
    talk.says("Let me read the Helm values first.", "m1")
    talk.says("Airflow runs with the KubernetesExecutor now.", "m2")
    talk.user("The data platform was set up.", isCompactSummary=True)
    write(empty_home / ".claude", talk)
    note = ctxr("note", CWD, "--session", talk.session_id, "--compacted").output
    assert "- assistant: Airflow runs with the KubernetesExecutor now." in note
    assert "Helm values" not in note


def test_rules_and_open_points_come_before_small_talk(ctxr: Ctxr, empty_home: Path) -> None:
    talk = Dialogue(session_id(4))
    talk.user("Work on the franchise's intake.")
    talk.user(
        "The old ones are live at Brno, and they run the thing themselves. Never edit those files, not a comment."
    )
    talk.user("Lovely weather here by the way. Waiting for Ivana about the ninety days.")
    for number in range(60):
        talk.user(f"Lunch was a fine bowl of noodles with {'radish ' * (number % 5)}{number}")
        talk.says("Enjoy.", f"m{number}")
    talk.user("The work on the intake goes on.", isCompactSummary=True)
    write(empty_home / ".claude", talk)
    note = ctxr("note", CWD, "--session", talk.session_id, "--compacted").output
    assert "Never edit those files" in note
    assert "Waiting for Ivana" in note
    assert len(note) <= 1501


def test_neighbouring_sentences_of_a_message_share_a_line(ctxr: Ctxr, empty_home: Path) -> None:
    talk = Dialogue(session_id(5))
    talk.user("Work on the kiln's page.")
    talk.user("No scrim. Photo untouched. Is that clear? Title at the bottom left.")
    talk.user("The page was begun.", isCompactSummary=True)
    write(empty_home / ".claude", talk)
    note = ctxr("note", CWD, "--session", talk.session_id, "--compacted").output
    assert "- No scrim. Photo untouched.\n- Title at the bottom left.\n" in note


def test_a_command_that_worked_after_it_had_failed_comes_before_later_ones(ctxr: Ctxr, empty_home: Path) -> None:
    talk = Dialogue(session_id(6))
    talk.user("Run the tests of the locker service.")
    talk.calls("Bash", {"command": "go test ./internal"}, "c1", "m1")
    talk.result("c1", "ryuk needs --privileged", is_error=True)
    talk.calls("Bash", {"command": "TESTCONTAINERS_RYUK_DISABLED=true go test -p 1 ./internal"}, "c2", "m2")
    talk.result("c2", "ok")
    for number in range(9):
        talk.calls(
            "Bash",
            {"command": f"docker build --tag locker:{number} --file Dockerfile.{number} ."},
            f"d{number}",
            f"n{number}",
        )
        talk.result(f"d{number}", "ok")
    talk.user("The tests of the locker service run.", isCompactSummary=True)
    write(empty_home / ".claude", talk)
    note = ctxr("note", CWD, "--session", talk.session_id, "--compacted").output
    assert "- worked: `TESTCONTAINERS_RYUK_DISABLED=true go test -p 1 ./internal`" in note
