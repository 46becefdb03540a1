"""Test `ctxr install` and `ctxr uninstall`: a client is connected, and other contents of its files stay."""

import base64
import json
import shlex
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.connect.installation import INSTALLABLE, parts_of
from cli.connect.snippets import StdioServer, launcher_file
from registry.extras import uninstall_command
from registry.settings import default_home
from sources.base import Paths
from sources.clients import CLAUDE_CODE, CURSOR
from sources.kit.jsonc import is_bare, parse
from tests.cli.conftest import CTXR, bare_ctxr
from tests.sources.test_jsonc import files

SERVER = StdioServer(("/opt/my programs/ctxr", "mcp"))
FOREIGN_HOOKS = """\
{
  // hands off
  "version": 1,
  "hooks": {
    "stop": [{"command": "./notify.sh"}]
  }
}
"""


@pytest.fixture(autouse=True)
def started_as_ctxr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [CTXR, "install"])
    monkeypatch.delenv("CTXR_HOME")
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.delenv("CTXR_EMBED_MODEL")  # set for all tests


def written(folder: Path) -> dict[str, str]:
    """Return the contents of all files in a folder, except kept copies and our launcher."""
    files = {path for path in folder.rglob("*") if path.is_file() and path.parent.name != "before"} - {launcher_file()}
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in files}


def folders(home: Path) -> set[Path]:
    """Return every folder below a home, except our own and its parents."""
    ours = default_home()
    return {path for path in home.rglob("*") if path.is_dir() and path not in (ours, *ours.parents)} - {ours / "bin"}


def json_in(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return content


def test_cursor_gets_its_server_hooks_and_a_projects_rule(empty_home: Path, tmp_path: Path) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    result = bare_ctxr("install", "cursor", "--project", str(project), "--yes")
    assert result.exit_code == 0
    assert json_in(empty_home / ".cursor" / "mcp.json")["mcpServers"]["context-registry"] == {
        "command": str(launcher_file()),
        "args": ["mcp", "--client", "cursor", "--captured"],
    }
    hooks = json_in(empty_home / ".cursor" / "hooks.json")
    assert hooks["version"] == 1
    assert hooks["hooks"]["stop"] == [{"command": f"{launcher_file()} hook cursor stop"}]
    assert hooks["hooks"].keys() == {"sessionStart", "beforeSubmitPrompt", "afterAgentResponse", "stop", "sessionEnd"}
    assert CURSOR.rule
    assert written(project) == {".cursor/rules/context-registry.mdc": CURSOR.rule.text.read_text(encoding="utf-8")}
    assert "cursor://anysphere.cursor-deeplink/mcp/install?name=context-registry&config=" in result.output


@pytest.mark.parametrize("client", INSTALLABLE)
def test_a_second_install_changes_nothing_and_uninstalling_leaves_nothing(empty_home: Path, client: str) -> None:
    no_folders = folders(empty_home)
    assert bare_ctxr("install", client, "--yes").exit_code == 0
    before = written(empty_home)
    assert before
    again = bare_ctxr("install", client, "--yes")
    assert (again.exit_code, written(empty_home)) == (0, before)
    assert "connected already" in again.output
    assert bare_ctxr("uninstall", client, "--yes").exit_code == 0
    assert (written(empty_home), folders(empty_home)) == ({}, no_folders)
    assert "not connected" in bare_ctxr("uninstall", client, "--yes").output


def test_nothing_is_written_until_the_user_agrees(empty_home: Path) -> None:
    result = bare_ctxr("install", "claude-desktop", given="n\n")
    assert result.exit_code == 130
    assert '+    "context-registry": {' in result.output
    assert written(empty_home) == {}


def test_without_an_answer_the_option_yes_is_named(empty_home: Path) -> None:
    result = bare_ctxr("install", "claude-desktop", given="")
    assert (result.exit_code, "--yes" in result.stderr, written(empty_home)) == (130, True, {})


def test_foreign_hooks_and_comments_survive_both_ways_and_a_copy_is_kept(empty_home: Path) -> None:
    file = empty_home / ".cursor" / "hooks.json"
    file.parent.mkdir()
    file.write_text(FOREIGN_HOOKS, encoding="utf-8")
    file.chmod(0o640)
    assert bare_ctxr("install", "cursor", "--yes").exit_code == 0
    changed = file.read_text(encoding="utf-8")
    assert "// hands off" in changed
    assert '[{"command": "./notify.sh"}, {"command": ' in changed
    assert file.stat().st_mode & 0o777 == 0o640
    [copy] = default_home().glob("before/.cursor-hooks.json.*")
    assert copy.read_text(encoding="utf-8") == FOREIGN_HOOKS
    bare_ctxr("uninstall", "cursor", "--yes")
    assert file.read_text(encoding="utf-8") == FOREIGN_HOOKS


def test_a_program_that_has_moved_replaces_its_old_entry(empty_home: Path) -> None:
    file = empty_home / ".claude" / "settings.json"
    file.parent.mkdir()
    mixed = {"type": "command", "command": "/old/bin/ctxr hook claude-code Stop"}
    theirs = {"type": "command", "command": "say done"}
    file.write_text(json.dumps({"hooks": {"Stop": [{"matcher": "", "hooks": [theirs, mixed]}]}}), encoding="utf-8")
    bare_ctxr("install", "claude-code", "--yes")
    assert json_in(file)["hooks"]["Stop"] == [
        {"matcher": "", "hooks": [theirs]},
        {"hooks": [{"type": "command", "command": f"{launcher_file()} hook claude-code Stop"}]},
    ]


def test_codex_gets_a_table_and_hooks(empty_home: Path) -> None:
    config = empty_home / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text('model = "o5" # mine\n', encoding="utf-8")
    result = bare_ctxr("install", "codex", "--yes")
    parsed = tomllib.loads(config.read_text(encoding="utf-8"))
    assert parsed == {
        "model": "o5",
        "mcp_servers": {
            "context-registry": {
                "command": str(launcher_file()),
                "args": ["mcp", "--client", "codex"],
                "required": True,
            }
        },
    }
    hooks = json_in(config.with_name("hooks.json"))["hooks"]
    assert hooks.keys() == {"SessionStart", "UserPromptSubmit", "PreToolUse", "Stop"}
    assert [group.get("matcher") for event in hooks.values() for group in event] == [
        None,
        None,
        "Bash|apply_patch",
        None,
    ]
    assert "/hooks" in result.output


def test_vs_code_gets_a_server_entry_with_a_type_for_one_project(tmp_path: Path) -> None:
    bare_ctxr("install", "vscode", "--project", str(tmp_path), "--yes")
    servers = json_in(tmp_path / ".vscode" / "mcp.json")["servers"]
    assert servers["context-registry"] == {
        "type": "stdio",
        "command": str(launcher_file()),
        "args": ["mcp", "--client", "vscode"],
    }
    refused = bare_ctxr("install", "codex", "--project", str(tmp_path), "--yes")
    assert refused.exit_code == 2


def test_a_symbolic_link_stays_one(empty_home: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text('{"mcpServers": {"other": {}}}', encoding="utf-8")
    link = empty_home / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(real)
    bare_ctxr("install", "cursor", "--yes")
    assert link.is_symlink()
    assert json_in(real)["mcpServers"].keys() == {"other", "context-registry"}


@pytest.mark.parametrize("client", INSTALLABLE)
def test_an_empty_file_is_empty_again_after_uninstalling(empty_home: Path, client: str) -> None:
    bare_ctxr("install", client, "--yes")
    names = [name for name in written(empty_home) if name.endswith((".json", ".toml"))]
    files = [empty_home / name for name in names if not name.endswith("/connected.json")]
    bare_ctxr("uninstall", client, "--yes")
    for number, file in enumerate(files):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("" if file.suffix == ".toml" else "{ }\n" if number else "{}", encoding="utf-8")
    before = written(empty_home)
    bare_ctxr("install", client, "--yes")
    assert written(empty_home) != before
    bare_ctxr("uninstall", client, "--yes")
    assert written(empty_home) == before


def test_an_empty_list_stays_after_uninstalling(empty_home: Path) -> None:
    folder = empty_home / ".cursor"
    folder.mkdir()
    before = {"mcp.json": '{"mcpServers": {}}', "hooks.json": '{\n  "version": 1,\n  "hooks": {"stop": []}\n}\n'}
    for name, text in before.items():
        (folder / name).write_text(text, encoding="utf-8")
    bare_ctxr("install", "cursor", "--yes")
    assert "context-registry" in (folder / "mcp.json").read_text(encoding="utf-8")
    bare_ctxr("uninstall", "cursor", "--yes")
    assert written(folder) == before


SECRET = "sk-proj-this-is-somebodys-key"


@pytest.mark.parametrize("client", INSTALLABLE)
def test_no_copy_of_a_file_with_keys_is_kept(empty_home: Path, client: str) -> None:
    paths = Paths(empty_home, {})
    server = next(part.file for part in parts_of(INSTALLABLE[client], SERVER, paths) if part.what == "server")
    settings = f'key = "{SECRET}"\n' if server.suffix == ".toml" else json.dumps({"key": SECRET})
    server.parent.mkdir(parents=True, exist_ok=True)
    server.write_text(settings, encoding="utf-8")
    for command in ("install", "uninstall"):
        assert bare_ctxr(command, client, "--yes").exit_code == 0
        holding = [file for file in empty_home.rglob("*") if file.is_file() and SECRET in file.read_text("utf-8")]
        assert holding == [server]
    assert server.read_text(encoding="utf-8") == settings


def test_all_clients_of_this_machine_are_connected_at_once(empty_home: Path) -> None:
    assert "None of these is on this machine" in bare_ctxr("install", "--all", "--yes").output
    (empty_home / ".gemini").mkdir()
    (empty_home / ".openclaw").mkdir()
    (empty_home / ".config" / "opencode").mkdir(parents=True)
    done = bare_ctxr("install", "--all", "--yes")
    assert done.exit_code == 0
    assert ("Gemini CLI:" in done.output, "OpenCode:" in done.output, "Zed" in done.output) == (True, True, False)
    settings, deeper = (json_in(empty_home / file) for file in (".gemini/settings.json", ".openclaw/openclaw.json"))
    for client, servers in (("gemini-cli", settings["mcpServers"]), ("openclaw", deeper["mcp"]["servers"])):
        entry = {"command": str(launcher_file()), "args": ["mcp", "--client", client]}
        assert servers == {"context-registry": entry}
    assert settings["hooks"]["SessionStart"] == [
        {"hooks": [{"type": "command", "command": f"{launcher_file()} hook gemini-cli SessionStart"}]}
    ]
    removed = bare_ctxr("uninstall", "--all", "--yes").output
    assert "No client is connected" not in removed
    assert f"rm -r {default_home()} && {uninstall_command()}" in removed
    assert written(empty_home) == {}
    assert bare_ctxr("install", "--yes").exit_code == 2
    assert bare_ctxr("install", "zed", "--all", "--yes").exit_code == 2


def test_qwen_codes_model_gets_the_tools_without_a_search_for_them(empty_home: Path) -> None:
    bare_ctxr("install", "qwen-code", "--yes")
    [entry] = json_in(empty_home / ".qwen" / "settings.json")["mcpServers"].values()
    assert entry["alwaysLoadTools"]


def test_opencode_gets_one_command_and_a_plugin_that_runs_the_hook(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXR_HOME", "/my data")
    folder = empty_home / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.jsonc").write_text('{\n  // mine\n  "model": "fake"\n}\n', encoding="utf-8")
    bare_ctxr("install", "opencode", "--yes")
    assert json.loads((folder / "opencode.jsonc").read_text("utf-8").replace("// mine", ""))["mcp"] == {
        "context-registry": {
            "type": "local",
            "enabled": True,
            "command": [str(launcher_file()), "mcp", "--client", "opencode"],
            "environment": {"CTXR_HOME": "/my data"},
        }
    }
    plugin = (folder / "plugins" / "context-registry.js").read_text(encoding="utf-8")
    assert f'const HOOK = ["env", "CTXR_HOME=/my data", "{launcher_file()}", "hook", "opencode"]' in plugin


@pytest.mark.parametrize("content", [b'{"mcpServers": [}', b"\xff\xfe{}"])
def test_an_invalid_file_is_reported_and_stays(empty_home: Path, content: bytes) -> None:
    file = empty_home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_bytes(content)
    result = bare_ctxr("install", "cursor", "--yes")
    assert result.exit_code in (1, 2)
    assert result.stderr.startswith("error: ")
    assert file.read_bytes() == content
    assert [path.name for path in file.parent.iterdir()] == ["mcp.json"]


@pytest.mark.parametrize(
    ("client", "file"),
    [
        ("claude-code", ".claude/settings.json"),
        ("codex", ".codex/hooks.json"),
        ("copilot-cli", ".copilot/hooks/context-registry.json"),
    ],
)
def test_hooks_in_a_file_that_the_client_would_ignore_for_its_comment_are_reported(
    empty_home: Path, client: str, file: str
) -> None:
    bare_ctxr("install", client, "--yes")
    settings = empty_home / file
    commented = "// mine\n" + settings.read_text(encoding="utf-8")
    settings.write_text(commented, encoding="utf-8")
    assert "not running: their file is not plain JSON" in doctor_output()
    refused = bare_ctxr("install", client, "--yes")
    assert "With a comment or a trailing comma the client ignores the whole file" in refused.stderr
    assert settings.read_text(encoding="utf-8") == commented
    assert bare_ctxr("uninstall", client, "--yes").exit_code == 0
    assert "hook" not in settings.read_text(encoding="utf-8")


def test_a_hook_command_sets_the_home_of_a_registry_in_another_folder() -> None:
    server = StdioServer(("/opt/my programs/ctxr", "mcp"), {"CTXR_HOME": "/my data"})
    words = shlex.split(server.hook_command("codex", "Stop"))
    assert words == ["env", "CTXR_HOME=/my data", "/opt/my programs/ctxr", "hook", "codex", "Stop"]
    fallback = StdioServer((sys.executable, "-m", "cli.entry", "mcp")).hook_command("codex", "Stop")
    assert shlex.split(fallback)[1:] == ["-m", "cli.entry", "hook", "codex", "Stop"]


def test_the_link_for_cursor_has_the_server_entry() -> None:
    query = parse_qs(urlsplit(SERVER.link(CURSOR)).query)
    assert query["name"] == ["context-registry"]
    assert json.loads(base64.b64decode(query["config"][0])) == SERVER.started_by(CURSOR).entry()


def edits(client: str) -> Iterator[tuple[Any, Any]]:
    """Yield the install and uninstall functions of each JSON file of a client."""
    for part in parts_of(INSTALLABLE[client], SERVER, Paths(Path("/home/me"), {})):
        if part.file.suffix == ".json":
            yield part.install, part.uninstall


@given(st.sampled_from(sorted(INSTALLABLE)), files())
def test_uninstalling_restores_the_other_contents_of_a_file_exactly(
    client: str, file: tuple[str, dict[str, Any]]
) -> None:
    text, content = file
    for put_in, take_out in edits(client):
        try:
            changed = put_in(text)
        except ValueError:
            continue  # a list where an object belongs, or a comment that the client does not allow
        assert put_in(changed) == changed
        rest = take_out(changed)
        if client in ("cursor", "copilot-cli") and "version" not in content:
            assert parse(rest or "{}").data in (content, {**content, "version": 1})
        else:
            assert rest == text or (is_bare(rest) and is_bare(text))


def doctor_output() -> str:
    """Return doctor's report as JSON, without loading a model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CTXR_EMBED_MODEL", "off")
        return bare_ctxr("doctor", "--json").output


def test_doctor_says_whether_hooks_are_installed(empty_home: Path) -> None:
    (empty_home / ".cursor").mkdir()
    assert "ctxr install cursor" in doctor_output()
    bare_ctxr("install", "cursor", "--yes")
    assert ", hooks installed" in doctor_output()


def test_doctor_says_that_codex_does_not_run_untrusted_hooks(empty_home: Path) -> None:
    bare_ctxr("install", "codex", "--yes")
    folder = empty_home / ".codex"
    assert "not trusted" in doctor_output()
    config = (folder / "config.toml").read_text(encoding="utf-8")
    for event in ("session_start", "user_prompt_submit", "pre_tool_use", "stop"):
        config += f'\n[hooks.state."{folder / "hooks.json"}:{event}:0:0"]\ntrusted_hash = "sha256:0"\n'
    (folder / "config.toml").write_text(config, encoding="utf-8")
    told = doctor_output()
    assert "not trusted" not in told
    assert ", hooks installed" in told
    (folder / "config.toml").write_text(config + "enabled = false\n", encoding="utf-8")
    assert "not trusted" in doctor_output()


PLUGIN = Path(__file__).parents[3] / "integrations" / "claude-code"
MARKETPLACE = Path(__file__).parents[3] / ".claude-plugin" / "marketplace.json"


def test_the_plugin_for_claude_code_runs_the_commands_that_install_writes() -> None:
    server = StdioServer(("ctxr", "mcp"))
    assert json_in(PLUGIN / ".mcp.json") == {"mcpServers": {"context-registry": server.entry()}}
    hooks = json_in(PLUGIN / "hooks" / "hooks.json")["hooks"]
    assert CLAUDE_CODE.hooks
    assert hooks["PreToolUse"][0]["matcher"] == CLAUDE_CODE.hooks.before_tool[1]
    commands = {event: [each["command"] for group in hooks[event] for each in group["hooks"]] for event in hooks}
    assert commands == {event: [server.hook_command("claude-code", event)] for event in CLAUDE_CODE.hooks.events}


def test_the_marketplace_lists_the_plugin_in_this_version() -> None:
    [offered] = json_in(MARKETPLACE)["plugins"]
    manifest = json_in(PLUGIN / ".claude-plugin" / "plugin.json")
    assert (MARKETPLACE.parents[1] / offered["source"]).resolve() == PLUGIN
    assert (offered["name"], manifest["version"]) == (manifest["name"], version("context-registry"))
    assert "version" not in offered, "the version is in the plugin's manifest"
    assert (PLUGIN / "skills" / "past-conversations" / "SKILL.md").read_text(encoding="utf-8").startswith("---\nname: ")
