"""Test the note for a new chat: the state of its folder's latest conversations."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.incoming import hook
from cli.incoming.hook import answer, is_start
from orchestrator.answer.delivery import tokens_in
from registry.domain import format_time, now
from tests.cli.conftest import Ctxr

LONG = "Use the order's id plus the number of the attempt, " * 40


def log(ctxr: Ctxr, channel: str, folder: Path, answered: str = LONG) -> None:
    talk = {
        "channel": channel,
        "messages": [{"role": "user", "text": f"재시도는 몇 번? ({channel})"}, {"role": "assistant", "text": answered}],
        "timestamp": format_time(now()),
        "meta": {"source": "cursor", "project": str(folder), "title": f"Retries of {channel}"},
    }
    assert ctxr("log", "-", given=talk).exit_code == 0


def note_for(ctxr: Ctxr, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ctxr("note", *words, "--json").output)
    return found


def test_a_new_chat_gets_the_state_of_its_folders_latest_conversations(empty_home: Path, ctxr: Ctxr) -> None:
    shop, other = empty_home / "shop", empty_home / "other"
    for number in range(5):
        log(ctxr, f"cursor_session_{number}", shop)
    log(ctxr, "cursor_session_elsewhere", other)
    found = note_for(ctxr, str(shop), "--session", "cursor_session_4")
    assert found["told_of"] == ["cursor_session_3", "cursor_session_2", "cursor_session_1", "cursor_session_0"]
    assert "last asked: 재시도는 몇 번? (cursor_session_3); answered: Use the order" in found["note"]
    today = format_time(now())[:10]
    assert found["note"].splitlines()[-1] == "The session_id of this chat for context-registry: cursor_session_4"
    assert found["note"].splitlines()[-3] == f'- "Retries of cursor_session_0" (cursor, {today})'
    assert "`extract`" in found["note"]
    assert tokens_in(found["note"]) == found["tokens"] <= 300


def test_chats_that_only_asked_for_another_and_memory_files_are_not_in_the_note(
    empty_home: Path, ctxr: Ctxr, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = empty_home / "shop"
    log(ctxr, "cursor_session_1", shop)
    for number in range(20):
        asked = [{"role": "user", "text": "continue the retries conversation"}, {"role": "assistant", "text": "Sorry."}]
        talk = {"channel": f"asked_{number}", "messages": asked, "meta": {"project": str(shop)}}
        assert ctxr("log", "-", given=talk).exit_code == 0
    note = [{"role": "assistant", "text": "Deploys go out on Tuesdays."}]
    talk = {"channel": "n", "messages": note, "meta": {"source": "memory-files", "project": str(shop), "title": "M"}}
    assert ctxr("log", "-", given=talk).exit_code == 0
    assert note_for(ctxr, str(shop))["told_of"] == ["cursor_session_1"]
    monkeypatch.setattr("cli.conversations.note.quick_note", lambda *_: None)
    assert note_for(ctxr, str(shop))["told_of"] == ["cursor_session_1"]


def test_there_is_no_note_without_conversations_or_if_it_is_switched_off(
    empty_home: Path, ctxr: Ctxr, monkeypatch: pytest.MonkeyPatch
) -> None:
    log(ctxr, "cursor_session_1", empty_home / "shop")
    assert ctxr("note", str(empty_home)).output == ""
    assert ctxr("note", str(empty_home / "shop")).output != ""
    monkeypatch.setenv("CTXR_START_NOTE", "off")
    assert ctxr("note", str(empty_home / "shop")).output == ""


def test_an_open_question_is_not_named_as_the_answer_too(empty_home: Path, ctxr: Ctxr) -> None:
    messages = [{"role": "user", "text": "push it"}, {"role": "assistant", "text": "Pushed. Shall I open a request?"}]
    talk = {"channel": "cursor_session_1", "messages": messages, "meta": {"project": str(empty_home / "shop")}}
    assert ctxr("log", "-", given=talk).exit_code == 0
    note = note_for(ctxr, str(empty_home / "shop"))["note"]
    assert "open: Pushed. Shall I open a request?" in note
    assert note.count("Shall I") == 1


def test_a_reply_to_thanks_is_not_named_as_the_answer(empty_home: Path, ctxr: Ctxr) -> None:
    texts = ("push it", "Pushed to main.", "thanks!", "You're welcome! Let me know if you need anything else.")
    messages = [{"role": ("user", "assistant")[place % 2], "text": text} for place, text in enumerate(texts)]
    talk = {"channel": "cursor_session_1", "messages": messages, "meta": {"project": str(empty_home / "shop")}}
    assert ctxr("log", "-", given=talk).exit_code == 0
    assert "last asked: push it; answered: Pushed to main." in note_for(ctxr, str(empty_home / "shop"))["note"]


def test_long_titles_leave_room_for_the_state_of_the_latest_conversations(empty_home: Path, ctxr: Ctxr) -> None:
    for number in range(9):
        log(ctxr, f"cursor_session_{'가나다라마' * 6}_{number}", empty_home / "shop")
    found = note_for(ctxr, str(empty_home / "shop"))
    assert found["tokens"] <= 300
    assert 2 < len(found["told_of"]) < 8
    assert found["note"].count("last asked: 재시도는 몇 번?") == 2


def test_the_note_is_the_same_with_and_without_a_local_process(
    empty_home: Path, ctxr: Ctxr, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = empty_home / "shop"
    for number in range(5):
        log(ctxr, f"cursor_session_{number}", shop)
    asked = {"role": "user", "text": "still open?", "timestamp": format_time(now())}
    context = {"file": "src/retry.py", "additional_context": {"line": 3}}
    talk = {"channel": "cursor_session_2", "messages": [asked], "meta": context}
    assert ctxr("log", "-", given=talk).exit_code == 0
    begun = {
        "channel": "cursor_session_6",
        "messages": [{"role": "system", "text": "x"}],
        "meta": {"project": str(shop)},
    }
    assert ctxr("log", "-", given=begun).exit_code == 0
    read = note_for(ctxr, str(shop), "--session", "cursor_session_4")
    monkeypatch.setattr("cli.conversations.note.quick_note", lambda *_: None)
    assert note_for(ctxr, str(shop), "--session", "cursor_session_4") == read
    assert "files: retry.py" in read["note"]
    assert "cursor_session_6" not in read["told_of"]
    assert "open: still open?" in read["note"]


@pytest.mark.parametrize(
    ("client", "event", "expected"),
    [
        (
            "claude-code",
            "SessionStart",
            {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "N"}},
        ),
        ("copilot-cli", "sessionStart", {"additionalContext": "N"}),
        ("cursor", "sessionStart", {"additional_context": "N"}),
    ],
)
def test_each_client_gets_the_note_in_its_own_format(client: str, event: str, expected: dict[str, Any]) -> None:
    assert json.loads(answer(client, event, {}, "N")) == expected
    assert [answer(client, "session.start", {}, "N") for client in ("opencode", "kilo")] == ["N", "N"]


def test_paths_in_a_note_are_escaped_for_gemini_cli() -> None:
    expected = json.loads(answer("gemini-cli", "SessionStart", {}, 'last asked: "explain @.env.local"'))
    assert expected["hookSpecificOutput"]["additionalContext"] == 'last asked: "explain \\@.env.local"'


def test_a_new_forked_or_compacted_chat_gets_a_note_and_cursor_only_its_own() -> None:
    assert is_start("claude-code", "SessionStart", {"source": "startup"})
    assert is_start("copilot-cli", "sessionStart", {"source": "new"})
    assert is_start("claude-code", "SessionStart", {"source": "fork"})
    assert not is_start("claude-code", "SessionStart", {"source": "resume"})
    assert is_start("claude-code", "SessionStart", {"source": "compact"})
    assert not is_start("claude-code", "SessionStart", {"cursor_version": "3.16.2"})
    assert not is_start("claude-code", "Stop", {})


def test_a_hook_asks_for_the_note_of_its_chats_folder_which_needs_and_starts_no_local_process(
    empty_home: Path, ctxr: Ctxr, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = empty_home / "shop"
    log(ctxr, "cursor_session_1", shop, "다섯 번까지.")
    monkeypatch.setenv("CTXR_SHARED", "on")
    loaded = "import sys; from cli.main import cli; cli(standalone_mode=False); print(*sys.modules)"
    said = subprocess.run(
        [sys.executable, "-c", loaded, "note", str(shop)], capture_output=True, text=True, encoding="utf-8", check=True
    ).stdout
    assert "다섯 번까지." in said
    heavy = {"langgraph", "orchestrator.service", "mcp", "sources.readers", "sqlalchemy", "pydantic"}
    assert not heavy & set(said.splitlines()[-1].split())
    monkeypatch.setattr(hook, "NOTE_TIMEOUT_S", 60)
    assert "다섯 번까지." in hook.request_note({"cwd": str(shop), "session_id": "new"})
    monkeypatch.setattr(hook, "NOTE_TIMEOUT_S", 0.0001)
    assert hook.request_note({"cwd": str(shop)}) == ""
    assert not (empty_home / "ctxr" / "local").exists()
