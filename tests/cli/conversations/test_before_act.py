"""Test the hint before a command or edit: one line of what a past chat of the project says against it."""

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
    """A past chat of commands, edits, and messages."""

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
    """Return a chat of the project in which a build ran out of memory."""
    chat = Past(session_id(1))
    chat.user("build the shop for production")
    chat.runs(FAILED, "compiling\nFATAL ERROR: JavaScript heap out of memory", fails=True)
    chat.runs(WORKED)
    return chat


@pytest.fixture
def hint_before(ctxr: Ctxr, past: Past, empty_home: Path) -> Told:
    """Return a function that gives the hint before an act in a new chat; `past` may be extended until then."""

    def ask(act: dict[str, Any], *words: str, folder: str = CWD, session: str = "new-chat") -> str:
        write(empty_home / ".claude", past)
        assert ctxr("sync").exit_code == 0
        done = ctxr("note", folder, "--session", session, *words, "--act", json.dumps(act))
        assert done.exit_code == 0, done.output
        return done.output

    return ask


def test_a_command_that_failed_is_answered_with_the_one_that_worked(hint_before: Told) -> None:
    said = hint_before({"command": f"cd {CWD} && pnpm run build 2>&1 | tail -40"})
    day = "2026-05-04"
    why = "FATAL ERROR: JavaScript heap out o…"
    assert said == f"Context Registry, quoted from {day}: `{FAILED}` failed ({why}); this worked: `{WORKED}`\n"
    assert len(said) <= 200


def test_commands_and_edits_of_codex_count_too(hint_before: Told, empty_home: Path) -> None:
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
    assert "`make site` failed (no rule); this worked: `make site PORT=1`" in hint_before({"command": "make site"})
    edit = {"file_path": f"{CWD}/db.toml", "old_string": f"{POOL}  # {REASON}", "new_string": "pool_size = 80 workers"}
    assert hint_before(edit).endswith(f"db.toml: {REASON}\n")


def test_a_failure_without_a_message_is_quoted_by_its_exit_code(hint_before: Told, past: Past) -> None:
    past.runs("make site", "Command: make site\nOutput: (empty)\nError: (none)\nExit Code: 2", fails=True)
    past.runs("make site PORT=1")
    assert "`make site` failed (Exit Code: 2)" in hint_before({"command": "make site"})


def test_another_command_gets_no_hint(hint_before: Told) -> None:
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
        assert hint_before({"command": command}) == ""


def test_a_command_that_has_worked_since_gets_no_hint(hint_before: Told, past: Past) -> None:
    past.runs(FAILED)
    assert hint_before({"command": FAILED}) == ""


def test_a_command_fixed_by_an_edit_gets_no_hint(hint_before: Told, past: Past) -> None:
    past.runs("pytest tests/cart.py", "1 failed", fails=True)
    past.edits("cart.py", "total = 0", "total = 1")
    past.runs("pytest tests/wares.py")
    assert hint_before({"command": "pytest tests/cart.py"}) == ""


def test_a_command_that_worked_in_another_chat_is_no_fix(hint_before: Told, past: Past, empty_home: Path) -> None:
    past.runs("terraform apply -auto-approve prod", "the state is locked", fails=True)
    other = Past(session_id(2), at=past.at)
    other.user("good morning")
    for number in range(5):
        other.says(f"Good morning, number {number}.", f"m{number}")
    other.runs("terraform apply -auto-approve prod -lock=false")
    write(empty_home / ".claude", other)
    assert hint_before({"command": "terraform apply -auto-approve prod"}) == ""


def test_a_command_of_another_kind_is_no_fix(hint_before: Told, past: Past) -> None:
    past.runs("terraform apply -auto-approve prod", "the state is locked", fails=True)
    past.runs("pnpm lint --fix")
    assert hint_before({"command": "terraform apply -auto-approve prod"}) == ""


def test_another_subcommand_is_no_fix(hint_before: Told, past: Past) -> None:
    past.runs("terraform plan", "Error acquiring the state lock", fails=True)
    past.runs("terraform force-unlock -force 6f1c2a0e")
    assert hint_before({"command": "terraform plan"}) == ""


def test_a_command_that_shares_only_the_option_that_failed_gets_no_hint(hint_before: Told, past: Past) -> None:
    past.runs("latexmk -pdf main.tex", "fontspec needs LuaTeX", fails=True)
    past.runs("latexmk -lualatex main.tex")
    assert hint_before({"command": "inkscape -pdf cover.svg"}) == ""
    assert "`latexmk -lualatex main.tex`" in hint_before({"command": "latexmk -pdf -halt-on-error main.tex"})


def test_a_command_is_the_same_without_sudo(hint_before: Told, past: Past) -> None:
    past.runs("sudo kubectl apply -f crds/", "annotations: Too long", fails=True)
    past.runs("sudo kubectl apply --server-side -f crds/")
    assert "--server-side" in hint_before({"command": "kubectl apply -f crds"})


def test_a_command_is_the_same_with_another_date_or_value_of_an_option(hint_before: Told, past: Past) -> None:
    past.runs("python -m shop.report --name kim --day 2026-05-01", "error: stale cache", fails=True)
    past.runs("python -m shop.report --name kim --day 2026-05-01 --no-cache")
    assert "… --no-cache`" in hint_before({"command": "python -m shop.report --day=2026-06-30 --name lee"})
    assert not hint_before({"command": "python -m shop.stock --name kim --day 2026-05-01"}, session="another-chat")


def test_only_other_chats_of_the_same_project_count(hint_before: Told, past: Past) -> None:
    assert hint_before({"command": FAILED}, folder="/home/ann/garden") == ""
    assert hint_before({"command": FAILED}, session=past.session_id) == ""
    assert hint_before({"command": FAILED}) != ""


def test_a_chat_gets_the_same_hint_once(hint_before: Told, past: Past) -> None:
    past.runs("west flash app", "permission denied", fails=True)
    past.runs("west flash app --dev /dev/ttyUSB0")
    assert hint_before({"command": FAILED}) != ""
    assert hint_before({"command": "pnpm build --filter shop"}) == ""
    assert hint_before({"command": "west flash app"}) != ""
    assert hint_before({"command": FAILED}, session="another-chat") != ""


def test_an_edit_of_lines_that_were_added_for_a_reason_gets_the_reason(hint_before: Told, past: Past) -> None:
    past.edits("app.conf", OLD_POOL, f"# {REASON}\n{POOL}\nlog_level = info to stderr")
    other = {"file_path": f"{CWD}/app.conf", "old_string": "log_level = info to stderr", "new_string": "x"}
    assert hint_before(other) == ""
    elsewhere = {"file_path": f"{CWD}/test.conf", "old_string": POOL, "new_string": "pool_size = 60 workers"}
    assert hint_before(elsewhere) == ""
    act = {"file_path": f"{CWD}/app.conf", "old_string": POOL, "new_string": "pool_size = 60 workers"}
    assert hint_before(act) == f"Context Registry, quoted from 2026-05-04: app.conf: {REASON}\n"


def test_an_edit_that_the_user_undid_says_nothing_against_another(hint_before: Told, past: Past) -> None:
    kept = past.parent
    past.user("set the pool")
    past.edits("app.conf", OLD_POOL, f"# {REASON}\n{POOL}")
    past.parent = kept
    past.user("leave the pool as it is")
    act = {"file_path": f"{CWD}/app.conf", "old_string": POOL, "new_string": "pool_size = 60 workers"}
    assert hint_before(act) == ""


def test_a_patch_in_a_command_is_an_edit(hint_before: Told, past: Past) -> None:
    past.edits("app.conf", OLD_POOL, f"# {REASON}\n{POOL}")
    patch = f"*** Begin Patch\n*** Update File: app.conf\n@@\n-{POOL}\n+pool_size = 60 workers\n*** End Patch"
    assert REASON in hint_before({"command": f"apply_patch <<'EOF'\n{patch}\nEOF"})


def test_a_read_gets_no_hint(hint_before: Told) -> None:
    assert hint_before({"file_path": f"{CWD}/app.conf"}) == hint_before({"pattern": FAILED, "path": CWD}) == ""


def test_a_hint_is_a_recorded_run_without_the_text_of_the_edit(hint_before: Told, past: Past) -> None:
    hint_before({"file_path": f"{CWD}/app.conf", "old_string": "a", "new_string": "the words of the edit"})
    hint_before({"command": FAILED})
    with sqlite3.connect(Settings().home / "registry.db") as registry:
        runs = registry.execute("SELECT request, result, steps FROM execution WHERE operation = 'hint'").fetchall()
    assert len(runs) == 2
    assert "no past chat says anything against this" in runs[0][2]
    assert "words of the edit" not in str(runs)
    assert "told_of" in runs[1][1]


@pytest.mark.parametrize("off", ["claude-code", "codex, /home/ann"])
def test_hints_can_be_off_for_a_client_and_for_a_folder(
    hint_before: Told, off: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXR_HINTS_OFF", off)
    assert hint_before({"command": FAILED}, "--client", "claude-code") == ""
    monkeypatch.setenv("CTXR_HINTS_OFF", "codex,/home/bob")
    assert hint_before({"command": FAILED}, "--client", "claude-code") != ""
    monkeypatch.delenv("CTXR_HINTS_OFF")
    (Settings().home / "config.toml").write_text('hints_off = ["claude-code", "/home/bob"]', encoding="utf-8")
    assert hint_before({"command": FAILED}, "--client", "claude-code", session="another") == ""
    assert hint_before({"command": FAILED}, "--client", "codex", session="another") != ""


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
def test_a_hook_asks_only_about_acts_that_change_something(
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
