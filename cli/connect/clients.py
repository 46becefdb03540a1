"""The AI clients we know how to connect: where each keeps its list of MCP servers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_config_path


@dataclass(frozen=True, slots=True)
class Client:
    """A client, the folder that shows it is installed, and the file its MCP servers stand in."""

    name: str
    folder: Path
    config: Path
    readers: tuple[str, ...] = ()
    """Those of its histories: a client that keeps one is here, wherever its settings stand."""


def known_clients(home: Path) -> tuple[Client, ...]:
    """All of them, installed or not, as seen from a home folder."""
    claude_desktop = user_config_path("Claude", appauthor=False, roaming=True)
    vscode = user_config_path("Code", appauthor=False, roaming=True) / "User"
    claude_code = Path(os.environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    codex = Path(os.environ.get("CODEX_HOME") or home / ".codex")
    return (
        Client("Cursor", home / ".cursor", home / ".cursor" / "mcp.json", ("cursor", "cursor-agent")),
        Client("Claude Desktop", claude_desktop, claude_desktop / "claude_desktop_config.json"),
        Client("Claude Code", claude_code, _claude_code_config(home), ("claude-code",)),
        Client("VS Code", vscode, vscode / "mcp.json", ("copilot-vscode",)),
        Client("Codex", codex, codex / "config.toml", ("codex",)),
        Client("Gemini CLI", home / ".gemini", home / ".gemini" / "settings.json", ("gemini-cli",)),
    )


def _claude_code_config(home: Path) -> Path:
    moved = os.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(moved) if moved else home) / ".claude.json"
