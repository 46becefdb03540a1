"""Test `ctxr sync`: its report, `--watch`, and errors."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.incoming.sync import Bars, report_lines, skip_lines
from orchestrator.sync.store_report import StoreReport
from sources.base import Skipped
from tests.cli.conftest import Ctxr, program
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, write
from tests.sources.opencode import opencode_files

PATIENCE_S = 20


@pytest.fixture
def claude(empty_home: Path) -> Path:
    return empty_home / ".claude"


def talk(*questions: str) -> Dialogue:
    dialogue = Dialogue(session_id(1))
    for question in questions:
        dialogue.user(question)
    return dialogue


def store_of(line: str) -> dict[str, Any]:
    [store] = json.loads(line)["stores"]
    return dict(store)


def test_a_sync_reports_new_messages_and_then_nothing_new(ctxr: Ctxr, claude: Path) -> None:
    write(claude, talk("Where is the basket?", "And the prices?"))
    assert ctxr("sync").output == f"claude-code: 1 session read, 2 new messages ({claude})\n"
    assert ctxr("sync").output == f"claude-code: 0 sessions read, 0 new messages ({claude})\n"
    again = store_of(ctxr("sync", "--json").output)
    assert (again["seen"], again["parsed"], again["new_messages"], again["skipped"]) == (1, 0, 0, [])
    assert "Where is the basket?" in ctxr("search", "basket").output
    two = [StoreReport("codex", "/a", parsed=1, new_messages=2), StoreReport("cursor", "/b", parsed=1, new_messages=1)]
    assert list(report_lines(two))[-1] == "in all: 2 sessions read, 3 new messages"


def test_damage_is_reported_again_by_a_second_sync(ctxr: Ctxr, claude: Path) -> None:
    file = write(claude, talk("Where is the basket?"))
    (file.parent / "folder.jsonl").mkdir()
    said = f"  skipped: {file.parent}/folder.jsonl: a folder, not a file\n"
    assert [ctxr("sync").output.endswith(said) for _ in range(2)] == [True, True]


def test_skipped_items_that_are_not_listed_are_counted(ctxr: Ctxr, claude: Path) -> None:
    file = write(claude, talk("Where is the basket?"))
    for number in range(7):
        (file.parent / f"folder{number}.jsonl").mkdir()
    said = ctxr("sync").output
    assert (said.count("a folder, not a file"), said.endswith("  and 2 more: add --json to list them\n")) == (5, True)
    assert len(store_of(ctxr("sync", "--json").output)["skipped"]) == 7


def test_a_torn_line_is_reported_until_its_session_is_read_again(ctxr: Ctxr, claude: Path) -> None:
    file = write(claude, talk("Where is the basket?"))
    whole = file.read_bytes()
    file.write_bytes(whole + b"{torn\n")
    first = store_of(ctxr("sync", "--json").output)["skipped"]
    assert [one["what"] for one in first] == ["line 2"]
    assert ctxr("sync").output.endswith(f"  skipped: {file}: line 2: not JSON\n")
    again = store_of(ctxr("sync", "--json").output)
    assert (again["seen"], again["parsed"], again["skipped"]) == (1, 0, first)
    other = Dialogue(session_id(2))
    other.user("And the prices?")
    write(claude, other)
    news = store_of(ctxr("sync", "--json").output)
    assert (news["parsed"], news["skipped"]) == (1, first)
    file.write_bytes(whole + whole)
    assert store_of(ctxr("sync", "--json").output)["skipped"] == []


def test_damage_in_an_unchanged_database_is_reported_each_time(
    ctxr: Ctxr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "opencode"
    monkeypatch.setenv("CTXR_OPENCODE_DIR", str(root))
    database = opencode_files.write_database(root, opencode_files.working_dialogue(1))
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE part SET data = 'torn' WHERE id = (SELECT min(id) FROM part)")
    first, again = (store_of(ctxr("sync", "--json").output)["skipped"] for _ in range(2))
    assert [one["why"] for one in first] == ["not a JSON object"]
    assert again == first


def test_an_unreadable_store_fails_the_sync_and_stops_no_other(
    ctxr: Ctxr, tmp_path: Path, claude: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(claude, talk("Where is the basket?"))
    broken = tmp_path / "opencode" / "opencode.db"
    monkeypatch.setenv("CTXR_OPENCODE_DIR", str(broken.parent))
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"no database" * 1000)
    for news in (1, 0):
        done = ctxr("sync")
        assert done.exit_code == 1
        assert f"read, {news} new message" in done.output
        assert f"skipped: {broken}: " in done.output


def test_a_running_server_reports_damage_once_for_each_store_and_reason() -> None:
    reported = set[tuple[str, str]]()
    report = StoreReport("codex", "/s", skipped=[Skipped("a", "torn"), Skipped("b", "torn"), Skipped("c", "too long")])
    report.skip([Skipped("just begun", "no conversation in it")])
    assert list(skip_lines([report], reported)) == [
        "codex: skipped: a: torn (/s)",
        "codex: skipped: c: too long (/s)",
    ]
    assert list(skip_lines([report, StoreReport("codex", "/t", skipped=[Skipped("a", "torn")])], reported)) == [
        "codex: skipped: a: torn (/t)"
    ]


def test_without_clients_the_known_ones_are_named(ctxr: Ctxr) -> None:
    for _ in range(2):
        assert ctxr("sync").output.startswith("No histories found on this machine. Known clients: claude-code, cursor")


@contextmanager
def watching(*words: str) -> Iterator[subprocess.Popen[str]]:
    process = program("sync", "--watch", *words)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_watching_prints_one_line_for_each_change_and_ends_at_ctrl_c(ctxr: Ctxr, claude: Path) -> None:
    write(claude, talk("Where is the basket?"))
    with watching("--json") as process:
        assert process.stdout is not None
        assert store_of(process.stdout.readline())["new_messages"] == 1
        write(claude, talk("Where is the basket?", "And the prices?"))
        assert store_of(process.stdout.readline())["new_messages"] == 1
        process.send_signal(signal.SIGINT)
        rest, said = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, rest, said.strip()) == (130, "", "")
    assert "And the prices?" in ctxr("search", "prices").output


def test_a_terminal_shows_a_progress_bar(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    known, unknown = StoreReport("claude-code", "/a"), StoreReport("cursor", "/b")
    with Bars() as bars:
        bars(known, 40)
        known.parsed, known.new_messages = 10, 200
        bars(known, 40)
        known.parsed = 45
        bars(known, 40)
        bars(unknown, 0)
        unknown.parsed, unknown.new_messages = 3, 60
        bars(unknown, 0)
    shown = capfd.readouterr().err
    assert "10/40" in shown
    assert "45/45" in shown
    assert "3/3" in shown


def test_without_a_terminal_there_is_no_progress_bar(capfd: Any) -> None:
    report = StoreReport("claude-code", "/a", parsed=5)
    with Bars() as bars:
        bars(report, 5)
        bars(report, 5)
    assert capfd.readouterr().err == ""
