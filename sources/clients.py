"""The records of all clients. To add one, write a record and add it to `CLIENTS`.

Every command imports this module at its start, so it imports no reader, nor anything else that takes time.
"""

import os
import sys
from pathlib import Path

from registry.domain import Role
from sources.base import Paths
from sources.claude_code import prompts as claude_code
from sources.client import Client, Hooks, ProjectRule, Purge, ServerList, SizeLimit, system_settings_folder
from sources.codex import records as codex
from sources.gemini import prompts as gemini

_HERE = Path(__file__).parent

# Cursor's editor, and its agent on the command line and in other editors; the same settings connect both.
CURSOR_AGENT = Client(source="cursor-agent", name="Cursor's agent")

CURSOR = Client(
    source="cursor",
    name="Cursor",
    handshake=("cursor-vscode", "cursor"),
    folder=lambda paths: paths.home / ".cursor",
    servers=ServerList("mcp.json"),
    hooks=Hooks(
        events=("sessionStart", "beforeSubmitPrompt", "afterAgentResponse", "stop", "sessionEnd"),
        message_fields={"beforeSubmitPrompt": (Role.USER, "prompt"), "afterAgentResponse": (Role.ASSISTANT, "text")},
        format="list",
        handler=lambda command: {"command": command},
    ),
    is_logged_by_model=True,
    rule=ProjectRule(".cursor/rules/context-registry.mdc", _HERE / "cursor" / "rule.md"),
    project_option="put the rule into this project",
    link="cursor://anysphere.cursor-deeplink/mcp/install",
    prompt_link="cursor://anysphere.cursor-deeplink/prompt?text=",
)

# Clients whose conversations are read from account exports: Claude (app and site), ChatGPT and Gemini.
CLAUDE = Client(
    source="claude",
    name="Claude Desktop",
    handshake=("claude-ai", "claude", "claude-desktop"),
    folder=lambda _: system_settings_folder("Claude"),
    servers=ServerList("claude_desktop_config.json"),
    is_logged_by_model=True,
    installed_as="claude-desktop",
    after_connecting="Quit Claude Desktop completely, and start it again.",
    prompt_link="claude://claude.ai/new?q=",
)

GEMINI = Client(source="gemini", name="Gemini", is_logged_by_model=True)
CHATGPT = Client(source="chatgpt", name="ChatGPT", is_logged_by_model=True)

CLAUDE_CODE = Client(
    source="claude-code",
    name="Claude Code",
    answer_limit=SizeLimit(40_000),
    folder=lambda paths: paths.folder("CLAUDE_CONFIG_DIR", ".claude"),
    # next to the folder of settings, or in it if the user has moved that
    servers=ServerList(lambda paths: paths.folder("CLAUDE_CONFIG_DIR") / ".claude.json"),
    hooks=Hooks(
        events=("SessionStart", "UserPromptSubmit", "PreToolUse", "Stop", "SessionEnd"),
        message_fields={"UserPromptSubmit": (Role.USER, "prompt"), "Stop": (Role.ASSISTANT, "last_assistant_message")},
        before_tool=("PreToolUse", "Bash|Edit|MultiEdit|Write"),
        file="settings.json",
        is_among_settings=True,
        is_strict_json=True,
        typed=claude_code.typed,
    ),
    purge=Purge("settings.json", ("cleanupPeriodDays",), 30),
)

# GitHub Copilot: the chat in VS Code, and the command line.
VSCODE = Client(
    source="copilot-vscode",
    name="VS Code",
    handshake=("visual studio code", "visual studio code - insiders"),
    folder=lambda _: system_settings_folder("Code") / "User",
    servers=ServerList("mcp.json", key="servers", entry={"type": "stdio"}, in_project=".vscode/mcp.json"),
    installed_as="vscode",
    project_option="connect this project only",
    after_connecting="Start the server in VS Code: MCP: List Servers.",
)


def _copilot_handler(command: str) -> dict[str, str | int]:
    shell = "powershell" if os.name == "nt" else "bash"
    return {"type": "command", shell: command, "timeoutSec": 10}


COPILOT_CLI = Client(
    source="copilot-cli",
    name="Copilot CLI",
    answer_limit=SizeLimit(18_000, in_bytes=True),
    handshake=("github-copilot-developer", "copilot-cli"),
    folder=lambda paths: paths.folder("COPILOT_HOME", ".copilot"),
    servers=ServerList("mcp-config.json", entry={"type": "local", "tools": ["*"]}),
    hooks=Hooks(
        events=("sessionStart", "userPromptSubmitted", "preToolUse", "agentStop", "sessionEnd"),
        file="hooks/context-registry.json",
        format="list",
        handler=_copilot_handler,
        is_strict_json=True,
    ),
)

# Codex: its command line, desktop app and editor extension, which share one folder.
CODEX = Client(
    source="codex",
    name="Codex",
    answer_limit=SizeLimit(10_000, in_bytes=True),
    handshake=("codex", "codex-mcp-client"),
    folder=lambda paths: paths.folder("CODEX_HOME", ".codex"),
    servers=ServerList("config.toml", key="mcp_servers", format="toml", entry={"required": True}),
    hooks=Hooks(
        events=("SessionStart", "UserPromptSubmit", "PreToolUse", "Stop"),
        message_fields={"UserPromptSubmit": (Role.USER, "prompt"), "Stop": (Role.ASSISTANT, "last_assistant_message")},
        before_tool=("PreToolUse", "Bash|apply_patch"),
        is_strict_json=True,
        typed=codex.typed,
        untrusted=codex.untrusted,
    ),
    after_connecting="Restart Codex, and trust the hooks when it asks, or with /hooks.",
)

_RETENTION = ("general", "sessionRetention")

GEMINI_CLI = Client(
    source="gemini-cli",
    name="Gemini CLI",
    answer_limit=SizeLimit(30_000),
    handshake=("gemini-cli", "gemini-cli-mcp-client"),
    folder=lambda paths: paths.folder("GEMINI_CLI_HOME") / ".gemini",
    servers=ServerList("settings.json"),
    hooks=Hooks(
        events=("SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd"), file="settings.json", is_among_settings=True
    ),
    purge=Purge("settings.json", (*_RETENTION, "maxAge"), 30, switch=(*_RETENTION, "enabled")),
)

# Antigravity: Google's editor, and its command line `agy`, which keeps its conversations in the same way.
ANTIGRAVITY = Client(
    source="antigravity",
    name="Antigravity",
    handshake=("antigravity", "antigravity-client", "antigravity-cli", "agy"),
    folder=lambda paths: paths.home / ".gemini" / "antigravity",
    servers=ServerList(lambda paths: paths.home / ".gemini" / "config" / "mcp_config.json"),
)


# OpenCode, and Kilo Code, a fork of it. They run no commands at their events; a small plugin does.
def _opencode_or_fork(source: str, name: str) -> Client:
    """Return the record of OpenCode or of a fork, whose files are named after it."""

    def settings(paths: Paths) -> Path:
        """Return the settings file, with the ending `.jsonc` if there is one."""
        file = paths.folder("XDG_CONFIG_HOME", ".config") / source / f"{source}.json"
        with_comments = file.with_suffix(".jsonc")
        return with_comments if with_comments.exists() else file

    return Client(
        source=source,
        name=name,
        answer_limit=SizeLimit(40_000, in_bytes=True),
        folder=lambda paths: settings(paths).parent,
        servers=ServerList(settings, key="mcp", entry={"type": "local", "enabled": True}, is_one_command=True),
        hooks=Hooks(
            events=("session.start", "chat.message", "session.idle"),
            file="plugins/context-registry.js",
            plugin=_HERE / "opencode" / "plugin.js",
        ),
    )


OPENCODE = _opencode_or_fork("opencode", "OpenCode")
KILO = _opencode_or_fork("kilo", "Kilo Code")

# Qwen Code, a fork of Gemini CLI.
QWEN_CODE = Client(
    source="qwen-code",
    name="Qwen Code",
    answer_limit=SizeLimit(30_000),
    handshake=("qwen-code", "qwen-cli", "qwen-cli-mcp-client"),
    folder=lambda paths: paths.folder("QWEN_HOME", ".qwen"),
    # without it, the model must search for a tool before it can call it
    servers=ServerList("settings.json", entry={"alwaysLoadTools": True}),
    hooks=Hooks(
        events=("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"),
        file="settings.json",
        is_among_settings=True,
        typed=gemini.typed,
    ),
)

# Grok CLI, which xAI also calls Grok Build.
GROK_CLI = Client(
    source="grok-cli",
    name="Grok CLI",
    answer_limit=SizeLimit(18_000, in_bytes=True),
    handshake=("grok-shell-context-registry", "grok-shell"),
    folder=lambda paths: paths.folder("GROK_HOME", ".grok"),
    servers=ServerList("config.toml", key="mcp_servers", format="toml"),
)

# Kimi Code, Moonshot's agent.
KIMI_CODE = Client(
    source="kimi-code",
    name="Kimi Code",
    folder=lambda paths: paths.folder("KIMI_CODE_HOME", ".kimi-code"),
    servers=ServerList("mcp.json"),
)

# Droid, Factory's agent.
DROID = Client(
    source="droid",
    name="Droid",
    handshake=("factory-cli",),
    folder=lambda paths: paths.folder("FACTORY_HOME_OVERRIDE") / ".factory",
    servers=ServerList("mcp.json", entry={"type": "stdio"}),
    hooks=Hooks(
        events=("SessionStart", "UserPromptSubmit", "PreToolUse", "Stop", "SessionEnd"),
        before_tool=("PreToolUse", "Execute|Edit|Create|ApplyPatch"),
        file="settings.json",
        is_among_settings=True,
    ),
)

# OpenClaw, an assistant for messengers and the terminal; it stores Pi's entries in a database.
OPENCLAW = Client(
    source="openclaw",
    name="OpenClaw",
    handshake=("openclaw-bundle-mcp",),
    folder=lambda paths: paths.folder("OPENCLAW_STATE_DIR", ".openclaw"),
    servers=ServerList("openclaw.json", key="mcp.servers"),
)

# Cline: its extension for editors and its command line, which share one folder; and Roo Code, which began as Cline.
CLINE = Client(
    source="cline",
    name="Cline",
    folder=lambda paths: paths.folder("CLINE_DATA_DIR", ".cline", "data"),
    servers=ServerList("settings/cline_mcp_settings.json"),
    is_logged_by_model=True,
    after_connecting="Cline uses the server at once; its extension shows it under MCP Servers.",
)

ROO_CODE = Client(source="roo-code", name="Roo Code", handshake=("roo code", "roo-code"), is_logged_by_model=True)

WINDSURF = Client(
    source="windsurf",
    name="Windsurf",
    handshake=("windsurf", "windsurf-client"),
    folder=lambda paths: paths.home / ".codeium" / "windsurf",  # of its memories too
    servers=ServerList("mcp_config.json"),
    is_logged_by_model=True,
    after_connecting="Refresh the servers in Windsurf's MCP panel.",
)


ZED = Client(
    source="zed",
    name="Zed",
    folder=lambda paths: (
        system_settings_folder("Zed") if sys.platform == "win32" else paths.folder("XDG_CONFIG_HOME", ".config") / "zed"
    ),
    servers=ServerList("settings.json", key="context_servers"),
    is_logged_by_model=True,
    after_connecting="Zed starts the server at once; the agent panel's settings show it.",
)

# Continue: its extensions for editors and its command line, which share one folder.
CONTINUE = Client(
    source="continue",
    name="Continue",
    handshake=("continue", "continue-client", "continue-cli-client"),
    folder=lambda paths: paths.folder("CONTINUE_GLOBAL_DIR", ".continue"),
)

# Goose: its command line and its desktop application, which share one database.
GOOSE = Client(source="goose", name="Goose", handshake=("goose", "goose-cli", "goose-desktop"), is_logged_by_model=True)

# Pi, a coding agent for the terminal. It has no MCP: its conversations are read, but it cannot ask for others.
PI = Client(source="pi", name="Pi", folder=lambda paths: paths.folder("PI_CODING_AGENT_DIR", ".pi", "agent"))

# Aider, which keeps its chats in each project's own folder.
AIDER = Client(source="aider", name="Aider")

# The notes that clients keep of their users and projects, and hand to their models again.
MEMORY_FILES = Client(source="memory-files", name="Memory files", is_logged_by_model=True)


CLIENTS: tuple[Client, ...] = (
    *(CURSOR, CURSOR_AGENT, CLAUDE, CLAUDE_CODE, VSCODE, COPILOT_CLI, CODEX, GEMINI_CLI, ANTIGRAVITY, OPENCODE, KILO),
    *(QWEN_CODE, GROK_CLI, KIMI_CODE, DROID, OPENCLAW, CLINE, ROO_CODE, WINDSURF, ZED, CONTINUE, GOOSE, PI, AIDER),
    *(MEMORY_FILES, CHATGPT, GEMINI),
)


def find_client(name: str) -> Client | None:
    """Find a client by its source, or by its name for `ctxr install`."""
    return next((client for client in CLIENTS if name and name in (client.source, client.command)), None)
