"""Every client's store is found, read once, left unchanged, and no other file is opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from registry.domain import Role
from sources.base import Paths, Source
from sources.files_to_back_up import files_to_back_up
from sources.readers import READERS
from sources.writers import WRITERS
from tests.sources.aider import test_aider as aider
from tests.sources.antigravity import antigravity_files as antigravity
from tests.sources.claude_code import claude_code_files as claude_code
from tests.sources.cline import cline_files as cline
from tests.sources.codex import codex_files as codex
from tests.sources.continue_dev import continue_files as continue_dev
from tests.sources.copilot import copilot_files as copilot
from tests.sources.cursor.cursor_files import CursorFiles, answered, asked
from tests.sources.cursor_agent.cursor_agent_files import AgentFiles, mirror
from tests.sources.cursor_agent.cursor_agent_files import working_session as agent_session
from tests.sources.droid import droid_files as droid
from tests.sources.gemini import gemini_files as gemini
from tests.sources.goose import goose_files as goose
from tests.sources.grok import grok_files as grok
from tests.sources.kimi import kimi_files as kimi
from tests.sources.openclaw import test_openclaw as openclaw
from tests.sources.opencode import opencode_files as opencode
from tests.sources.pi import pi_files as pi
from tests.sources.qwen import qwen_files as qwen
from tests.sources.reading import fingerprints_of, read_changed
from tests.sources.untouched import opened_files, state_of
from tests.sources.zed import zed_files as zed


@dataclass(frozen=True)
class Store:
    """A client's store: its usual folder below the home, and a function that writes a conversation into a folder.

    `variables`: environment variables that name another folder, each with the store's path below it. `secrets`: other
    files of the client, below the store's folder, that must not be opened. `form`: the name of its reader's class, if
    the client's versions have several.
    """

    source: str
    usual: str
    write: Callable[[Path], object]
    variables: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    form: str = ""

    @property
    def reader(self) -> Source:
        """Return the client's reader."""
        return next(each for each in READERS if each.name == self.source and self.form in ("", type(each).__name__))

    @property
    def label(self) -> str:
        return self.form or self.source


def write_goose(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    goose.write(folder, goose.working_messages())


def write_note(folder: Path) -> None:
    (folder / "memories").mkdir(parents=True, exist_ok=True)
    (folder / "memories" / "MEMORY.md").write_text("The user likes short answers.", encoding="utf-8")


def write_cursor_agent(folder: Path) -> None:
    files = AgentFiles(folder)
    files.describe(files.chat(1, *agent_session()).parent, cwd="/home/ann/shop")
    files.transcript(2, *mirror())


STORES = (
    Store(
        *("claude-code", ".claude", lambda root: claude_code.write(root, claude_code.working_session())),
        {"CLAUDE_CONFIG_DIR": "", "CTXR_CLAUDE_CODE_DIR": ""},
        (".credentials.json", "history.jsonl", "backups/projects/x/s.jsonl"),
    ),
    Store(
        *("codex", ".codex", lambda root: codex.write(root, codex.legacy())),
        {"CODEX_HOME": "", "CTXR_CODEX_DIR": ""},
        ("history.jsonl",),
    ),
    Store(
        *("copilot-cli", ".copilot", lambda root: copilot.write_log(root, copilot.working_log(), "name: x")),
        {"COPILOT_HOME": "", "CTXR_COPILOT_CLI_DIR": ""},
        ("config.json", "session-store.db", "mcp-oauth-config"),
    ),
    Store(
        *("copilot-vscode", ".config/Code/User", lambda root: copilot.write_chat(root, copilot.working_chat())),
        {"CTXR_VSCODE_DIR": ""},
    ),
    Store(
        *("gemini-cli", ".gemini", lambda root: gemini.write(root, gemini.working_chat())),
        {"GEMINI_CLI_HOME": ".gemini", "CTXR_GEMINI_CLI_DIR": ""},
        ("google_accounts.json", "tmp/shop/logs.json", "tmp/shop/checkpoint-a.json"),
    ),
    Store(
        *("antigravity", ".gemini/antigravity", lambda root: antigravity.write(root, antigravity.working_steps())),
        {"CTXR_ANTIGRAVITY_DIR": ""},
    ),
    Store(
        "opencode",
        ".local/share/opencode",
        lambda root: opencode.write_database(root, opencode.working_dialogue()),
        {"XDG_DATA_HOME": "opencode", "CTXR_OPENCODE_DIR": ""},
    ),
    Store(
        "opencode",
        ".local/share/opencode",
        lambda root: opencode.write_files(root, opencode.working_dialogue()),
        {"XDG_DATA_HOME": "opencode", "CTXR_OPENCODE_DIR": ""},
        ("storage/session_share/ses_1.json",),
        form="OpenCodeFiles",
    ),
    Store(
        "kilo",
        ".local/share/kilo",
        lambda root: opencode.write_database(root, opencode.working_dialogue(), name="kilo.db"),
        {"XDG_DATA_HOME": "kilo", "CTXR_KILO_DIR": ""},
    ),
    Store(
        *("kimi-code", ".kimi-code", lambda root: kimi.write(root, kimi.working_session())),
        {"KIMI_CODE_HOME": "", "CTXR_KIMI_CODE_DIR": ""},
    ),
    Store(
        *("droid", ".factory", lambda root: droid.write(root, droid.working_session())),
        {"FACTORY_HOME_OVERRIDE": ".factory", "CTXR_DROID_DIR": ""},
    ),
    Store(
        *("openclaw", ".openclaw", lambda root: openclaw.write(root, pi.working_session())),
        {"OPENCLAW_STATE_DIR": "", "CTXR_OPENCLAW_DIR": ""},
    ),
    Store(
        *("openclaw", ".openclaw", lambda root: openclaw.write_files(root, pi.working_session())),
        {"OPENCLAW_STATE_DIR": "", "CTXR_OPENCLAW_DIR": ""},
        ("agents/main/agent/auth-profiles.json",),
        form="OpenClawFiles",
    ),
    Store(
        *("qwen-code", ".qwen", lambda root: qwen.write(root, qwen.working_chat())),
        {"QWEN_HOME": "", "CTXR_QWEN_CODE_DIR": ""},
    ),
    Store(
        *("cline", ".cline/data", lambda root: cline.write_task(root, cline.working_view())),
        {"CLINE_DATA_DIR": "", "CTXR_CLINE_DIR": ""},
    ),
    Store(
        "roo-code",
        ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline",
        lambda root: cline.write_task(root, cline.working_view()),
        {"CTXR_ROO_CODE_DIR": ""},
    ),
    Store(
        "kilo",
        ".config/Code/User/globalStorage/kilocode.kilo-code",
        lambda root: cline.write_task(root, cline.working_view()),
        {"CTXR_KILO_DIR": ""},
        form="KiloTasks",
    ),
    Store(
        *("zed", ".local/share/zed", lambda root: zed.write(root, zed.THREAD, zed.thread(zed.working_messages()))),
        {"XDG_DATA_HOME": "zed", "CTXR_ZED_DIR": ""},
    ),
    Store(
        *("continue", ".continue", lambda root: continue_dev.write(root, continue_dev.working_history())),
        {"CONTINUE_GLOBAL_DIR": "", "CTXR_CONTINUE_DIR": ""},
    ),
    Store(
        *("goose", ".local/share/goose/sessions", write_goose),
        {"XDG_DATA_HOME": "goose/sessions", "GOOSE_PATH_ROOT": "data/sessions", "CTXR_GOOSE_DIR": ""},
    ),
    Store(
        *("grok-cli", ".grok", lambda root: grok.write(root, grok.working_session())),
        {"GROK_HOME": "", "CTXR_GROK_CLI_DIR": ""},
    ),
    Store(
        *("pi", ".pi/agent", lambda root: pi.write(root, pi.working_session())),
        {"PI_CODING_AGENT_DIR": "", "CTXR_PI_DIR": ""},
    ),
    Store(
        "cursor",
        ".config/Cursor/User",
        lambda root: CursorFiles(root).conversation("c1", asked("u1", "Why?"), answered("a1", "So.")),
        {"CTXR_CURSOR_DIR": ""},
    ),
    Store(
        "cursor-agent",
        ".cursor",
        write_cursor_agent,
        {"CURSOR_CONFIG_DIR": "", "CTXR_CURSOR_AGENT_DIR": ""},
        ("cli-config.json", "mcp.json", "projects/home-ann-shop/mcp-auth.json"),
    ),
    Store("memory-files", ".codex", write_note, {"CODEX_HOME": "", "CTXR_CODEX_DIR": ""}),
    Store("aider", "src/shop", lambda root: aider.write(root, aider.FIRST), {"CTXR_AIDER_DIRS": ""}),
)

every_store = pytest.mark.parametrize("client", STORES, ids=lambda each: each.label)


@every_store
def test_a_store_is_found_in_its_usual_folder_or_the_one_of_a_variable(client: Store, tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert list(client.reader.find(Paths(home, {}))) == []
    client.write(tmp_path / "usual" / client.usual)
    [store] = client.reader.find(Paths(tmp_path / "usual", {}))
    assert store.is_relative_to(tmp_path / "usual" / client.usual)
    for variable, below in client.variables.items():
        client.write(tmp_path / variable / below)
        [store] = client.reader.find(Paths(home, {variable: str(tmp_path / variable)}))
        assert store.is_relative_to(tmp_path / variable / below)


@every_store
def test_a_second_pass_over_a_store_finds_nothing(client: Store, tmp_path: Path) -> None:
    client.write(tmp_path / client.usual)
    [store] = client.reader.find(Paths(tmp_path, {}))
    stamp, seen = client.reader.stamp(store), fingerprints_of(client.reader, store)
    assert seen
    assert read_changed(client.reader, store, seen) == []
    assert client.reader.stamp(store) == stamp


@every_store
def test_reading_changes_nothing_and_opens_only_conversations(client: Store, tmp_path: Path) -> None:
    client.write(tmp_path / client.usual)
    usual = ("auth.json", "oauth_creds.json", "settings.json", "config.yaml", "config.toml", ".env", "accounts.db")
    secrets = (*usual, *client.secrets)
    for folder in (tmp_path / client.usual, (tmp_path / client.usual).parent):
        for name in secrets:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("sk-secret", encoding="utf-8")
    before = state_of(tmp_path)
    with opened_files() as opened:
        everything = [
            each for store in client.reader.find(Paths(tmp_path, {})) for each in read_changed(client.reader, store)
        ]
    assert everything
    assert state_of(tmp_path) == before
    assert not [path for path in opened if path.endswith(secrets)]
    assert "sk-secret" not in repr(everything)


@every_store
def test_a_backup_contains_only_the_conversations_of_a_store(client: Store, tmp_path: Path) -> None:
    client.write(tmp_path / client.usual)
    secrets = ("auth.json", "settings.json", ".env")
    for name in secrets:
        (tmp_path / client.usual / name).write_text("sk-secret", encoding="utf-8")
    [store] = client.reader.find(Paths(tmp_path, {}))
    files = [path for path, _ in files_to_back_up(client.reader, store)]
    assert files
    assert not {file.name for file in files}.intersection(secrets)


@pytest.mark.parametrize(
    "client",
    [each for each in STORES if each.source in WRITERS],
    ids=lambda each: each.source,
)
def test_messages_have_ids_if_a_session_can_be_resumed_in_the_client(client: Store, tmp_path: Path) -> None:
    """Without ids, equal texts of two clients in which a chat is resumed could not be told apart."""
    client.write(tmp_path / client.usual)
    [store] = client.reader.find(Paths(tmp_path, {}))
    messages = [one for each in read_changed(client.reader, store) for one in each.session.messages]
    ids = [one.native_id for one in messages if one.role in (Role.USER, Role.ASSISTANT)]
    assert ids
    assert len({*ids} - {None}) == len(ids)
