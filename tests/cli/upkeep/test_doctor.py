"""Test `ctxr doctor` and `ctxr db upgrade`."""

import json
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pytest

from cli.running.addresses import shown_address
from cli.upkeep.doctor import check_folder
from registry.settings import Settings
from registry.storage.migrations import HEAD
from tests.cli.conftest import FIBONACCI, Ctxr, bare_ctxr
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, write


def report(**expected: Any) -> dict[str, Any]:
    """Return doctor's findings by name."""
    result = bare_ctxr("doctor", "--json")
    body: dict[str, Any] = json.loads(result.stdout)
    assert result.exit_code == (0 if body["ok"] else 1)
    return {**body, **{finding["what"]: finding for finding in body["findings"]}, **expected}


@pytest.fixture(autouse=True)
def nobody_listens(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    monkeypatch.setenv("CTXR_PORT", str(port))


def test_a_new_machine_is_healthy_and_doctor_creates_nothing(empty_home: Path) -> None:
    seen = report()
    assert seen["ok"]
    assert seen["folder"]["state"] == seen["database"]["state"] == seen["server"]["state"] == "note"
    assert list(empty_home.iterdir()) == []


def test_doctor_counts_the_messages_of_a_registry(ctxr: Ctxr) -> None:
    ctxr("log", "-", given=FIBONACCI)
    seen = report()
    assert seen["database"]["state"] == "ok"
    assert seen["database"]["found"].endswith(f"revision {HEAD}, channels: 1, messages: 2, images: 0")


def test_a_history_that_cannot_be_read_is_reported_until_it_can(ctxr: Ctxr, empty_home: Path) -> None:
    talk = Dialogue(session_id(1))
    talk.user("Why does the basket lose its items?")
    talk.aside("brand-new")
    write(empty_home / ".claude", talk)
    write(empty_home / ".claude", Dialogue(session_id(2)))  # only opened
    database = empty_home / "data" / "zed" / "threads" / "threads.db"
    database.parent.mkdir(parents=True)
    database.write_bytes(b"not a database" * 100)
    assert ctxr("sync").exit_code == 1
    claude, zed = (one for one in report()["findings"] if one["what"] == "histories")
    assert claude["found"] == "claude-code: 1 x record brand-new was not read: unknown to this reader"
    assert zed["found"].startswith(f"zed: {database} was not read: ")
    talk.records.pop()
    write(empty_home / ".claude", talk)
    database.unlink()
    ctxr("sync")
    assert "histories" not in report()


def test_doctor_checks_a_registry_on_postgresql(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXR_DATABASE_URL", postgres_url)
    bare_ctxr("log", "-", given=FIBONACCI)
    seen = report()["database"]
    assert seen["state"] == "ok"
    assert seen["found"].startswith("PostgreSQL ")
    assert seen["found"].endswith("channels: 1, messages: 2, images: 0")


def test_a_setting_is_read_in_any_case(ctxr: Ctxr, empty_home: Path) -> None:
    file = empty_home / "ctxr" / "config.toml"
    file.write_text('LOG_FORMAT = "json"\n', encoding="utf-8")
    assert report()["settings"]["log_format"] == {"value": "json", "from": "config.toml"}


def test_a_damaged_registry_file_can_be_salvaged(ctxr: Ctxr, empty_home: Path) -> None:
    (empty_home / "ctxr" / "registry.db").write_bytes(b"no database" * 100)
    seen = report()["database"]
    assert seen["state"] == "broken"
    assert "ctxr db salvage" in seen["remedy"]


def test_each_setting_has_its_origin(ctxr: Ctxr, empty_home: Path, port: int) -> None:
    (empty_home / "ctxr" / "config.toml").write_text('timeout_s = 5\nhost = "::1"\n', encoding="utf-8")
    settings = report()["settings"]
    assert settings["port"] == {"value": port, "from": "CTXR_PORT"}
    assert settings["timeout_s"] == {"value": 5.0, "from": "config.toml"}
    assert settings["keep_executions_days"] == {"value": 90, "from": "default"}


def test_doctor_shows_what_is_set_and_commands_to_copy(ctxr: Ctxr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXR_NEVER_KEEP", "project:/home/me/diary,project:/home/me/letters")
    monkeypatch.setenv("COLUMNS", "60")
    lines = [" ".join(line.split()) for line in bare_ctxr("doctor").stdout.splitlines()]
    assert "set never_keep = project:/home/me/diary, project:/home/me/letters (CTXR_NEVER_KEEP)" in lines
    assert not any("(default)" in line for line in lines)
    assert "to do: ctxr serve; not needed for clients that start ctxr mcp themselves" in lines


@pytest.mark.parametrize(("setting", "named"), [("CTXR_TIMEOUT_S", "CTXR_TIMEOUT_S"), ("CTXR_ACTIONS", '"actions"')])
def test_a_wrong_setting_is_a_finding(setting: str, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(setting, "soon")
    seen = report()
    assert not seen["ok"]
    assert seen["configuration"]["found"] == "The configuration is not usable."
    assert named in seen["configuration"]["remedy"]


def test_a_wrong_setting_of_several_parts_is_named_without_its_contents(empty_home: Path) -> None:
    action = '[[actions]]\nname = "chat"\ncommand = ["post"]\nurl = "https://example.org"\nenv = {KEY = "xoxb-abc"}\n'
    (empty_home / "ctxr").mkdir()
    (empty_home / "ctxr" / "config.toml").write_text(action, encoding="utf-8")
    remedy = report()["configuration"]["remedy"]
    assert remedy.startswith("CTXR_ACTIONS.0")
    assert "xoxb-abc" not in remedy


def test_a_database_of_a_newer_version_is_broken_and_stays_unchanged(ctxr: Ctxr, empty_home: Path) -> None:
    make_newer(empty_home / "ctxr" / "registry.db")
    seen = report()
    assert seen["database"]["state"] == "broken"
    assert seen["database"]["remedy"] == "update Context Registry"
    failed = ctxr("db", "upgrade")
    assert failed.exit_code == 1
    assert failed.stderr.startswith("error: STORAGE_ERROR: The registry was written by a newer version")


def make_newer(file: Path) -> None:
    """Mark a registry as changed by a later release."""
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()


def test_a_folder_that_cannot_be_written_is_broken(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    [found] = check_folder(Settings(home=tmp_path / "file" / "ctxr"))
    assert found.state == "broken"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_folder_on_a_full_disk_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Path("/dev/full").open
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda dir: opened("wb"))
    [found] = check_folder(Settings(home=tmp_path))
    assert found.state == "broken"
    assert "No space left" in found.found
    assert found.remedy.startswith("free some space")


def test_a_password_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXR_DATABASE_URL", "postgresql://me:hunter2@127.0.0.1:1/registry")
    result = bare_ctxr("doctor")
    assert result.exit_code == 1
    assert "hunter2" not in result.output
    assert shown_address("postgresql://me:s:e@host/db") == "postgresql://me:***@host/db"


def test_other_servers_in_a_clients_file_are_shown_only_by_name(ctxr: Ctxr, empty_home: Path) -> None:
    (empty_home / "ctxr" / "config.toml").write_text(SERVERS, encoding="utf-8")
    shown = {name: setting["value"] for name, setting in report()["settings"].items()}
    assert (shown["actions"], shown["notion"]) == ("team channel, board", "npx")
    said = bare_ctxr("doctor").output
    assert "actions = team channel, board  (config.toml)" in said
    assert "hunter2" not in said + json.dumps(shown)


SERVERS = """
[[actions]]
name = "team channel"
tool = "post_message"
command = ["slack-mcp", "--key", "hunter2"]
env = {SLACK_TOKEN = "hunter2"}
arguments = {text = "{text}", key = "hunter2"}

[[actions]]
name = "board"
tool = "add"
url = "https://mcp.example.org/hunter2"
check = {tool = "find", arguments = {key = "hunter2"}}

[notion]
command = ["npx", "--key=hunter2"]
env = {NOTION_TOKEN = "hunter2"}
"""


@pytest.mark.parametrize(
    ("url", "shown"),
    [("https://me:hunter2@mcp.example.org/hunter2?key=hunter2", "mcp.example.org"), ("https://me:hunter2[@mcp", "")],
)
def test_a_server_elsewhere_is_shown_by_its_host(ctxr: Ctxr, empty_home: Path, url: str, shown: str) -> None:
    (empty_home / "ctxr" / "config.toml").write_text(f'[notion]\nurl = "{url}"\n', encoding="utf-8")
    assert report()["settings"]["notion"]["value"] == shown


def test_clients_of_this_machine_are_listed_as_connected_or_not(empty_home: Path) -> None:
    (empty_home / ".cursor").mkdir()
    (empty_home / ".codex").mkdir()
    (empty_home / ".cursor" / "mcp.json").write_text('{"mcpServers": {"context-registry": {}}}', encoding="utf-8")
    seen = report()
    assert seen["Cursor"]["state"] == "ok"
    assert seen["Codex"]["state"] == "note"
    assert "Gemini CLI" not in seen


def test_a_port_used_by_another_program_is_broken(taken_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXR_PORT", str(taken_port))
    assert report()["server"]["state"] == "broken"


def test_the_report_fits_80_columns(ctxr: Ctxr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXR_HOME", "/data")
    lines = bare_ctxr("doctor").output.splitlines()
    assert max(len(line) for line in lines if not line.lstrip().startswith("to do: ")) <= 80
    assert any(line.startswith("note    folder") for line in lines)


def test_an_upgrade_says_what_it_did(empty_home: Path) -> None:
    assert bare_ctxr("db", "upgrade").output == f"The registry was created, at revision {HEAD}.\n"
    assert bare_ctxr("db", "upgrade").output == f"The registry is at revision {HEAD} already.\n"
