"""Test the settings that `ctxr up` prints for a new user to paste."""

import json
import re
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from cli.connect import snippets
from cli.connect.snippets import StdioServer, this_program, this_server, with_command_name, write_launcher
from cli.running.serving import welcome
from registry.settings import read_settings
from sources.clients import CURSOR
from tests.cli.conftest import CTXR


@pytest.fixture(autouse=True)
def started_as_ctxr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [CTXR, "up"])
    monkeypatch.delenv("CTXR_HOME")


def test_the_command_to_paste_works_from_any_folder() -> None:
    write_launcher(this_program())
    entry = this_server().entry()
    assert Path(entry["command"]).is_absolute()
    assert Path(entry["command"]).exists()
    assert entry["args"] == ["mcp"]


def test_without_a_ctxr_program_python_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["-c"])
    assert this_program() == (sys.executable, "-m", "cli.entry")


def test_printed_commands_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert with_command_name("ctxr up makes it") == f"{CTXR} up makes it"
    monkeypatch.setenv("PATH", str(Path(CTXR).parent))
    assert with_command_name("ctxr up makes it") == "ctxr up makes it"
    (tmp_path / "CACHEDIR.TAG").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    assert with_command_name("ctxr up makes it") == "uvx context-registry up makes it"


def test_on_windows_an_entry_survives_a_cleared_uvx_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Clients start no shell scripts there, so there is no launcher."""
    monkeypatch.setattr(snippets, "launcher_file", lambda: None)
    assert this_server().command == (CTXR, "mcp")
    monkeypatch.setattr(snippets, "installer", lambda: "uvx")
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    assert this_server().command == (
        "/bin/uvx",
        "--from",
        f"context-registry=={version('context-registry')}",
        "ctxr",
        "mcp",
    )


def test_settings_of_this_terminal_are_passed_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CTXR_HOME", "here")
    monkeypatch.delenv("CTXR_EMBED_MODEL")
    monkeypatch.setenv("CTXR_PORT", "9999")
    assert this_server().entry()["env"] == {"CTXR_HOME": str(tmp_path / "here")}


def test_the_entry_for_a_config_file_is_json() -> None:
    server = StdioServer(("/opt/my programs/ctxr", "mcp"), {"CTXR_HOME": "/data/기록"})
    entry = json.loads(server.mcp_json())["mcpServers"]["context-registry"]
    assert entry == {"command": "/opt/my programs/ctxr", "args": ["mcp"], "env": {"CTXR_HOME": "/data/기록"}}


def test_cursor_always_applies_the_rule() -> None:
    assert CURSOR.rule
    by_hand = Path(__file__).parents[3] / "docs" / "connecting-by-hand.md"  # for a project without hooks
    for file, fields in ((CURSOR.rule.text, {"query"}), (by_hand, {"channel", "messages", "meta"})):
        rule = file.read_text(encoding="utf-8")
        assert "alwaysApply: true\n" in rule.split("---\n")[1]
        assert fields in [json.loads(example).keys() for example in re.findall(r"```json\n(.*?)```", rule, re.DOTALL)]
    look_up = re.search(
        r"When the user refers.*?```json.*?```", CURSOR.rule.text.read_text(encoding="utf-8"), re.DOTALL
    )
    assert look_up
    assert look_up[0] in by_hand.read_text(encoding="utf-8")


def test_all_a_new_user_needs_is_shown_in_ten_lines(tmp_path: Path) -> None:
    text = welcome(read_settings(home=tmp_path, port=9000), "http://127.0.0.1:9000/")
    assert len(text.splitlines()) <= 8  # two lines come before it
    for needed in (
        "http://127.0.0.1:9000/",
        "http://127.0.0.1:9000/mcp",
        str(tmp_path / "registry.db"),
        json.dumps({"mcpServers": {"context-registry": this_server().entry()}}),
        "install --all",
    ):
        assert needed in text
