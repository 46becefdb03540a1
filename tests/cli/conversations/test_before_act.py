"""Before a command or an edit a chat gets one line of what a past chat of its project says against it, if one does."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.incoming import hook
from registry.settings import Settings
from tests.cli.conftest import Ctxr
from tests.sources.claude_code.claude_code_files import CWD, Dialogue, session_id, write
from tests.sources.codex import codex_files

FAILED, WORKED = "pnpm build", "NODE_OPTIONS=--max-old-space-size=6144 pnpm build"
OLD_POOL, POOL = "pool_size = 40", "pool_size = 20 workers"
REASON = "the database allows 50 connections, two hosts share them"

Told = Callable[..., str]


class Past(Dialogue):
    """A past chat, told in commands, edits and sentences."""

    def runs(self, command: str, result: str = "done", *, fails: bool = False) -> None:
        self._does("Bash", {"command": command}, result, fails=fails)

    def edits(self, file: str, old: str, new: str) -> None:
        self._does("Edit", {"file_path": f"{CWD}/{file}", "old_string": old, "new_string": new}, "updated")

    def _does(self, name: str, params: dict[str, str], result: str, *, fails: bool = False) -> None:
        call = f"c{len(self.records)}"
        self.calls(name, params, call, f"m{call}")
        self.result(call, result, is_error=fails)


@pytest.fixture
def past(empty_home: Path) -> Past:
    """A chat of the project in which a build ran out of memory."""
    chat = Past(session_id(1))
    chat.user("build the shop for production")
    chat.runs(FAILED, "compiling\nFATAL ERROR: JavaScript heap out of memory", fails=True)
    chat.runs(WORKED)
    return chat


@pytest.fixture
def told(ctxr: Ctxr, past: Past, empty_home: Path) -> Told:
    """What is told before an act, in a new chat; `past` may go on until then."""

    def ask(act: dict[str, Any], *words: str, folder: str = CWD, session: str = "new-chat") -> str:
        write(empty_home / ".claude", past)
        assert ctxr("sync").exit_code == 0
        done = ctxr("note", folder, "--session", session, *words, "--act", json.dumps(act))
        assert done.exit_code == 0, done.output
        return done.output

    return ask


def test_a_command_that_failed_gets_the_one_that_worked(told: Told) -> None:
    said = told({"command": f"cd {CWD} && pnpm run build 2>&1 | tail -40"})
    day = "2026-05-04"
    why = "FATAL ERROR: JavaScript heap out o…"
    assert said == f"Context Registry, quoted from {day}: `{FAILED}` failed ({why}); this worked: `{WORKED}`\n"
    assert len(said) <= 200


def test_what_codex_ran_and_changed_counts_as_well(told: Told, empty_home: Path) -> None:
    talk = codex_files.Rollout(codex_files.thread_id(1))
    talk.meta(cwd=CWD)
    talk.message("user", "publish the site")
    for number, (command, code) in enumerate((("make site", 2), ("make site PORT=1", 0))):
        shell = ["/bin/bash", "-lc", command]
        talk.item("CommandExecution", f"i{number}", command=shell, cwd=CWD, exit_code=code, aggregated_output="no rule")
    diff = f"@@ -1 +1 @@\n-{OLD_POOL}\n+{POOL}  # {REASON}\n"
    changes = {f"{CWD}/db.toml": {"type": "update", "unified_diff": diff, "move_path": None}}
    talk.item("FileChange", "i3", changes=changes, status="completed", stdout="Success.")
    codex_files.write(empty_home / ".codex", talk)
    assert "`make site` failed (no rule); this worked: `make site PORT=1`" in told({"command": "make site"})
    edit = {"file_path": f"{CWD}/db.toml", "old_string": f"{POOL}  # {REASON}", "new_string": "pool_size = 80 workers"}
    assert told(edit).endswith(f"db.toml: {REASON}\n")


def test_a_result_that_names_no_error_gives_its_exit_code(told: Told, past: Past) -> None:
    past.runs("make site", "Command: make site\nOutput: (empty)\nError: (none)\nExit Code: 2", fails=True)
    past.runs("make site PORT=1")
    assert "`make site` failed (Exit Code: 2)" in told({"command": "make site"})


def test_another_command_gets_nothing(told: Told) -> None:
    cases: list[str] = [
        WORKED,
        f"{WORKED} --profile",
        "pnpm install",
        "pnpm test --run",
        "make build",
        "echo 'it is not closed",
        "npm run build",
    ]
    for command in cases:
        assert told({"command": command}) == ""


def test_a_command_that_has_worked_since_gets_nothing(told: Told, past: Past) -> None:
    past.runs(FAILED)
    assert told({"command": FAILED}) == ""


def test_a_command_that_was_cured_by_an_edit_gets_nothing(told: Told, past: Past) -> None:
    past.runs("pytest tests/cart.py", "1 failed", fails=True)
    past.edits("cart.py", "total = 0", "total = 1")
    past.runs("pytest tests/wares.py")
    assert told({"command": "pytest tests/cart.py"}) == ""


def test_what_worked_in_another_chat_is_no_cure(told: Told, past: Past, empty_home: Path) -> None:
    past.runs("terraform apply -auto-approve prod", "the state is locked", fails=True)
    other = Past(session_id(2), at=past.at)
    other.user("good morning")
    for number in range(5):
        other.says(f"Good morning, number {number}.", f"m{number}")
    other.runs("terraform apply -auto-approve prod -lock=false")
    write(empty_home / ".claude", other)
    assert told({"command": "terraform apply -auto-approve prod"}) == ""


def test_a_command_of_another_kind_is_no_cure(told: Told, past: Past) -> None:
    past.runs("terraform apply -auto-approve prod", "the state is locked", fails=True)
    past.runs("pnpm lint --fix")
    assert told({"command": "terraform apply -auto-approve prod"}) == ""


def test_a_command_that_shares_only_the_option_that_failed_gets_nothing(told: Told, past: Past) -> None:
    past.runs("latexmk -pdf main.tex", "fontspec needs LuaTeX", fails=True)
    past.runs("latexmk -lualatex main.tex")
    assert told({"command": "inkscape -pdf cover.svg"}) == ""
    assert "`latexmk -lualatex main.tex`" in told({"command": "latexmk -pdf -halt-on-error main.tex"})


def test_sudo_makes_no_other_command(told: Told, past: Past) -> None:
    past.runs("sudo kubectl apply -f crds/", "annotations: Too long", fails=True)
    past.runs("sudo kubectl apply --server-side -f crds/")
    assert "--server-side" in told({"command": "kubectl apply -f crds"})


def test_only_other_chats_of_the_same_project_count(told: Told, past: Past) -> None:
    assert told({"command": FAILED}, folder="/home/ann/garden") == ""
    assert told({"command": FAILED}, session=past.session_id) == ""
    assert told({"command": FAILED}) != ""


def test_a_chat_is_told_so_once(told: Told, past: Past) -> None:
    past.runs("west flash app", "permission denied", fails=True)
    past.runs("west flash app --dev /dev/ttyUSB0")
    assert told({"command": FAILED}) != ""
    assert told({"command": "pnpm build --filter shop"}) == ""
    assert told({"command": "west flash app"}) != ""
    assert told({"command": FAILED}, session="another-chat") != ""


def test_an_edit_of_lines_that_were_put_in_for_a_reason_gets_the_reason(told: Told, past: Past) -> None:
    past.edits("app.conf", OLD_POOL, f"# {REASON}\n{POOL}\nlog_level = info to stderr")
    other = {"file_path": f"{CWD}/app.conf", "old_string": "log_level = info to stderr", "new_string": "x"}
    assert told(other) == ""
    elsewhere = {"file_path": f"{CWD}/test.conf", "old_string": POOL, "new_string": "pool_size = 60 workers"}
    assert told(elsewhere) == ""
    act = {"file_path": f"{CWD}/app.conf", "old_string": POOL, "new_string": "pool_size = 60 workers"}
    assert told(act) == f"Context Registry, quoted from 2026-05-04: app.conf: {REASON}\n"


def test_a_patch_is_an_edit(told: Told, past: Past) -> None:
    past.edits("app.conf", OLD_POOL, f"# {REASON}\n{POOL}")
    patch = f"*** Begin Patch\n*** Update File: app.conf\n@@\n-{POOL}\n+pool_size = 60 workers\n*** End Patch"
    assert REASON in told({"command": f"apply_patch <<'EOF'\n{patch}\nEOF"})


def test_a_read_gets_nothing(told: Told) -> None:
    assert told({"file_path": f"{CWD}/app.conf"}) == told({"pattern": FAILED, "path": CWD}) == ""


def test_it_is_a_recorded_run_without_what_an_edit_writes(told: Told, past: Past) -> None:
    told({"file_path": f"{CWD}/app.conf", "old_string": "a", "new_string": "the words of the edit"})
    told({"command": FAILED})
    with sqlite3.connect(Settings().home / "registry.db") as registry:
        runs = registry.execute("SELECT request, result, steps FROM execution WHERE operation = 'hint'").fetchall()
    assert len(runs) == 2
    assert "no past chat says anything against this" in runs[0][2]
    assert "words of the edit" not in str(runs)
    assert "told_of" in runs[1][1]


@pytest.mark.parametrize("off", ["claude-code", "codex, /home/ann"])
def test_hints_can_be_off_for_a_client_and_for_a_folder(told: Told, off: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXR_HINTS_OFF", off)
    assert told({"command": FAILED}, "--client", "claude-code") == ""
    monkeypatch.setenv("CTXR_HINTS_OFF", "codex,/home/bob")
    assert told({"command": FAILED}, "--client", "claude-code") != ""
    monkeypatch.delenv("CTXR_HINTS_OFF")
    (Settings().home / "config.toml").write_text('hints_off = ["claude-code", "/home/bob"]', encoding="utf-8")
    assert told({"command": FAILED}, "--client", "claude-code", session="another") == ""
    assert told({"command": FAILED}, "--client", "codex", session="another") != ""


@pytest.mark.parametrize(
    ("given", "is_asked"),
    [
        ({"tool_name": "Bash", "tool_input": {"command": "pnpm build"}}, True),
        ({"toolName": "bash", "toolArgs": '{"command": "pnpm build"}'}, True),
        ({"tool_name": "Edit", "tool_input": {"file_path": "a", "old_string": "b", "new_string": "c"}}, True),
        ({"tool_name": "Bash", "tool_input": {"command": "git status --short"}}, False),
        ({"tool_name": "Bash", "tool_input": {"command": "lsof -i :80"}}, True),
        ({"tool_name": "Bash", "tool_input": {"command": "cat a > b"}}, True),
        ({"tool_name": "Read", "tool_input": {"file_path": "a"}}, False),
        ({"tool_name": "Write", "tool_input": {"file_path": "a", "content": "x" * 30_000}}, False),
        ({"toolName": "bash", "toolArgs": "{broken"}, False),
        ({"tool_name": "Bash", "tool_input": {"command": "pnpm build"}, "agent_id": "a sub-agent"}, False),
    ],
)
def test_a_hook_asks_only_about_what_changes_something(
    given: dict[str, Any], is_asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []

    def answers(words: list[str], *_: object) -> str:
        seen.append(words)
        return "a line\n"

    monkeypatch.setattr("cli.shared.command.output_of_running", answers)
    payload = {"session_id": "s-1", "cwd": CWD, **given}
    assert hook.request_hint("claude-code", "PreToolUse", payload) == ("a line" if is_asked else "")
    assert hook.request_hint("claude-code", "PostToolUse", payload) == ""
    if is_asked:
        (words,) = seen
        act = words.pop(words.index("--act") + 1)
        assert words == ["note", "--session", "s-1", "--client", "claude-code", "--act", "--", CWD]
        assert json.loads(act) == given.get("tool_input", {"command": "pnpm build"})


def test_acts_are_not_spooled(ctxr: Ctxr, empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def given(_file: int) -> bytes:
        return json.dumps({"session_id": "s-1", "cwd": CWD, "tool_input": {"command": "pnpm build"}}).encode()

    monkeypatch.setattr(hook, "_read_all", given)
    before = set(os.listdir(Settings().home))
    hook.run_hook("claude-code", "PreToolUse")
    assert set(os.listdir(Settings().home)) == before
