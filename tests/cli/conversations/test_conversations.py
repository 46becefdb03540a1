"""Test `ctxr log` and `ctxr extract`."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from cli.output import display_width, local_time
from orchestrator.answer.digests.hint_text import warning_line
from orchestrator.answer.finding.before_act import PastWarning
from orchestrator.operations.list_sessions import age_of
from registry.domain import parse_time
from tests.cli.conftest import FIBONACCI, Ctxr, bare_ctxr


def test_a_conversation_logged_from_a_file_is_found_by_its_words(ctxr: Ctxr, tmp_path: Path) -> None:
    file = tmp_path / "conversation.json"
    file.write_text(json.dumps(FIBONACCI, ensure_ascii=False), encoding="utf-8-sig")
    assert ctxr("log", str(file)).output == "cursor_session_20250929_1430: 2 new, 0 stored already\n"
    found = ctxr("extract", "피보나치 관련 대화")
    assert found.exit_code == 0
    assert "메모이제이션을 쓰세요." in found.output


def test_json_output_is_the_result_of_the_tool(ctxr: Ctxr) -> None:
    ctxr("log", "-", given=FIBONACCI)
    result = json.loads(ctxr("extract", "--json", "피보나치").output)
    assert result["channel"] == FIBONACCI["channel"]
    assert [message["text"] for message in result["messages"]] == [m["text"] for m in FIBONACCI["messages"]]
    assert result["metadata"] == {
        "total_messages": 2,
        "filtered_messages": 2,
        "last_activity": "2025-09-29T14:30:18.456Z",
    }


def test_a_query_needs_no_quotes(ctxr: Ctxr) -> None:
    ctxr("log", "-", given={**FIBONACCI, "messages": [{"role": "user", "text": "Which docker compose file is it?"}]})
    for words in (("docker", "compose"), ("docker", "compose", "file")):
        assert "Which docker compose file is it?" in ctxr("extract", *words).output
    assert ctxr("extract", "no_such_channel_1", "compose").exit_code == 3


def test_an_empty_query_shows_the_last_messages_of_a_channel_and_the_cursor_those_before(ctxr: Ctxr) -> None:
    ctxr("log", "-", given=FIBONACCI)
    page = ("extract", "--limit", "1", FIBONACCI["channel"], "")
    shown = ctxr(*page).output
    assert "메모이제이션을 쓰세요." in messages_in(shown)
    assert not any("피보나치" in line for line in messages_in(shown))
    [cursor] = re.findall(r"--cursor (\S+)", shown)
    assert any("피보나치" in line for line in messages_in(ctxr(*page, "--cursor", cursor).output))


def messages_in(shown: str) -> list[str]:
    """Return the lines of an output that are messages."""
    return [line.strip() for line in shown.splitlines() if line.startswith("  ")]


LONG = {
    "channel": "long",
    "meta": {"title": "Rate limits of the upload gateway", "source": "codex", "project": "/home/me/gateway"},
    "messages": [
        {"role": role, "text": text, "timestamp": f"2025-09-29T14:{minute:02}:00Z"}
        for minute, (role, text) in enumerate(
            [
                ("user", "Which limiter does the upload gateway take: token bucket or leaky bucket?"),
                ("assistant", "A token bucket of 50 uploads. " + "It refills by one each second. " * 400),
                *(
                    (role, text)
                    for step in range(20)
                    for role, text in (("user", f"Paint fence {step}"), ("assistant", f"Painted {step}"))
                ),
                ("user", "Actually use a leaky bucket instead of the token bucket limiter for the upload gateway"),
                ("assistant", "Done."),
            ]
        )
    ],
}


def test_an_extract_shows_which_conversation_it_is_and_what_is_left_out(ctxr: Ctxr) -> None:
    ctxr("log", "-", given=LONG)
    shown = ctxr("extract", "--limit", "4", "upload gateway token bucket limiter").stdout
    head = shown.splitlines()[:4]
    assert head[0] == "long"
    assert head[1] == "Rate limits of the upload gateway  codex, gateway"
    assert head[3].startswith("Confidence: ")
    assert "messages left out …" in shown
    assert "shortened, 12,430 characters in full" in shown
    assert f"replaced at {local_time('2025-09-29T14:42:00Z')}" in shown
    lines = [line for line in shown.splitlines() if not line.startswith("--cursor ")]
    assert max(map(display_width, lines)) <= 80
    older = ctxr("extract", "--limit", "1", "long", "").stdout
    assert "… 43 messages left out …" in older


def test_an_answer_of_low_confidence_says_so_and_lists_other_conversations(ctxr: Ctxr) -> None:
    ctxr("log", "-", given=LONG)
    more = {"channel": "fences", "messages": [{"role": "user", "text": "Paint the fence of the upload shed"}]}
    ctxr("log", "-", given=more)
    shown = ctxr("extract", "upload quarantine mandate cathedral scheduler").stdout
    assert "Confidence: low" in shown
    assert "Not what you meant? Other channels:" in shown
    assert "of the upload shed" in shown
    assert "**" not in shown


def test_a_summary_replaces_its_messages(ctxr: Ctxr) -> None:
    ctxr("log", "-", given=FIBONACCI)
    assert "질문: 피보나치 함수의" in ctxr("extract", "--mode", "summary", "피보나치").output


def test_a_summary_covers_the_whole_session_of_any_length(ctxr: Ctxr) -> None:
    said = [{"role": ("user", "assistant")[n % 2], "text": f"Step {n} of the baskets."} for n in range(60)]
    ctxr("log", "-", given={"channel": "long", "messages": said})
    summed = json.loads(ctxr("extract", "long", "", "--mode", "summary", "--json").stdout)
    assert "Asked: Step 0 of the baskets." in summed["summary"]
    assert len(json.loads(ctxr("extract", "long", "", "--json").stdout)["messages"]) == 20


@pytest.mark.usefixtures("seoul")
def test_a_day_is_the_readers_day_from_its_beginning_to_its_end(ctxr: Ctxr) -> None:
    asked = [{"role": "user", "text": "피보나치", "timestamp": "2025-09-29T14:59:00Z"}]  # 23:59 in Seoul
    ctxr("log", "-", given={"channel": "c", "messages": asked})
    assert "2025-09-29 23:59" in ctxr("extract", "--from", "2025-09-29", "--to", "2025-09-29", "피보나치").output
    assert ctxr("extract", "--from", "2025-09-30", "피보나치").exit_code == 3
    assert ctxr("extract", "--to", "2025-09-28", "피보나치").exit_code == 3


@pytest.fixture
def seoul(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Set the machine's time zone to Seoul."""
    monkeypatch.setenv("TZ", "Asia/Seoul")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("seoul")
def test_notes_hints_and_file_names_have_the_day_of_this_machine(ctxr: Ctxr, tmp_path: Path) -> None:
    said = [{"role": "user", "text": "피보나치", "timestamp": "2025-09-29T20:00:00Z"}]  # 05:00 on the 30th in Seoul
    ctxr("log", "-", given={"channel": "c", "messages": said, "meta": {"project": str(tmp_path)}})
    assert "2025-09-30)" in ctxr("note", str(tmp_path)).output
    ctxr("export", "c", "--output", str(tmp_path))
    assert [file.name[:10] for file in tmp_path.glob("*.md")] == ["2025-09-30"]
    assert age_of(parse_time("2025-09-29T20:00:00Z"), parse_time("2025-12-29T20:00:00Z")) == "2025-09-30"
    assert warning_line(PastWarning("피보나치", said[0])).startswith("Context Registry, quoted from 2025-09-30: ")


@pytest.mark.parametrize("words", [("quantum chromodynamics",), ("no_such_channel", "피보나치")])
def test_nothing_found_is_exit_status_3(ctxr: Ctxr, words: tuple[str, ...]) -> None:
    ctxr("log", "-", given=FIBONACCI)
    failed = ctxr("extract", *words)
    assert failed.exit_code == 3
    assert failed.stderr.startswith("error: NOT_FOUND: ")
    assert failed.stdout == ""


def test_an_invalid_conversation_is_exit_status_2(ctxr: Ctxr) -> None:
    cases: list[tuple[Any, str]] = [
        ("{not json", "line 1 column 2"),
        ([1], "messages"),
        ({"channel": 5}, "channel: given 5"),
        ({**FIBONACCI, "messages": []}, "messages: given []"),
        ({**FIBONACCI, "messages": [{"role": "robot", "text": "x"}]}, "messages.0.role"),
        ({**FIBONACCI, "mesages": []}, "mesages: given []; allowed: no such field"),
        ({**FIBONACCI, "meta": 3}, "3"),
    ]
    for given, named in cases:
        failed = ctxr("log", "-", given=given)
        assert failed.exit_code == 2
        assert failed.stderr.startswith("error: INVALID_REQUEST: ")
        assert named in failed.stderr


def test_wrong_usage_is_exit_status_2_and_one_line_of_error() -> None:
    cases: list[tuple[str, ...]] = [
        ("extract",),
        ("extract", "x", "--limit", "0"),
        ("extract", "x", "--from", "someday"),
        ("extract", "x", "--mode", "poem"),
        ("log", "/no/such/file"),
        ("no-such-command",),
        ("--no-such-option",),
    ]
    for words in cases:
        failed = bare_ctxr(*words)
        assert failed.exit_code == 2
        assert failed.stderr.startswith("error: INVALID_REQUEST: ")
        assert " -h' for help." in failed.stderr


def test_a_misspelt_command_is_answered_with_the_nearest() -> None:
    assert "No such command 'serch'. (Did you mean one of: 'search'" in bare_ctxr("serch", "x").stderr


@pytest.mark.parametrize("words", [(), ("backup",)])
def test_a_group_without_a_command_shows_its_help_without_an_error(words: tuple[str, ...]) -> None:
    shown = bare_ctxr(*words)
    assert shown.exit_code == 2
    assert shown.stderr.startswith(f"Usage: {' '.join(('ctxr', *words))} [OPTIONS] COMMAND")


def test_a_wrong_setting_is_named(ctxr: Ctxr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXR_PORT", "many")
    failed = ctxr("extract", "x")
    assert failed.exit_code == 2
    assert "CTXR_PORT: Input should be a valid integer, given 'many'" in failed.stderr


def test_explain_says_what_was_kept_and_left_out_and_why(ctxr: Ctxr) -> None:
    more = [{"role": "user", "text": f"다른 이야기 {i}"} for i in range(3)]
    ctxr("log", "-", given={**FIBONACCI, "messages": [*FIBONACCI["messages"], *more]})
    shown = ctxr("extract", "--explain", "피보나치 함수")
    assert "메모이제이션" in shown.stdout
    assert "Why" not in shown.stdout
    assert "words: 피보나치, 함수" in shown.stderr
    assert "kept" in shown.stderr
    assert max(map(display_width, shown.stderr.splitlines())) <= 80


def test_explain_says_why_nothing_was_found(ctxr: Ctxr) -> None:
    ctxr("log", "-", given=FIBONACCI)
    shown = ctxr("extract", "--explain", "quantum chromodynamics")
    assert shown.exit_code == 3
    assert "words: quantum, chromodynamics" in shown.stderr
